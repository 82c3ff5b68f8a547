"""What clients bring to a run: tools of their own, and the answers to the calls that are put to them.

An answer is checked as a whole before anything of it is kept: who gives it, whether the call is still open, the
result against the tool's schema, the sizes. A refused answer changes nothing, so it can be given again, corrected.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pydantic import TypeAdapter, ValidationError

from loopagent.core.client_calls import CallAnswer, outcome_of, read_answer
from loopagent.core.client_tool_spec import ClientToolSpec, same_names
from loopagent.core.effects import CallClientTool
from loopagent.core.events import Settled
from loopagent.core.jsonable import NotJsonError, TooLargeError, to_jsonable
from loopagent.core.names import fold_name
from loopagent.core.outcome import Outcome
from loopagent.core.people import request_id
from loopagent.core.text import clean_json, clean_text
from loopagent.errors import RequestError
from loopagent.intake import field_errors
from loopagent.ports import StoredArtifact
from loopagent.runtime.keep import kept
from loopagent.runtime.needed import needed


if TYPE_CHECKING:
    from loopagent.core.agent_spec import AgentSpec, Approval, Limits
    from loopagent.core.state import RunState
    from loopagent.ports import Store
    from loopagent.runtime.engine import Engine
    from loopagent.runtime.hooking import Hooking


STRICTER: Final = ("auto", "ask", "never")
"""Approvals, each stricter than the one before."""
MEDIA_TYPE: Final = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,126}/[a-z0-9][a-z0-9!#$&^_.+-]{0,126}")
MAX_NAME_CHARS: Final = 200
"""Longest name of an image or file."""
_TOLD: Final = frozenset({"mediaType", "bytes", "name"})
"""What hooks are told of an image or file."""
_TAKEN_BACK: Final = "The call was taken back: its run no longer needs an answer."
_TOOLS: Final = TypeAdapter(tuple[ClientToolSpec, ...])


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """An answer as a client gives it.

    `media`: `{mediaType, data, name?}` each, with `data` in base64. `client`: fingerprint of who gives it, empty
    for somebody who does not say; None for the host's own code, which may answer for any client.
    """

    success: bool = True
    result: Any = None
    error: str = ""
    media: tuple[Mapping[str, Any], ...] = ()
    client: str | None = None


def fingerprint(session: str) -> str:
    """What is stored of a client's session: enough to know it again, not enough to pose as it."""
    return hashlib.sha256(session.encode()).hexdigest() if session else ""


# ---------------------------------------------------------------------- tools


def with_client_tools(
    spec: AgentSpec, given: Iterable[ClientToolSpec | Mapping[str, Any] | str] | None, client: str
) -> AgentSpec:
    """The definition with the tools that the client of one run brings.

    A tool of the client replaces the agent's of the same name. It can make the agent's approval policy stricter,
    never looser. An autonomous agent whose run has no client gets no client tools: nobody would carry them out.

    Raises:
        RequestError: `invalid_client_tools`.
    """
    if given is None:
        attached = spec.interactive or bool(client)
        return spec if attached else spec.model_copy(update={"client_tools": ()})
    tools = _read_tools(given, spec.limits)
    own = {fold_name(one.name): one for one in spec.client_tools}
    brought = {
        fold_name(one.name): _bounded(spec, one, own.get(fold_name(one.name))) for one in tools
    }
    merged = tuple({**own, **brought}.values())
    return spec.model_copy(update={"client_tools": merged})


def _read_tools(given: Iterable[Any], limits: Limits) -> tuple[ClientToolSpec, ...]:
    try:
        tools = _TOOLS.validate_python([clean_json(_plain(one)) for one in given])
    except ValidationError as error:
        errors = [
            {
                "pointer": "/".join(("/clientTools", *map(str, one["loc"]))),
                "detail": one["msg"].removeprefix("Value error, "),
            }
            for one in error.errors()
        ]
        listed = "; ".join(f"{one['pointer']}: {one['detail']}" for one in errors)
        raise _invalid_tools(f"The client tools are not valid: {listed}", errors) from error
    if len(tools) > limits.max_client_tools:
        raise _invalid_tools(
            f"A client may bring {limits.max_client_tools} tools, not {len(tools)}."
        )
    size = sum(len(one.model_dump_json(by_alias=True).encode()) for one in tools)
    if size > limits.max_client_tools_bytes:
        most = limits.max_client_tools_bytes
        raise _invalid_tools(
            f"The client tools have {size} bytes as JSON; at most {most} are taken."
        )
    clash = same_names(tools)
    if clash is not None:
        raise _invalid_tools(f"{clash}.")
    return tools


