"""Loops that the engine runs without asking the model again."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import Field, StrictBool

from loopagent.core.flavours import ACCEPTED, Mark
from loopagent.core.problems import Fault
from loopagent.core.protocol.base import (
    PARAMETERS,
    WORK_NAMES,
    Count,
    NonBlank,
    Params,
    Positive,
    Wire,
    named,
)
from loopagent.core.protocol.pipeline import AgentPipelineRequest


BODIES: Final = {"action": "action", "subAgent": "sub_agent", "pipeline": "pipeline"}
"""What a loop can run in each pass, by wire name."""


class LoopAction(Wire):
    """One action per pass."""

    other_names: ClassVar = {**named("params", *PARAMETERS), **named("name", "action", "tool")}
    name: NonBlank
    """Name of the action."""
    params: Params = {}
    """Its parameters; `{{ … }}` is filled in for each pass."""
    output_mapping: Params | None = None
    """Result path → payload path."""


class LoopSubAgent(Wire):
    """One sub-agent per pass."""

    other_names: ClassVar = WORK_NAMES
    name: NonBlank
    """Name of the sub-agent."""
    message: NonBlank
    """What it has to do; `{{ … }}` is filled in for each pass."""
    template_parameters: Params | None = None
    """Only parameters that the sub-agent declares."""
    context: Annotated[Any, Mark(generated={"type": "string"})] = None
    """Anything else it should know."""


def _one_body(schema: dict[str, Any]) -> None:
    schema[ACCEPTED] = {
        "oneOf": [
            {"required": [key], "properties": {key: {"not": {"type": "null"}}}} for key in BODIES
        ]
    }


class Loop(Wire):
    """What both loops share: a body, and how failures and pauses are handled."""

    model_config = {"json_schema_extra": _one_body}
    variables: ClassVar[tuple[str, ...]] = ("itemVariable", "item_variable")
    """Keys of variable names; blank ones fall back to the default."""
    belongs_in: ClassVar = {"outputmapping": "action"}

    continue_on_error: StrictBool = False
    """Whether to go on after a failed pass."""
    delay_between_iterations_ms: Count = 0
    """Pause between passes, in milliseconds."""
    action: LoopAction | None = None
    """Run this action in each pass."""
    sub_agent: LoopSubAgent | None = None
    """Or this sub-agent."""
    pipeline: AgentPipelineRequest | None = None
    """Or this pipeline."""

    @classmethod
    def tidy(cls, fields: dict[str, Any]) -> dict[str, Any]:
        """Drop blank variable names; anything but exactly one body is a problem."""
        blank = [
            key
            for key in cls.variables
            if fields.get(key) == "" or str(fields.get(key, "x")).isspace()
        ]
        if blank:
            fields = {key: one for key, one in fields.items() if key not in blank}
        found = [wire for wire, name in BODIES.items() if wire in fields or name in fields]
        if len(found) == 1:
            return fields
        got = " and ".join(found) or "none"
        wanted = ", ".join(BODIES)
        return {
            **fields,
            (found or ["action"])[0]: Fault(f"expected exactly one of {wanted}, got {got}", got),
        }


class ForEachOperation(Loop):
    """Once for every item of an array."""

    variables: ClassVar[tuple[str, ...]] = (*Loop.variables, "indexVariable", "index_variable")

    collection_path: NonBlank
    """Path of an array in the payload, or `static:[…]`."""
    item_variable: str = "item"
    """Name of the item in `{{ … }}`."""
    index_variable: str = "index"
    """Name of its position, from 0."""
    max_iterations: Positive = 1000
    """Most items; the result says how many were left."""
    execution_mode: Literal["sequential", "parallel"] = "sequential"
    """One after another, or several at a time."""
    max_concurrency: Positive = 10
    """How many at a time in parallel."""


class WhileOperation(Loop):
    """As long as a condition holds."""

    condition: NonBlank
    """Expression over payload, item, attempt, last and results, checked before each pass."""
    item_variable: str = "attempt"
    """Name of the pass in `{{ … }}`."""
    max_iterations: Positive = 100
    """Most passes."""
    backoff: Annotated[float, Field(ge=1.0, le=100.0, allow_inf_nan=False)] = 1.0
    """Each pause is so many times the one before."""
