"""One turn as it was: the prompt rendered again from the log, the reply word for word, and what was made of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from loopagent.core.advance import advance
from loopagent.core.context import Said
from loopagent.core.events import Event, Forked, Settled
from loopagent.core.marks import marks
from loopagent.core.prompt import volatile_message
from loopagent.errors import RequestError
from loopagent.ports import ChatMessage
from loopagent.runtime.course import course_of, told
from loopagent.runtime.fold import beginning
from loopagent.runtime.turn_details import changes, operations, placed
from loopagent.runtime.view import ChatView


if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from loopagent.core.agent_spec import AgentSpec
    from loopagent.core.outcome import Outcome
    from loopagent.core.state import RunState
    from loopagent.ports import LogEntry, Store
    from loopagent.runtime.course import Turn


@dataclass
class TurnRecord:
    """What is known of one planner call."""

    turn: int
    system: str = ""
    messages: list[ChatMessage] = field(default_factory=list[ChatMessage])
    sha256: str = ""
    """Of the prompt as it was sent, recorded then; empty while no reply has come."""
    exact: bool = False
    """Whether what is shown here is that prompt, byte for byte."""
    raw: str = ""
    reply: str = ""
    """`accepted`, `rejected`, `truncated`; empty when none came."""
    type: str = ""
    """What an accepted reply asked for."""
    outcome: str = ""
    """How the turn ended; empty while it goes on."""
    warnings: list[str] = field(default_factory=list[str])
    problems: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    patch: list[Any] = field(default_factory=list[Any])
    """What it changed in the payload, as RFC 6902 operations."""
    usage: dict[str, Any] = field(default_factory=dict[str, Any])
    model: str = ""
    duration_ms: float = 0.0
    error: dict[str, Any] | None = None
    shown: list[Said] = field(default_factory=list[Said])
    """Of each message but the last: which one of the transcript it is."""
    told: Turn | None = None
    """What the events tell of it."""
    settled: dict[str, Outcome] = field(default_factory=dict[str, "Outcome"])
    """How its effects ended, by their ids."""

    def public(self) -> dict[str, Any]:
        """The same as camelCase JSON."""
        prompt = {
            "system": self.system,
            "messages": self._messages(),
            "sha256": self.sha256,
            "exact": self.exact,
        }
        rest = {"type": self.type, "outcome": self.outcome, "durationMs": self.duration_ms}
        names = "turn raw reply warnings patch usage model error".split()  # noqa: SIM905
        plain = {name: getattr(self, name) for name in names}
        return {**plain, **rest, "prompt": prompt, **self._details()}

    def _messages(self) -> list[dict[str, Any]]:
        """The messages, each with what it is; the last one tells of the state as it is then."""
        known: list[dict[str, Any]] = [
            {"kind": one.kind, "number": one.number, "turn": one.turn} for one in self.shown
        ]
        known.append({"kind": "state", "number": None, "turn": self.turn})
        pairs = zip(self.messages, known, strict=False)
        return [{"role": one.role, "text": one.text, **about} for one, about in pairs]

    def _details(self) -> dict[str, Any]:
        return {
            "problems": placed(self.raw, self.problems),
            "marks": [one.public() for one in marks(self.raw)],
            "changes": changes(self.told),
            "operations": operations(self.turn, self.raw, self.settled),
        }


async def turn_record(
    store: Store, run_id: str, turn: int, system: Callable[[AgentSpec], str]
) -> TurnRecord:
    """Read a turn from the log, by going through what happened until then.

    Args:
        store: Where the run is kept.
        run_id: The run.
        turn: Number of the turn, from 1.
        system: Renders the system prompt of a definition.

    Raises:
        RequestError: `unknown_run` or `unknown_turn`.
    """
    snapshot = await store.load(run_id)
    if snapshot is None:
        raise RequestError("unknown_run", f"There is no run {run_id!r}.", status=404)
    if not 1 <= turn <= snapshot.state.turn:
        message = f"Run {run_id!r} has turns 1 to {snapshot.state.turn}, not {turn}."
        raise RequestError("unknown_turn", message, status=404)
    entries = await store.log(run_id)
    record = TurnRecord(turn)
    _tell(record, snapshot.state, entries)
    fingerprint = _replay(record, snapshot.state, entries, system)
    record.exact = bool(record.sha256) and record.sha256 == fingerprint
    return record


def _replay(
    record: TurnRecord,
    now: RunState,
    entries: Sequence[LogEntry],
    system: Callable[[AgentSpec], str],
) -> str:
    """Go through the log up to the turn and render its prompt; returns the prompt's fingerprint."""
    state = beginning(now, entries)
    view, call, fingerprint = ChatView(state), f"{record.turn}:model", ""
    for entry in entries:
        if not fingerprint and call in state.pending and not _forks(entry):
            fingerprint = _render(record, state, view, system)
        if (end := _end(entry.events, call)) is not None:
            _read_outcome(record, end)
            return fingerprint
        transition = advance(state, *entry.events)
        state = transition.state
        view.follow(state, transition.messages)
    return fingerprint or _render(record, state, view, system)


def _forks(entry: LogEntry) -> bool:
    """Whether a copy goes its own way here: the turn that was open in the other run is taken anew."""
    return any(isinstance(one, Forked) for one in entry.events)


def _end(events: Sequence[Event], call: str) -> Outcome | None:
    return next(
        (one.outcome for one in events if isinstance(one, Settled) and one.effect_id == call), None
    )


def _render(
    record: TurnRecord, state: RunState, view: ChatView, system: Callable[[AgentSpec], str]
) -> str:
    last = ChatMessage("user", volatile_message(state))
    record.system = system(state.spec)
    record.messages, record.shown = [*view.chat, last], list(view.shown)
    return str(view.fingerprint(record.system, last)["sha256"])


def _read_outcome(record: TurnRecord, outcome: Outcome) -> None:
    value = cast("dict[str, Any]", outcome.value) if isinstance(outcome.value, dict) else {}
    record.raw = str(value.get("text", ""))
    record.model = str(value.get("model", ""))
    record.sha256 = str((value.get("prompt") or {}).get("sha256", ""))
    record.duration_ms = outcome.duration_ms
    if outcome.error is not None:
        record.error = {"code": outcome.error.code, "message": outcome.error.message}


def _tell(record: TurnRecord, now: RunState, entries: Sequence[LogEntry]) -> None:
    """Read what the log tells of the turn."""
    course = course_of(told(entries, now.id), now.id, beginning(now, entries).payload)
    record.told = next((one for one in course.turns if one.number == record.turn), None)
    if record.told is not None:
        for name in ("reply", "type", "usage", "warnings", "problems", "patch", "outcome"):
            setattr(record, name, getattr(record.told, name))
    for event in (one for entry in entries for one in entry.events):
        if isinstance(event, Settled) and event.effect_id.startswith(f"{record.turn}:"):
            record.settled.setdefault(event.effect_id, event.outcome)
