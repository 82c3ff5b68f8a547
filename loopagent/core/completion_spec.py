"""When a run counts as done: what a definition asks of a completion claim."""

from __future__ import annotations

from pydantic import Field, model_validator

from loopagent.core.spec import Spec


class VerifierSpec(Spec):
    """Who has to agree that a task is done: an action of the agent that only reads, or another model."""

    action: str | None = None
    """An action; it is given `task`, `message` and `payload`, as far as it has such parameters."""
    model: str | None = None
    """`provider:model`, never one that does the work."""
    instructions: str = ""
    """What a model is to look at, beside the general."""

    @model_validator(mode="after")
    def _one(self) -> VerifierSpec:
        if (self.action is None) == (self.model is None):
            raise ValueError("a verifier is either an action or a model")
        return self


class Completion(Spec):
    """When a completion claim is accepted."""

    require_tasks_done: bool = False
    """Every scratchpad task must be completed."""
    min_calls: dict[str, int] = Field(default_factory=dict)
    """Successful calls an action needs before the run may complete."""
    verifier: VerifierSpec | None = None
    """Who has to agree."""
