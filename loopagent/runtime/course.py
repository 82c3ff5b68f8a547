"""The course of one run: its turns, each with its reply and its work, folded from the public events.

Whoever shows turns begins here: one turn in full (`turn.py`), two runs side by side, the page of a run.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from loopagent.core.facts import public_event
from loopagent.core.patch import apply_patch


if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from loopagent.ports import LogEntry

Json = dict[str, Any]
UNKNOWN: Final = object()
"""Stands for a payload that nobody knows."""
REPLIES: Final = {
    "reply.received": "accepted",
    "reply.rejected": "rejected",
    "reply.truncated": "truncated",
}
STARTS: Final = {
    "action.started": ("callId", "action"),
    "client_tool.requested": ("callId", "tool"),
    "subagent.started": ("callId", "agent"),
    "loop.started": ("", "what"),
    "pipeline.started": ("", ""),
}
"""Events that begin work: which of their fields is its id, and which its name."""
ENDS: Final = {
    "action.completed": "callId",
    "action.rejected": "callId",
    "client_tool.completed": "callId",
    "subagent.completed": "callId",
    "loop.completed": "",
    "pipeline.completed": "",
}
"""Events that end it."""


@dataclass(slots=True)
class Work:
    """One piece of work of a turn: an action, a client tool, a sub-agent, a loop, a pipeline."""

    id: str
    kind: str
    name: str
    started_at: float
    ended_at: float | None = None
    ok: bool | None = None
    data: Json = field(default_factory=dict[str, Any])
    path: str = ""
    """Its place in the turn, keys separated by slashes."""

    @property
    def run_id(self) -> str:
        """The run that a sub-agent works in."""
        return str(self.data.get("runId") or "")


@dataclass(slots=True)
class Turn:
    """One model call and what came of it; times are seconds since the epoch."""

    number: int
    started_at: float
    replied_at: float | None = None
    ended_at: float | None = None
    reply: str = ""
    """`accepted`, `rejected` or `truncated`; empty while none came."""
    type: str = ""
    """What an accepted reply asked for."""
    message: str = ""
    raw: str = ""
    """The reply as it came."""
    warnings: list[str] = field(default_factory=list[str])
    problems: list[Json] = field(default_factory=list[Json])
    usage: Json = field(default_factory=dict[str, Any])
    outcome: str = ""
    """How it ended; empty while it goes on."""
    patch: list[Json] = field(default_factory=list[Json])
    """What it changed in the payload, as RFC 6902 operations."""
    before: Any = UNKNOWN
    """The payload when it began."""
    payload: Any = UNKNOWN
    """The payload after its last change."""
    work: list[Work] = field(default_factory=list[Work])
    events: list[Mapping[str, Any]] = field(default_factory=list["Mapping[str, Any]"])

    def of(self, *types: str) -> list[Mapping[str, Any]]:
        """Its events of some types."""
        return [one for one in self.events if one["type"] in types]

    @property
    def input_tokens(self) -> int:
        """What the model was sent."""
        return int(self.usage.get("inputTokens") or 0)

    @property
    def output_tokens(self) -> int:
        """What the model wrote."""
        return int(self.usage.get("outputTokens") or 0)

    @property
    def cost_usd(self) -> float:
        """What its reply cost, in USD; 0 where that is not known."""
        return float(self.usage.get("costUsd") or 0.0)


@dataclass(slots=True)
class Course:
    """The turns of one run, oldest first, as far as its events reach back."""

    turns: list[Turn] = field(default_factory=list[Turn])

    @property
    def last_at(self) -> float:
        """The latest moment that is known; seconds since the epoch."""
        ends = (one.ended_at or one.replied_at or one.started_at for one in self.turns)
        return max(ends, default=0.0)

    def of(self, *types: str) -> list[Mapping[str, Any]]:
        """Events of some types, of all turns."""
        return [event for turn in self.turns for event in turn.of(*types)]


def course_of(events: Iterable[Mapping[str, Any]], run_id: str, payload: Any = UNKNOWN) -> Course:
    """Fold the events of a run; those of runs below it are left out.

    Args:
        events: Public events, in order; the first ones may be missing.
        run_id: The run.
        payload: The payload before the first event; without it no payload of a turn is known.
    """
    fold = _Fold(payload)
    for event in events:
        if event.get("runId") == run_id:
            fold.take(event)
    return Course([fold.turns[number] for number in sorted(fold.turns)])


def told(entries: Iterable[LogEntry], run_id: str) -> Iterator[Json]:
    """The public events in a run's log."""
    for entry in entries:
        for seq, fact in enumerate(entry.facts, entry.first_seq):
            yield public_event(fact, seq=seq, at=entry.at, run_id=run_id, root_id=run_id)


