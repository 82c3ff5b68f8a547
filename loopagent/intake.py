"""What callers hand in, checked and brought into the form that is stored."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Mapping
from secrets import token_hex
from typing import Any, Final, Literal, cast, get_args

from pydantic import ValidationError
from pydantic.alias_generators import to_camel

from loopagent.access import OPERATOR, Caller
from loopagent.agent import Agent
from loopagent.core.agent_spec import AgentSpec, Limits
from loopagent.core.effects import AskHuman
from loopagent.core.events import Answer, ModeChanged, Settled
from loopagent.core.jsonable import NotJsonError, TooLargeError, to_jsonable
from loopagent.core.origin import Origin
from loopagent.core.outcome import Outcome
from loopagent.core.people import read_answer
from loopagent.core.plan_state import Mode
from loopagent.core.problems import Problem
from loopagent.core.schema_check import schema_problems
from loopagent.core.state import RunState
from loopagent.core.text import clean_text
from loopagent.errors import ConfigError, RequestError
from loopagent.ports import RequestRow


_PLACES: Final = frozenset({"http", "https", "scripted"})
"""Providers whose models are addresses or files."""
DEFAULT_MODEL_VARIABLE = "LOOPAGENT_MODEL"


def choose_model(spec: AgentSpec, wanted: str | None, default: str | None, given: object) -> str:
    """Which model answers a run (decision seat A1): the caller's, the agent's, the host's; never another.

    Args:
        spec: The agent.
        wanted: `provider:model` that the caller asks for.
        default: The host's.
        given: The model object the agent was made with, or None.

    Raises:
        RequestError: `model_override`, `no_model`.
    """
    if wanted is not None and wanted != spec.model and not spec.allow_model_override:
        text = f"Agent {spec.name!r} does not let a caller choose the model."
        raise RequestError("model_override", text)
    if wanted is None and given is not None:
        return f"object:{spec.name}"
    name = wanted or spec.model or default
    if name is None:
        where = f"set `model` in its definition, pass one, or set {DEFAULT_MODEL_VARIABLE}"
        raise RequestError("no_model", f"Agent {spec.name!r} names no model: {where}.")
    return name


def check_named(model: str, known: Container[str]) -> None:
    """Refuse a model that a caller names by where it is, unless the host uses it itself.

    The key of the host would go to whatever address a caller likes, and any file be read.

    Raises:
        RequestError: `model_override`.
    """
    provider, _, rest = model.partition(":")
    if model not in known and (provider.strip().lower() in _PLACES or "//" in rest):
        text = f"{model[:100]!r} is an address or a file, which only the operator may choose"
        raise RequestError("model_override", f"{text}: name a model like openai:NAME.")


def usable_model(name: str, open_model: Callable[[str], object]) -> str:
    """The name of a model that was looked for and found; `object:…` is one that the agent was made with.

    Raises:
        RequestError: `no_model`.
    """
    try:
        if not name.startswith("object:"):
            open_model(name)
    except ConfigError as error:
        raise RequestError("no_model", str(error)) from error
    return name


def new_run(
    spec: AgentSpec,
    model: str,
    payload: Any,
    whose: Mapping[str, Any],
    origin: Origin | None = None,
) -> RunState:
    """A run before anything happened in it.

    Args:
        spec: Its pinned definition.
        model: `provider:model` that answers.
        payload: What it starts with.
        whose: `user`, `tenant`, `conversation`, `client` and `notify` of `RunState`.
        origin: The trigger that starts it, and its event.
    """
    run_id = f"run_{token_hex(8)}" if origin is None else origin.run_id
    about = {"spec": spec, "model": model, "payload": payload, "origin": origin}
    return RunState(id=run_id, root_id=run_id, **cast("Any", {**about, **whose}))


def with_limits(spec: AgentSpec, limits: dict[str, Any] | None) -> AgentSpec:
    """The definition with limits that a caller gave for one run.

    Raises:
        RequestError: `invalid_limits`.
    """
    if not limits:
        return spec
    try:
        merged = spec.limits.model_validate({**spec.limits.model_dump(by_alias=True), **limits})
    except ValidationError as error:
        raise invalid_limits(limit_errors(error)) from error
    return spec.model_copy(update={"limits": merged})


def limit_errors(error: ValidationError) -> list[dict[str, str]]:
    """What is wrong with limits, under the names that callers give them."""
    return [
        {
            "pointer": "/" + "/".join(to_camel(str(part)) for part in one["loc"]),
            "detail": one["msg"],
        }
        for one in error.errors()
    ]


def invalid_limits(errors: list[dict[str, str]]) -> RequestError:
    """The refusal of limits."""
    listed = "; ".join(f"{one['pointer']}: {one['detail']}" for one in errors)
    return RequestError("invalid_limits", f"The limits are not valid: {listed}.", errors=errors)


def with_plan_mode(spec: AgentSpec, wanted: bool | None) -> AgentSpec:
    """The definition with plan mode as a caller wants it for one run; pinned, so that nothing said later changes it.

    Args:
        spec: The agent.
        wanted: Whether a plan must be approved first; None leaves it to the agent.

    Raises:
        RequestError: `plan_mode`: the agent does not let the caller choose, or nobody could approve.
    """
    required = spec.plan_mode == "required"
    if wanted is None or wanted == required:
        return spec
    if required:
        raise RequestError("plan_mode", f"Agent {spec.name!r} always plans before it acts.")
    if spec.plan_mode == "off":
        raise RequestError("plan_mode", f"Agent {spec.name!r} has no plan mode (planMode: off).")
    if not spec.interactive:
        text = f"Nobody can approve a plan of agent {spec.name!r}: it is autonomous."
        raise RequestError("plan_mode", text)
    return spec.model_copy(update={"plan_mode": "required"})


def message(text: str, spec: AgentSpec) -> str:
    """What somebody says, fit to be stored.

    Raises:
        RequestError: `invalid_message`.
    """
    most = spec.limits.max_message_chars
    if not text.strip():
        raise RequestError(
            "invalid_message",
            "The message is empty.",
            errors=[{"pointer": "/message", "detail": "empty"}],
        )
    if len(text) > most:
        raise RequestError(
            "invalid_message", f"The message has {len(text)} characters; at most {most} are taken."
        )
    return clean_text(text)


def check_choice(name: str, given: object, allowed: Iterable[str]) -> None:
    """Refuse a word that means nothing, before it is taken for one of those that do.

    Raises:
        RequestError: `invalid_NAME`, with the words that may be said.
    """
    words = tuple(allowed)
    if given not in words:
        text = f"{name} is one of {', '.join(words)}, not {given!r}."
        errors = [{"pointer": f"/{to_camel(name)}", "detail": f"one of {', '.join(words)}"}]
        raise RequestError(f"invalid_{name}", text, errors=errors)


def check_open(state: RunState) -> None:
    """Refuse a message that the run cannot take.

    Raises:
        RequestError: `run_ended` (409), `too_many_messages` (429).
    """
    if state.ended or state.farewell is not None:
        status = state.status if state.farewell is None else state.farewell.status
        text = f"The run has ended ({status}); start a new one."
        raise RequestError("run_ended", text, status=409)
    most = state.spec.limits.max_queued_messages
    if len(state.mail) >= most:
        text = f"{most} messages are waiting already."
        raise RequestError("too_many_messages", text, status=429, retryable=True)


def plain(name: str, given: Any, code: str, *, max_bytes: int | None = None) -> Any:
    """What somebody hands in, as the plain JSON that is stored.

    Raises:
        RequestError: `code`; it is too large, or something in it has no form as JSON: the message says where.
    """
    try:
        return to_jsonable(given, max_bytes=max_bytes)
    except TooLargeError as error:
        text = f"{name} is too large: {error.reason}; at most {max_bytes} are taken."
        raise RequestError(code, text) from error
    except NotJsonError as error:
        text = f"{name}{error.path} is not JSON: {error.reason}"
        raise RequestError(code, text) from error


def checked_metadata(given: Any, limits: Limits) -> Any:
    """What a caller says about a run.

    Raises:
        RequestError: `invalid_metadata`.
    """
    return plain("metadata", given, "invalid_metadata", max_bytes=limits.max_metadata_bytes)


def payload(agent: Agent[Any], given: Any, max_bytes: int) -> Any:
    """The payload a run starts with: the caller's, of at most `max_bytes` as JSON, or the agent's; as plain JSON."""
    spec = agent.spec
    if given is None:
        initial = spec.payload.initial
        return {} if initial is None else initial
    payload = plain("payload", given, "invalid_payload", max_bytes=max_bytes)
    schema = agent.input_schema
    problems = schema_problems(schema, payload, "payload") if schema is not None else []
    if problems:
        raise RequestError(
            "invalid_payload",
            "The payload does not fit the agent's schema.",
            errors=field_errors(problems),
        )
    return payload


def field_errors(problems: list[Problem]) -> list[dict[str, str]]:
    """Problems as the entries of a caller's error: each place as a JSON Pointer."""
    return [{"pointer": _pointer(one.path), "detail": one.message} for one in problems]


