"""ClientTools: calls that the client carries out."""

from __future__ import annotations

from typing import Any, ClassVar, Final, Literal

from pydantic import ConfigDict, Field

from loopagent.core.flavours import ACCEPTED
from loopagent.core.problems import Fault, shorten
from loopagent.core.protocol.base import Count, NonBlank, Params, Wire
from loopagent.core.steps import NextStep


CASINGS: Final = {
    "Name": "name",
    "Params": "params",
    "TimeoutMs": "timeoutMs",
    "Description": "description",
}


def _both_casings(schema: dict[str, Any]) -> None:
    """Document PascalCase, which is accepted and never asked for."""
    fields: dict[str, Any] = schema["properties"]
    schema[ACCEPTED] = {
        "properties": {pascal: fields[camel] for pascal, camel in CASINGS.items()},
        "required": None,
        "anyOf": [
            {"required": [key], "properties": {key: {"type": "string"}}} for key in ("name", "Name")
        ],
    }


class ClientToolCall(Wire):
    """One call; keys may come in camelCase or PascalCase."""

    model_config = ConfigDict(json_schema_extra=_both_casings)

    name: NonBlank
    """Name of the client tool."""
    params: Params = {}
    """Its parameters."""
    timeout_ms: Count | None = None
    """Milliseconds to wait for the client."""
    description: str | None = None
    """What the call does, in a few words for the person."""

    @classmethod
    def tidy(cls, fields: dict[str, Any]) -> dict[str, Any]:
        """Take `Name` as `name` and so on; two different values are a problem."""
        if not any(pascal in fields for pascal in CASINGS):
            return fields
        made = {key: one for key, one in fields.items() if key not in CASINGS}
        for pascal, camel in CASINGS.items():
            if pascal in fields:
                made[camel] = _agreed(pascal, camel, fields)
        return made


def _agreed(pascal: str, camel: str, fields: dict[str, Any]) -> Any:
    value, other = fields[pascal], fields.get(camel)
    if other is None or other == value:
        return value
    got = f"{shorten(other)} and {shorten(value)}"
    return Fault(f"expected {camel} and {pascal} to agree, got {got}", got)


class ClientTools(NextStep):
    """Have the client carry out calls and wait for its answers."""

    type: Literal["ClientTools"]
    client_tools: list[ClientToolCall] = Field(min_length=1)
    """Calls to make, one after another."""
    body: ClassVar = ("clientTools",)
    runs: ClassVar = False
    example: ClassVar[dict[str, Any]] = {
        "taskComplete": False,
        "nextStep": {
            "type": "ClientTools",
            "clientTools": [{"name": "open-map", "params": {"city": "Porto"}}],
        },
    }