class _Fold:
    """Takes events in their order. A turn that is taken anew, as a forked run does, takes the place of the first."""

    def __init__(self, payload: Any) -> None:
        self.turns: dict[int, Turn] = {}
        self._payload = payload
        self._open: dict[str, Work] = {}

    def take(self, event: Mapping[str, Any]) -> None:
        """Take the next event."""
        kind, turn = str(event["type"]), self._turn(event)
        if kind == "payload.changed" and self._payload is not UNKNOWN:
            self._payload = apply_patch(self._payload, event["data"]["patch"])
        if turn is None:
            return
        turn.events.append(event)
        if kind in STARTS:
            self._begin(turn, event)
        elif kind in ENDS:
            self._end(turn, event)
        elif kind in TAKES:
            TAKES[kind](turn, event["data"], float(event["ts"]))
        turn.payload = self._payload

    def _turn(self, event: Mapping[str, Any]) -> Turn | None:
        number = int(event.get("turn") or 0)
        if not number:
            return None
        if event["type"] == "turn.started" or number not in self.turns:
            made = Turn(number, float(event["ts"]), before=self._payload, payload=self._payload)
            self.turns[number] = made
        return self.turns[number]

    def _begin(self, turn: Turn, event: Mapping[str, Any]) -> None:
        kind, data = str(event["type"]).partition(".")[0], event["data"]
        key, name = STARTS[event["type"]]
        work = Work(str(data.get(key) or kind), kind, str(data.get(name) or kind), event["ts"])
        work.data, work.path = dict(data), str(event.get("path") or "")
        self._open[work.id] = work
        turn.work.append(work)

    def _end(self, turn: Turn, event: Mapping[str, Any]) -> None:
        kind, data = str(event["type"]).partition(".")[0], event["data"]
        id_ = str(data.get(ENDS[event["type"]]) or kind)
        work = self._open.pop(id_, None)
        if work is None:  # it was never started, as a call that was refused
            name = str(data.get("action") or data.get("tool") or data.get("agent") or kind)
            work = Work(id_, kind, name, event["ts"], path=str(event.get("path") or ""))
            turn.work.append(work)
        work.ended_at = float(event["ts"])
        work.ok = event["type"] != "action.rejected" and bool(
            data.get("ok", not data.get("failed"))
        )
        work.data = {**work.data, **data}


def _replied(reply: str) -> Callable[[Turn, Json, float], None]:
    def take(turn: Turn, data: Json, at: float) -> None:
        turn.replied_at, turn.reply = at, reply
        turn.type, turn.message = str(data.get("type") or ""), str(data.get("message") or "")
        turn.raw, turn.usage = str(data.get("raw") or ""), dict(data.get("usage") or {})
        turn.warnings = list(data.get("warnings") or ())
        turn.problems = list(data.get("problems") or ())

    return take


def _ended(turn: Turn, data: Json, at: float) -> None:
    turn.ended_at, turn.outcome = at, str(data.get("outcome", ""))


def _changed(turn: Turn, data: Json, at: float) -> None:
    del at
    turn.patch += data.get("patch") or ()


TAKES: Final[dict[str, Callable[[Turn, Json, float], None]]] = {
    **{kind: _replied(reply) for kind, reply in REPLIES.items()},
    "payload.changed": _changed,
    "turn.ended": _ended,
}
