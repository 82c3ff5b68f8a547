"""A recorded run gone through again: what its log leads to, compared with what was committed then.

A recording is JSON Lines: first the run as it is now with its pinned definition, then one line a transaction. It says
everything about the run, in the names of the engine, and nothing is performed when it is replayed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, cast

from pydantic import TypeAdapter
from pydantic_core import from_json, to_json

from loopagent.core.advance import advance
from loopagent.core.agent_spec import AgentSpec
from loopagent.core.events import Settled
from loopagent.core.prompt import volatile_message
from loopagent.core.state import SCHEMA_VERSION, RunState
from loopagent.core.state_bytes import dump_state, load_state
from loopagent.errors import CorruptError, RequestError
from loopagent.ports import ChatMessage, LogEntry, Store
from loopagent.runtime.fold import beginning
from loopagent.runtime.view import ChatView


FORMAT: Final = "loopagent-log"
VERSION: Final = 1
MODEL: Final = ":model"
_ENTRY: TypeAdapter[LogEntry] = TypeAdapter(LogEntry)


@dataclass(frozen=True, slots=True)
class Recording:
    """A run and all that was ever committed of it."""

    state: RunState
    entries: tuple[LogEntry, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """Something that is not as it was."""

    entry: int
    """Number of the transaction, from 1."""
    turn: int
    what: Literal["facts", "messages", "prompt", "state"]
    detail: str


@dataclass(slots=True)
class Replayed:
    """What came of a replay."""

    entries: int = 0
    turns: int = 0
    prompts: int = 0
    """Prompts that were rendered again and compared by their SHA-256."""
    differences: list[Difference] = field(default_factory=list[Difference])


async def record(store: Store, run_id: str) -> Recording:
    """A run of a store with its log.

    Raises:
        RequestError: `unknown_run` (404); `log_gone` (410), a part of the log is not kept any more.
    """
    snapshot = await store.load(run_id)
    if snapshot is None:
        raise RequestError("unknown_run", f"There is no run {run_id!r}.", status=404)
    entries = await store.log(run_id)
    if [one.version for one in entries] != list(range(1, snapshot.version + 1)):
        text = (
            f"The log of run {run_id!r} was removed after its time; what the run came to is kept."
        )
        raise RequestError("log_gone", text, status=410)
    return Recording(snapshot.state, tuple(entries))


def recording_lines(recording: Recording) -> Iterator[str]:
    """A recording as lines of JSON, without their ends."""
    state = recording.state
    spec = state.spec.model_dump_json(by_alias=True).encode()
    head = b'{"format":%b,"version":%d,"spec":%b,"state":%b}'
    yield (head % (to_json(FORMAT), VERSION, spec, dump_state(_whole(state)))).decode()
    for one in recording.entries:
        yield _ENTRY.dump_json(one).decode()


def read_recording(lines: Iterable[str]) -> Recording:
    """A recording again.

    Raises:
        CorruptError: This is none, it is damaged, or a newer version wrote it.
    """
    rows = [(at, one) for at, one in enumerate(lines, 1) if one.strip()]
    if not rows:
        raise CorruptError("the log is empty")
    state = _told(rows[0], _head)
    return Recording(state, tuple(_told(one, _ENTRY.validate_json) for one in rows[1:]))


def _told(row: tuple[int, str], read: Callable[[str], Any]) -> Any:
    at, line = row
    try:
        return read(line)
    except (ValueError, TypeError, KeyError) as error:
        why = " ".join(str(error).split("\n")[:2])
        raise CorruptError(f"line {at} of the log cannot be read: {why}") from error


def _head(line: str) -> RunState:
    head: Any = from_json(line)
    if not isinstance(head, dict) or cast("dict[str, Any]", head).get("format") != FORMAT:
        raise CorruptError("this is no log of a run: `loopagent runs log RUN` writes one")
    if head["version"] != VERSION or head["state"]["schema_version"] != SCHEMA_VERSION:
        raise CorruptError("the log was written by another version of loopagent")
    spec = AgentSpec.model_validate(head["spec"])
    return load_state(to_json(head["state"]), spec)


def replay(recording: Recording, system: Callable[[AgentSpec], str]) -> Replayed:
    """Go through a log from its beginning; every message, fact and prompt is compared, and the state at its end.

    Args:
        recording: The run.
        system: Renders the system prompt of a definition.
    """
    state = beginning(recording.state, recording.entries)
    done, prompts = Replayed(), _Prompts(ChatView(state), system)
    for entry in recording.entries:
        done.entries += 1
        if prompts.differ(state, entry):
            done.differences.append(_difference(done, state, "prompt", "is rendered otherwise now"))
        transition = advance(state, *entry.events)
        state = transition.state
        prompts.view.follow(state, transition.messages)
        if transition.messages != entry.messages:
            detail = _apart(
                [one.text for one in transition.messages], [one.text for one in entry.messages]
            )
            done.differences.append(_difference(done, state, "messages", detail))
        if not _copied(entry) and transition.facts != entry.facts:
            now, then = (
                [(one.type, one.data) for one in some] for some in (transition.facts, entry.facts)
            )
            done.differences.append(_difference(done, state, "facts", _apart(now, then)))
    done.turns, done.prompts = state.turn, prompts.compared
    now, then = (from_json(dump_state(_whole(one))) for one in (state, recording.state))
    if now != then:
        done.differences.append(_difference(done, state, "state", _apart(now, then)))
    return done


class _Prompts:
    """Renders the prompts of model calls as long as they are open, and compares them when they end."""

    def __init__(self, view: ChatView, system: Callable[[AgentSpec], str]) -> None:
        self.view = view
        self.compared = 0
        self._system = system
        self._open: dict[str, set[str]] = {}

    def differ(self, state: RunState, entry: LogEntry) -> bool:
        """Whether a model call that ends with this entry had another prompt. What came while it was open counts."""
        for one in state.pending:
            if one.endswith(MODEL):
                self._open.setdefault(one, set()).add(self._rendered(state))
        ended = [
            one for one in entry.events if isinstance(one, Settled) and one.effect_id in self._open
        ]
        otherwise = [self._differs(one) for one in ended]
        return any(otherwise)

    def _differs(self, event: Settled) -> bool:
        rendered, value = self._open.pop(event.effect_id), event.outcome.value
        sent = (
            (cast("dict[str, Any]", value).get("prompt") or {}) if isinstance(value, dict) else {}
        )
        self.compared += bool(sent)
        return bool(sent) and sent["sha256"] not in rendered

    def _rendered(self, state: RunState) -> str:
        last = ChatMessage("user", volatile_message(state))
        return str(self.view.fingerprint(self._system(state.spec), last)["sha256"])


def _whole(state: RunState) -> RunState:
    """The state with the results that stores keep apart in it."""
    step = state.step
    if step is None or not step.spilled:
        return state
    whole = state.fork()
    whole.step = replace(step, spilled=0)
    return whole


def _copied(entry: LogEntry) -> bool:
    """Whether this was taken over from the run that a fork is a copy of; its facts are that run's."""
    return any(one.copy_of for one in entry.facts)


