"""What the engine knows about a client tool: plain data, pinned into every run whose client may be asked for it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, cast

from pydantic import Field, field_validator, model_validator

from loopagent.core.action_spec import CallSpec, checked_schema
from loopagent.core.names import fold_name


ORIGIN: Final = {
    "inputSchema": "parameters",
    "outputSchema": "result",
    "defaultTimeoutMs": "timeoutMs",
}
"""Names of fields that other hosts of the protocol use, and ours."""


def same_names(tools: Iterable[ClientToolSpec]) -> str | None:
    """What is wrong when two tools have names that a model cannot tell apart; None when all differ."""
    seen: dict[str, str] = {}
    for one in tools:
        folded = fold_name(one.name)
        if folded in seen:
            return f"{one.name!r} and {seen[folded]!r} are the same name to a model; rename one"
        seen[folded] = one.name
    return None


class ClientToolSpec(CallSpec):
    """One tool that the client carries out. A text alone is the tool of that name, with any parameters."""

    result: dict[str, Any] | None = None
    """JSON Schema that a result must satisfy; null takes any JSON."""
    timeout_ms: int | None = Field(default=None, ge=100, le=3_600_000)
    """How long the client may take; null takes the run's `limits.clientToolTimeoutMs`."""

    @model_validator(mode="before")
    @classmethod
    def _as_written(cls, given: Any) -> Any:
        """Take a bare name, PascalCase keys, and the protocol's own names of the schemas."""
        if isinstance(given, str):
            return {"name": given, "parameters": {"type": "object"}}
        if not isinstance(given, dict):
            return given
        made: dict[str, Any] = {}
        for key, value in cast("dict[str, Any]", given).items():
            camel = str(key)[:1].lower() + str(key)[1:]
            made.setdefault(ORIGIN.get(camel, camel), value)
        return made

    @field_validator("result")
    @classmethod
    def _is_a_schema(cls, schema: dict[str, Any] | None) -> dict[str, Any] | None:
        return None if schema is None else checked_schema(schema, "result")