def _pointer(path: str) -> str:
    return "/" + re.sub(r"\[(\d+)\]", r"/\1", path.replace(".", "/"))


def mode_change(
    agents: Mapping[str, Agent[Any]], state: RunState, mode: Mode, at: float, *, by: str
) -> ModeChanged:
    """The event that a switch between planning and acting is.

    Args:
        agents: The agents as they are known now, by name.
        state: The run.
        mode: What it is to be switched to.
        at: When, in seconds since the epoch.
        by: Who wants it.

    Raises:
        RequestError: `run_ended` or `plan_open` (409), `plan_mode`, `invalid_mode`.
    """
    check_choice("mode", mode, get_args(Mode))
    if state.ended:
        text = f"The run has ended ({state.status}); start a new one."
        raise RequestError("run_ended", text, status=409)
    if state.plan.status == "draft":
        text = "A plan waits for a decision; approve or reject it."
        raise RequestError("plan_open", text, status=409)
    agent = agents.get(state.spec.name)
    with_plan_mode(state.spec if agent is None else agent.spec, mode == "plan")
    return ModeChanged(mode, at, clean_text(by))


def answer_of(
    decision: str,
    values: dict[str, Any],
    edited: Any,
    feedback: str,
    *,
    by: str,
    remember: Literal["", "run", "session"] = "",
) -> Answer:
    """What somebody answered, fit to be stored; whether it holds is not looked at here.

    Raises:
        RequestError: `invalid_answer`: it has no form as JSON.
    """
    return Answer(
        decision=decision,  # type: ignore[arg-type]  # checked against what the request allows
        values=plain("values", values, "invalid_answer"),
        edited=plain("edited", edited, "invalid_answer"),
        feedback=clean_text(feedback),
        by=clean_text(by),
        remember=remember,
    )