def _difference(
    done: Replayed,
    state: RunState,
    what: Literal["facts", "messages", "prompt", "state"],
    detail: str,
) -> Difference:
    return Difference(done.entries, state.turn, what, detail)


def _apart(now: Any, then: Any, path: str = "") -> str:
    """Where two values first differ."""
    if isinstance(now, dict) and isinstance(then, dict):
        ours, theirs = cast("dict[str, Any]", now), cast("dict[str, Any]", then)
        keys = [*theirs, *(one for one in ours if one not in theirs)]
        key = next(one for one in keys if ours.get(one) != theirs.get(one))
        return _apart(ours.get(key), theirs.get(key), f"{path}/{key}")
    if isinstance(now, list | tuple) and isinstance(then, list | tuple) and len(now) == len(then):
        pairs = zip(cast("list[Any]", now), cast("list[Any]", then), strict=True)
        at, (one, other) = next((at, pair) for at, pair in enumerate(pairs) if pair[0] != pair[1])
        return _apart(one, other, f"{path}/{at}")
    return (
        f"{path or '/'}: {_short(then)} was {_short(now)} now"
        if path
        else f"{_short(then)}, now {_short(now)}"
    )


def _short(value: Any, most: int = 120) -> str:
    text = to_json(value).decode()
    return text if len(text) <= most else f"{text[:most]}…"