def _plain(tool: Any) -> Any:
    """A definition as JSON, so that what no store can hold is replaced before it is kept."""
    if isinstance(tool, ClientToolSpec):
        return tool.model_dump(by_alias=True, exclude_unset=True)
    return tool


def _invalid_tools(text: str, errors: list[dict[str, str]] | None = None) -> RequestError:
    places = errors or [{"pointer": "/clientTools", "detail": text}]
    return RequestError("invalid_client_tools", text, errors=places)


def _bounded(
    spec: AgentSpec, tool: ClientToolSpec, replaced: ClientToolSpec | None
) -> ClientToolSpec:
    """A client's tool under the agent's policy, and under what the agent says of its own tool of that name."""
    policy: list[Approval] = [getattr(spec.approval, tool.effects), tool.approval or "auto"]
    if replaced is not None:
        policy.append(spec.approval_of(replaced))
    return tool.model_copy(update={"approval": max(policy, key=STRICTER.index)})


# ---------------------------------------------------------------------- answers


class _NotOpenError(Exception):
    """The call was open when the answer came and is not any more."""


async def answer_call(
    store: Store,
    engine: Engine,
    clock: Callable[[], float],
    call: tuple[str, str],
    given: ToolAnswer,
    *,
    hooking: Hooking,
) -> None:
    """Settle a call with what a client brought back; the first answer counts.

    Hooks after the call are asked here, so that what they keep back is never stored.

    Args:
        store: Where runs and artifacts are kept.
        engine: Takes the answer.
        clock: Seconds since the epoch.
        call: Ids of the run and of the call in it.
        given: The answer.
        hooking: Asks the hooks after the call.

    Raises:
        RequestError: `unknown_run`, `unknown_call` (404), `wrong_client` (403), `already_resolved` (409), `gone`
            (410), `result_too_large` (413), `invalid_result` (422); nothing was changed then.
    """
    run_id, call_id = call
    snapshot = await store.load(run_id)
    if snapshot is None:
        raise RequestError("unknown_run", f"There is no run {run_id!r}.", status=404)
    state = snapshot.state
    _check_client(state, given)
    open_call = state.pending.get(call_id)
    if not isinstance(open_call, CallClientTool) or clock() >= open_call.due:
        raise await _why_not_open(store, f"{run_id}:{call_id}")
    if not await needed(state, store.load):
        raise RequestError("gone", _TAKEN_BACK, status=410)
    answer, files = _checked(state, open_call, given)
    looked = await _looked_at(hooking, state, open_call, answer)
    outcome = await _stored(store, state, open_call, looked, (answer, files))

    def decide(now: RunState) -> list[Settled]:
        still = now.pending.get(call_id)
        at = clock()
        if not isinstance(still, CallClientTool) or at >= still.due:
            raise _NotOpenError
        return [Settled(call_id, outcome, at)]

    try:
        await engine.deliver(run_id, decide)
    except _NotOpenError:
        raise await _why_not_open(store, request_id(state, open_call)) from None


def _check_client(state: RunState, given: ToolAnswer) -> None:
    if state.client and given.client is not None and given.client != state.client:
        text = "This call was put to another client; send the Client-Session that the run was started with."
        raise RequestError("wrong_client", text, status=403)


async def _why_not_open(store: Store, request: str) -> RequestError:
    found = await store.request(request)
    if found is None or found.body.get("kind") != "client_tool":
        return RequestError(
            "unknown_call", f"There is no client tool call {request!r}.", status=404
        )
    if found.status == "resolved":
        return RequestError(
            "already_resolved",
            "The call was answered already; the first answer counts.",
            status=409,
        )
    if found.status == "cancelled":
        return RequestError("gone", _TAKEN_BACK, status=410)
    return RequestError(
        "gone", "The time for this call is over; the answer came too late.", status=410
    )


