"""ClientTools: calls that the client carries out."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from loopagent.core.protocol.base import Params, Wire
from loopagent.core.steps import NextStep


CASINGS = {
    "Name": "name",
    "Params": "params",
    "TimeoutMs": "timeoutMs",
    "Description": "description",
}


class ClientToolCall(Wire):
    """One call; keys may come in camelCase or PascalCase."""

    name: str = Field(min_length=1)
    params: Params = {}
    timeout_ms: int | None = Field(default=None, ge=0)
    """Milliseconds to wait for the client."""
    description: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _one_casing(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        fields: dict[str, Any] = dict(data)  # pyright: ignore[reportUnknownArgumentType]
        for pascal, camel in CASINGS.items():
            other = fields.pop(pascal, None)
            if other is None:
                continue
            if fields.get(camel) not in (None, other):
                message = f"{camel} and {pascal} say different things"
                raise ValueError(message)
            fields[camel] = other
        return fields


class ClientTools(NextStep):
    """Have the client carry out calls and wait for its answers."""

    type: Literal["ClientTools"]
    client_tools: list[ClientToolCall] = Field(min_length=1)
    body: ClassVar = ("clientTools",)
    runs: ClassVar = False
    example: ClassVar[dict[str, Any]] = {
        "taskComplete": False,
        "nextStep": {
            "type": "ClientTools",
            "clientTools": [{"name": "open-map", "params": {"city": "Porto"}}],
        },
    }
