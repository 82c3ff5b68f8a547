"""The reply of one turn as a type, and its validation: all problems at once, in words a model can act on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import SerializeAsAny, StrictBool, ValidationError, field_validator

from loopagent.core.problems import Problem
from loopagent.core.protocol.base import Wire
from loopagent.core.protocol.commands import ActionableCommand, AutomaticCommand
from loopagent.core.protocol.forms import AgentResponseForm
from loopagent.core.protocol.payload_change import AgentPayloadChangeRequest
from loopagent.core.protocol.scratchpad import AgentScratchpad
from loopagent.core.protocol.tools import ArtifactToolCall, ConversationToolCall, MemoryWriteRequest
from loopagent.core.steps import STEP_TYPES, NextStep


if TYPE_CHECKING:
    from collections.abc import Iterable

    from pydantic_core import ErrorDetails


MAX_GOT_CHARS = 80


class LoopAgentResponse(Wire):
    """One reply: what to say, what to change, what to do next, or that the task is done."""

    reasoning: str | None = None
    """Why, in a sentence or two; for the record."""
    message: str | None = None
    """Text for the person, under 100 words."""
    task_complete: StrictBool | None = None
    """True ends the run."""
    next_step: SerializeAsAny[NextStep] | None = None
    """What to do next, one of the types below."""
    payload_change_request: AgentPayloadChangeRequest | None = None
    """Changes to the payload."""
    scratchpad: AgentScratchpad | None = None
    """Changes to your private notes."""
    response_form: AgentResponseForm | None = None
    """Form to show with the message."""
    actionable_commands: list[ActionableCommand] | None = None
    """Buttons to offer."""
    automatic_commands: list[AutomaticCommand] | None = None
    """Things the client does at once."""
    artifact_tool_calls: list[ArtifactToolCall] | None = None
    """Look into artifacts."""
    conversation_tool_calls: list[ConversationToolCall] | None = None
    """Look into the stored conversation."""
    memory_writes: list[MemoryWriteRequest] | None = None
    """Notes for later runs."""
    confidence: float | None = None
    """0 to 1; for the record."""

    @field_validator("next_step", mode="wrap")
    @classmethod
    def _by_type(cls, value: Any, handler: Any) -> Any:
        del handler
        if value is None or isinstance(value, NextStep):
            return value
        kind = value.get("type") if isinstance(value, dict) else None
        step = STEP_TYPES.get(kind) if isinstance(kind, str) else None
        if step is None:
            message = f"type must be one of {', '.join(STEP_TYPES)}"
            raise ValueError(message)
        return step.model_validate(value)


def validate_envelope(data: dict[str, Any]) -> LoopAgentResponse | list[Problem]:
    """The reply as a typed object, or everything that is wrong with it."""
    try:
        return LoopAgentResponse.model_validate(data)
    except ValidationError as error:
        return problems_of(error.errors(include_url=False))


def problems_of(errors: Iterable[ErrorDetails]) -> list[Problem]:
    """Pydantic's complaints as problems, with paths as they stand in the JSON."""
    return [Problem(_path(one["loc"]), _message(one), _got(one)) for one in errors]


def _path(loc: tuple[int | str, ...]) -> str:
    """`('nextStep', 'actions', 0, 'name')` → `nextStep.actions[0].name`; tags of unions are left out."""
    path = ""
    for part in loc:
        if isinstance(part, int):
            path += f"[{part}]"
        elif part in _TAGS:
            continue
        else:
            path += f".{part}" if path else part
    return path


def _message(error: ErrorDetails) -> str:
    message = error["msg"].removeprefix("Value error, ")
    return message[:1].lower() + message[1:]


def _got(error: ErrorDetails) -> str:
    if error["type"] == "missing":
        return "nothing"
    text = repr(error.get("input"))
    return text if len(text) <= MAX_GOT_CHARS else text[:MAX_GOT_CHARS] + "…"


_TAGS = frozenset(
    {
        "open:resource",
        "open:url",
        "client:capture-data-snapshot",
        "refresh:data",
        "notification",
        "other",
        "function-before[_read_params(), dict[str,any]]",
    }
)
