"""The reply of one turn as a type, and its validation: all problems at once, in words a model can act on."""

from __future__ import annotations

from typing import Annotated, Any, Final, cast

from pydantic import (
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    SerializeAsAny,
    StrictBool,
    ValidationError,
)
from pydantic_core import (
    CoreSchema,
    InitErrorDetails,
    PydanticCustomError,
    PydanticKnownError,
    core_schema,
)

from loopagent.core.problems import Problem, problems_of
from loopagent.core.protocol.base import Number, Wire
from loopagent.core.protocol.commands import ActionableCommand, AutomaticCommand
from loopagent.core.protocol.forms import AgentResponseForm
from loopagent.core.protocol.payload_change import AgentPayloadChangeRequest
from loopagent.core.protocol.scratchpad import AgentScratchpad
from loopagent.core.protocol.tools import ArtifactToolCall, ConversationToolCall, MemoryWriteRequest
from loopagent.core.steps import STEP_TYPES, NextStep


def _step(value: Any) -> NextStep:
    if isinstance(value, NextStep):
        return value
    if not isinstance(value, dict):
        raise PydanticKnownError("dict_type")
    given = cast("dict[str, Any]", value)
    name = given.get("type")
    step = STEP_TYPES.get(name) if isinstance(name, str) else None
    if step is None:
        raise ValidationError.from_exception_data("NextStep", [_wrong_type(given)])
    return step.model_validate(given)


def _wrong_type(given: dict[str, Any]) -> InitErrorDetails:
    if given.get("type") is None:
        return {"type": "missing", "loc": ("type",), "input": given}
    names: dict[str, Any] = {"names": ", ".join(STEP_TYPES)}
    error = PydanticCustomError("step_type", "one of {names}", names)
    return {"type": error, "loc": ("type",), "input": given["type"]}


class _ByType:
    """Validates a step by the class that is registered for its `type`.

    The registry may grow at any time, so the schema says no more than `object`; who writes one fills it in.
    """

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        del source, handler
        return core_schema.no_info_plain_validator_function(_step)

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        del schema, handler
        return {"type": "object"}


class LoopAgentResponse(Wire):
    """One reply: what to say, what to change, what to do next, or that the task is done."""

    reasoning: str | None = None
    """Why, in a sentence or two; for the record."""
    message: str | None = None
    """Text for the person, under 100 words."""
    task_complete: StrictBool | None = None
    """True ends the run."""
    next_step: Annotated[SerializeAsAny[NextStep], _ByType()] | None = None
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
    confidence: Number | None = None
    """0 to 1; for the record."""


_ABSENT: Final = dict.fromkeys(LoopAgentResponse.model_fields)
_PLAIN: Final[dict[str, tuple[str, type[Any]]]] = {
    "reasoning": ("reasoning", str),
    "message": ("message", str),
    "taskComplete": ("task_complete", bool),
}
"""What most replies hold beside a step: wire key → field and type."""


def envelope_at_a_glance(
    data: object, max_entries: int
) -> tuple[dict[str, Any], LoopAgentResponse] | None:
    """An everyday reply: a few plain fields and a step that is plainly right.

    Seeing that takes a third of the time of finding a reply canonical and validating it, with the same result.

    Args:
        data: The reply as any JSON value; it is not changed.
        max_entries: Most entries in all lists of the protocol together.

    Returns:
        The reply as canonical JSON and as a typed object; None when it has to be looked at closely.
    """
    if type(data) is not dict or not data:
        return None
    rest = cast("dict[str, Any]", data).copy()
    asked = rest.pop("nextStep", None)
    fields, given = _ABSENT.copy(), set[str]()
    for key, value in rest.items():
        name, kind = _PLAIN.get(key, ("", None))
        if type(value) is not kind:
            return None
        fields[name] = value
        given.add(name)
    if "nextStep" in data:
        step = _step_at_a_glance(asked, max_entries)
        if step is None or fields["task_complete"]:
            return None
        rest["nextStep"], fields["next_step"] = asked, step
        given.add("next_step")
    return rest, LoopAgentResponse.made_of(fields, given)


def _step_at_a_glance(value: Any, most: int) -> NextStep | None:
    if type(value) is not dict:
        return None
    name = value.get("type")
    step = STEP_TYPES.get(name) if type(name) is str else None
    return None if step is None else step.at_a_glance(value, most)


def validate_envelope(data: object) -> LoopAgentResponse | list[Problem]:
    """Check a whole reply.

    Args:
        data: The reply as a JSON value in canonical spelling.

    Returns:
        The reply as a typed object, or everything that is wrong with it, in words a model can act on.
    """
    try:
        return LoopAgentResponse.model_validate(data)
    except ValidationError as error:
        return problems_of(error, data)