def settled(
    state: RunState,
    stored: RequestRow,
    answer: Answer,
    seen: tuple[int | None, str | None],
    at: float,
    *,
    who: Caller = OPERATOR,
) -> Settled:
    """The event that an answer to a request is.

    Args:
        state: The run as it is now.
        stored: The request as the store has it.
        answer: What was answered.
        seen: Revision and content hash that the answer is about; None where the caller does not say.
        at: When, in seconds since the epoch.
        who: Who answers.

    Raises:
        RequestError: `not_an_approver` (403), `already_resolved` or `stale` (409), `gone` (410), `invalid_answer`
            (422).
    """
    effect_id = stored.id.partition(":")[2]
    ask = state.pending.get(effect_id)
    if stored.body.get("kind") == "client_tool":
        where = f"POST /runs/{stored.run_id}/client-tools/{effect_id}"
        raise RequestError(
            "client_tool", f"This is a call of a client tool: answer it with {where}."
        )
    if not isinstance(ask, AskHuman):
        raise not_open(stored)
    check_approver(ask, who)
    if ask.expires_at and at >= ask.expires_at:
        raise RequestError("gone", "The request has expired.", status=410)
    check_seen(ask, *seen)
    body, problems = read_answer(ask, answer)
    if problems:
        errors = field_errors(problems)
        listed = "; ".join(f"{one.path}: {one.message}" for one in problems)
        raise RequestError("invalid_answer", f"The answer does not fit: {listed}.", errors=errors)
    return Settled(effect_id, Outcome.done(body), at)


def not_open(stored: RequestRow) -> RequestError:
    """Why a request that is not open any more cannot be answered."""
    if stored.status == "cancelled":
        return RequestError(
            "gone", "The request was closed: its run no longer needs an answer.", status=410
        )
    if stored.status == "expired":
        return RequestError("gone", "The request has expired.", status=410)
    done = stored.resolution or {}
    said, by = done.get("decision", "answered"), done.get("by")
    who = f" by {by}" if by else ""
    return RequestError(
        "already_resolved", f"The request was answered already: {said}{who}.", status=409
    )


def check_approver(ask: AskHuman, who: Caller) -> None:
    """Refuse an answer of somebody whom the request does not name.

    Raises:
        RequestError: `not_an_approver` (403).
    """
    approvers = [str(one) for one in ask.subject.get("approvers", ())]
    if not who.approves(approvers):
        text = f"Only {', '.join(approvers)} may answer this request; use a key of one of them."
        raise RequestError("not_an_approver", text, status=403)


def check_seen(ask: AskHuman, revision: int | None, content_hash: str | None) -> None:
    """Refuse an answer to something that has changed since it was shown.

    Raises:
        RequestError: `stale` (409).
    """
    stale_revision = revision is not None and revision != ask.revision
    stale_content = content_hash is not None and content_hash != ask.content_hash
    if stale_revision or stale_content:
        raise RequestError(
            "stale", "The request has changed since it was shown; look at it again.", status=409
        )
