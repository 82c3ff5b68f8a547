"""What the engine knows about an action: plain data, pinned into every run that may call it."""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import Field, field_validator, model_validator

from loopagent.core.asking import Asking
from loopagent.core.schema_check import schema_problem, too_deep
from loopagent.core.spec import Spec


EffectClass = Literal["read", "write", "external", "irreversible"]


MAX_SCHEMA_LEVELS: Final = 100
"""Nested objects and arrays in a schema; deeper ones fit neither the prompt nor the store."""


def checked_schema(schema: dict[str, Any], what: str) -> dict[str, Any]:
    """A schema that can be used and kept.

    Raises:
        ValueError: It is wrong; the message says where.
    """
    if too_deep(schema, MAX_SCHEMA_LEVELS):
        raise ValueError(
            f"the schema of the {what} is nested more than {MAX_SCHEMA_LEVELS} levels deep"
        )
    problem = schema_problem(schema)
    if problem is not None:
        raise ValueError(f"the schema of the {what} is not valid: {problem}")
    return schema


class ActionRetry(Spec):
    """How often the engine itself repeats a failed call; only repeatable actions are ever repeated."""

    max_attempts: int = Field(default=1, ge=1, le=10)
    """Attempts in all; 1 means no repetition."""
    backoff_seconds: float = Field(default=1.0, ge=0, le=3_600, allow_inf_nan=False)
    """Wait before the second attempt; doubles with each further one."""


class CallSpec(Spec):
    """Something a model may call by name, whoever carries it out."""

    name: str = Field(min_length=1, max_length=100)
    """Name the model calls it by; no control characters, no space at either end."""
    description: str = ""
    """What it does, for the model."""
    parameters: dict[str, Any] = Field(default_factory=lambda: {"type": "object", "properties": {}})
    """JSON Schema of the parameters, an object."""
    effects: EffectClass = "write"
    """What a call does to the world; anything not declared read-only counts as writing."""
    approval: Literal["auto", "ask", "never"] | None = None
    """Overrides the agent's approval policy for this one."""

    @field_validator("name")
    @classmethod
    def _can_be_written(cls, name: str) -> str:
        if not name.isprintable() or name != name.strip():
            raise ValueError("a name has no control characters and no space at either end")
        return name

    @field_validator("parameters")
    @classmethod
    def _describes_an_object(cls, schema: dict[str, Any]) -> dict[str, Any]:
        if schema.get("type") != "object":
            raise ValueError('the schema of the parameters must say "type": "object"')
        return checked_schema(schema, "parameters")


class ActionSpec(CallSpec):
    """One action as the model and the engine see it."""

    retry: ActionRetry = ActionRetry()
    """The engine's own repetition of failed calls."""
    timeout_ms: int = Field(default=60_000, ge=1_000, le=3_600_000)
    """How long a call may take, all attempts together."""
    idempotent: bool = False
    """A call with the same idempotency key has its effect once, however often it is made."""
    serial: bool = False
    """Calls of this action never run side by side."""
    max_calls: int | None = Field(default=None, ge=1)
    """Calls allowed in one run."""
    max_result_chars: int | None = Field(default=None, ge=100)
    """A longer result, as JSON, is kept under a handle and shown in short; never more than the agent's own limit."""
    on_unknown: Literal["report", "ask"] = "report"
    """After a crash in the middle of a call that may not be repeated: tell the model, or ask a person."""
    asking: Asking | None = None
    """How a person is asked about a call, beside whether."""
    fingerprint: str = ""
    """Digest of what carries it out, where that is known: what was remembered of another one does not count."""

    @model_validator(mode="after")
    def _asks_soundly(self) -> ActionSpec:
        asking = self.asking
        if asking is None:
            return self
        if asking.when is not None and self.approval != "ask":
            raise ValueError("`when` needs approval `ask`: it says which calls are not asked about")
        if asking.remember != "never" and self.effects == "irreversible":
            raise ValueError(
                "what cannot be taken back is asked about every time: remember is never"
            )
        known = self.parameters.get("properties") or {}
        unknown = [one for one in asking.show if one not in known]
        if unknown:
            raise ValueError(f"`show` names {unknown[0]!r}, which is none of the parameters")
        return self

    definition: str = Field(default="", pattern=r"^([0-9a-f]{64})?$")
    """Hash under which the library keeps what calls do; empty for actions that the process itself has."""

    @property
    def repeatable(self) -> bool:
        """Whether running a call again does no harm."""
        return self.idempotent or self.effects == "read"
