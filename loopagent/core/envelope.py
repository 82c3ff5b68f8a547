"""The reply of one turn as a type, and its validation: all problems at once, in words a model can act on."""

from __future__ import annotations

from collections.abc import Callable
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
    SchemaValidator,
    core_schema,
)

from loopagent.core.problems import Problem, problems_of
from loopagent.core.protocol.base import VISIBLE, Number, Wire, wire_name
from loopagent.core.protocol.commands import ActionableCommand, AutomaticCommand
from loopagent.core.protocol.forms import AgentResponseForm
from loopagent.core.protocol.payload_change import AgentPayloadChangeRequest
from loopagent.core.protocol.scratchpad import AgentScratchpad
from loopagent.core.protocol.tools import ArtifactToolCall, ConversationToolCall, MemoryWriteRequest
from loopagent.core.steps import STEP_TYPES, NextStep
from loopagent.core.steps.actions import ActionCall, Actions


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


def everyday(make: Callable[..., SchemaValidator]) -> SchemaValidator | None:
    """Takes a reply of a few plain fields whose step, if it has one, calls actions; exactly as it is, or not at all.

    None when `make`, which makes it of a schema, cannot: what it is told is no public interface of pydantic. Every
    reply is looked at closely then.
    """
    text = core_schema.str_schema(strict=True)
    data = core_schema.dict_schema(text, core_schema.any_schema(), strict=True)
    name = core_schema.str_schema(strict=True, pattern=VISIBLE)
    call = _object(ActionCall, name=name, params=data)
    calls = core_schema.list_schema(call, strict=True, min_length=1)
    step = _object(Actions, type=core_schema.literal_schema(["Actions"]), actions=calls)
    usual = {"reasoning": text, "message": text, "task_complete": _FLAG, "next_step": step}
    fields = {name: usual.get(name, _NEVER) for name in LoopAgentResponse.model_fields}
    optional = {
        key: core_schema.with_default_schema(one, default=None) for key, one in fields.items()
    }
    try:
        # With its own validators for the classes, it would take what they take.
        return make(_object(LoopAgentResponse, **optional), _use_prebuilt=False)
    except TypeError:
        return None


def _object(made: type[Wire], **fields: CoreSchema) -> CoreSchema:
    parts = {
        name: core_schema.model_field(one, validation_alias=wire_name(name))
        for name, one in fields.items()
    }
    inner = core_schema.model_fields_schema(parts, extra_behavior="forbid")
    return core_schema.model_schema(made, inner)


_FLAG: Final = core_schema.bool_schema(strict=True)
_NEVER: Final = core_schema.is_instance_schema(type(Ellipsis))
"""No JSON value: a reply with such a field is to be looked at closely."""
_EVERYDAY: Final = everyday(SchemaValidator)


def envelope_at_a_glance(
    data: Any, max_entries: int
) -> tuple[dict[str, Any], LoopAgentResponse] | None:
    """An everyday reply: a few plain fields and calls of actions that are plainly right.

    Seeing that takes a third of the time of finding a reply canonical and validating it, with the same result.

    Args:
        data: The reply as any JSON value; it is not changed.
        max_entries: Most entries in all lists of the protocol together.

    Returns:
        The reply as canonical JSON and as a typed object; None when it has to be looked at closely.
    """
    if type(data) is not dict or not data or _EVERYDAY is None:
        return None
    try:
        response: LoopAgentResponse = _EVERYDAY.validate_python(data)
    except ValidationError:
        return None
    step = response.next_step
    if step is None:
        return data, response
    if response.task_complete or len(data["nextStep"]["actions"]) > max_entries:
        return None
    reply: dict[str, Any] = data.copy()
    reply["nextStep"] = reply.pop("nextStep")  # comes last in canonical form
    return reply, response


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
