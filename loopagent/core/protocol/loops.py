"""Loops that the engine runs without asking the model again."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, StrictBool, model_validator

from loopagent.core.protocol.base import Params, Wire
from loopagent.core.protocol.pipeline import AgentPipelineRequest


class LoopAction(Wire):
    """One action per pass; `{{ … }}` in the parameters is filled in."""

    name: str = Field(min_length=1)
    params: Params = {}
    output_mapping: dict[str, str] | None = None
    """Result path → payload path."""


class LoopSubAgent(Wire):
    """One sub-agent per pass."""

    name: str = Field(min_length=1)
    message: str = Field(min_length=1)
    template_parameters: dict[str, Any] | None = None
    context: Any = None


class Loop(Wire):
    """What both loops share: a body and how failures and pauses are handled."""

    continue_on_error: StrictBool = False
    delay_between_iterations_ms: int = Field(default=0, ge=0)
    action: LoopAction | None = None
    sub_agent: LoopSubAgent | None = None
    pipeline: AgentPipelineRequest | None = None

    @model_validator(mode="after")
    def _one_body(self) -> Loop:
        bodies = [one for one in (self.action, self.sub_agent, self.pipeline) if one is not None]
        if len(bodies) != 1:
            message = "needs exactly one body: action, subAgent or pipeline"
            raise ValueError(message)
        return self


class ForEachOperation(Loop):
    """Once for every item of an array."""

    collection_path: str = Field(min_length=1)
    """Path of an array in the payload, or `static:[…]`."""
    item_variable: str = "item"
    index_variable: str = "index"
    max_iterations: int = Field(default=1000, ge=1)
    execution_mode: Literal["sequential", "parallel"] = "sequential"
    max_concurrency: int = Field(default=10, ge=1)


class WhileOperation(Loop):
    """As long as a condition holds."""

    condition: str = Field(min_length=1)
    item_variable: str = "attempt"
    max_iterations: int = Field(default=100, ge=1)