def _checked(
    state: RunState, call: CallClientTool, given: ToolAnswer
) -> tuple[CallAnswer, list[StoredArtifact]]:
    """The answer in the form that is kept, and its images and files."""
    limits = state.spec.limits
    if not given.success:
        text = clean_text(given.error)
        if len(text) > limits.max_result_chars:
            text = f"{text[: limits.max_result_chars]} … ({len(text)} characters)"
        return CallAnswer(success=False, error=text), []
    try:
        result = to_jsonable(given.result, max_bytes=limits.max_result_bytes)
    except TooLargeError as error:
        raise _too_large(f"The {error}; at most {limits.max_result_bytes} are taken.") from error
    except NotJsonError as error:
        raise _invalid([{"pointer": "/result", "detail": error.reason}]) from error
    problems = read_answer(state.spec.client_tool(call.tool), CallAnswer(True, result))
    if problems:
        raise _invalid(field_errors(problems))
    files = _files(given.media, limits)
    media = tuple(_medium(call, one, file) for one, file in zip(given.media, files, strict=True))
    return CallAnswer(True, result, media=media), files


def _invalid(errors: list[dict[str, str]]) -> RequestError:
    listed = "; ".join(f"{one['pointer']}: {one['detail']}" for one in errors)
    text = f"The answer does not fit: {listed}. The call is still open."
    return RequestError("invalid_result", text, errors=errors)


def _too_large(text: str) -> RequestError:
    return RequestError("result_too_large", f"{text} The call is still open.", status=413)


def _files(media: tuple[Mapping[str, Any], ...], limits: Limits) -> list[StoredArtifact]:
    if len(media) > limits.max_media_items:
        raise _too_large(
            f"A result may hold {limits.max_media_items} images and files, not {len(media)}."
        )
    files: list[StoredArtifact] = []
    wrong: list[dict[str, str]] = []
    left = limits.max_media_bytes
    for index, one in enumerate(media):
        found = _file(one, f"/media/{index}", wrong)
        if found is None:
            continue
        left -= found.size_bytes
        if left < 0:
            raise _too_large(f"Images and files may have {limits.max_media_bytes} bytes together.")
        files.append(found)
    if wrong:
        raise _invalid(wrong)
    return files


def _file(
    medium: Mapping[str, Any], pointer: str, wrong: list[dict[str, str]]
) -> StoredArtifact | None:
    kind, data = str(medium.get("mediaType", "")), medium.get("data")
    if not MEDIA_TYPE.fullmatch(kind):
        wrong.append({"pointer": f"{pointer}/mediaType", "detail": "must be like image/png"})
        return None
    try:
        content = base64.b64decode(str(data).encode(), validate=True)
    except (binascii.Error, ValueError):
        wrong.append({"pointer": f"{pointer}/data", "detail": "must be base64 without line breaks"})
        return None
    return StoredArtifact(hashlib.sha256(content).hexdigest(), kind, len(content), content)


def _medium(call: CallClientTool, given: Mapping[str, Any], file: StoredArtifact) -> dict[str, Any]:
    name = clean_text(str(given.get("name") or ""))[:MAX_NAME_CHARS]
    about = {
        "artifactId": file.artifact_id,
        "callId": call.id,
        "mediaType": file.media_type,
        "bytes": file.size_bytes,
    }
    return {**about, "name": name} if name else about


async def _looked_at(
    hooking: Hooking, state: RunState, call: CallClientTool, answer: CallAnswer
) -> Outcome:
    """What the client brought without its media, as hooks leave it, with what they said."""
    plain = outcome_of(answer)
    outcome = plain.with_value(answer.result) if plain.ok else plain
    media = [{name: said for name, said in one.items() if name in _TOLD} for one in answer.media]
    return await hooking.after_action(state, call, outcome, media)


async def _stored(
    store: Store,
    state: RunState,
    call: CallClientTool,
    outcome: Outcome,
    given: tuple[CallAnswer, list[StoredArtifact]],
) -> Outcome:
    """The outcome that settles the call; what is too large for the prompt is in the store by then."""
    if not outcome.ok:
        return outcome
    answer, files = given
    if any("result" in one for one in outcome.hooks):  # what a hook replaces goes with its media
        answer, files = CallAnswer(True, outcome.value), []
    for one in files:
        await store.put_artifact(state.id, one)
    whole = Outcome.done(outcome.value)
    short = await kept(store, state.id, call.id, whole, state.spec.limits.max_result_chars)
    return outcome.with_value({"result": short.value, "media": list(answer.media)})
