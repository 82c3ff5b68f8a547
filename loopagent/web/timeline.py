"""What happened in a run, folded from its public events: turns, the work in each, and where time and tokens went."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any


Json = Mapping[str, Any]
STARTS = {
    "action.started": ("callId", "action"),
    "client_tool.requested": ("callId", "tool"),
    "subagent.started": ("callId", "agent"),
    "loop.started": ("", "what"),
    "pipeline.started": ("", ""),
}
ENDS = {
    "action.completed": "callId",
    "action.rejected": "callId",
    "client_tool.completed": "callId",
    "subagent.completed": "callId",
    "loop.completed": "",
    "pipeline.completed": "",
}
NOTES = frozenset(
    {
        "reply.rejected",
        "reply.truncated",
        "model.retry",
        "guard.nudged",
        "guard.mistake",
        "guard.repeated",
    }
    | {"guard.limit", "context.compacted", "skill.activated", "payload.changed", "memory.written"}
    | {
        "artifact.created",
        "artifact.read",
        "conversation.read",
        "command.issued",
        "request.created",
    }
    | {"request.resolved", "plan.approved", "plan.rejected", "plan.edited", "run.mode_changed"}
)
"""Events of a turn that a reader should see by name, beside the work itself."""


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
    run_id: str = ""
    """The run that a sub-agent works in."""


@dataclass(slots=True)
class Turn:
    """One model call and what came of it."""

    number: int
    started_at: float
    replied_at: float | None = None
    ended_at: float | None = None
    type: str = ""
    message: str = ""
    outcome: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None
    work: list[Work] = field(default_factory=list[Work])
    notes: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """Other events: type and who decided."""


@dataclass(slots=True)
class Timeline:
    """The turns of one run, oldest first, as far as its events reach back."""

    turns: list[Turn] = field(default_factory=list[Turn])
    memory: list[Json] = field(default_factory=list[Json])

    @property
    def began_at(self) -> float:
        """Seconds since the epoch."""
        return self.turns[0].started_at if self.turns else 0.0

    @property
    def last_at(self) -> float:
        """The latest moment that is known; seconds since the epoch."""
        return max(
            (one.ended_at or one.replied_at or one.started_at for one in self.turns), default=0.0
        )


def timeline_of(events: Iterable[Json], run_id: str) -> Timeline:
    """Fold the events of a run; those of runs below it are left out."""
    found = Timeline()
    open_: dict[str, Work] = {}
    for event in events:
        if event.get("runId") != run_id or "turn" not in event:
            continue
        number = int(event["turn"])
        if not found.turns or found.turns[-1].number < number:
            found.turns.append(Turn(number, float(event["ts"])))
        turn = next(one for one in reversed(found.turns) if one.number <= number)
        _take(found, turn, event, open_)
    return found


def _take(found: Timeline, turn: Turn, event: Json, open_: dict[str, Work]) -> None:
    kind, data, at = str(event["type"]), event["data"], float(event["ts"])
    if kind in STARTS:
        _begin(turn, event, open_)
    elif kind in ENDS:
        _end(turn, event, open_)
    elif kind in TAKES:
        TAKES[kind](turn, data, at)
    if kind == "memory.written":
        found.memory.append(event)
    if kind in NOTES:
        turn.notes.append((kind, str(event.get("decidedBy", ""))))


def _begin(turn: Turn, event: Json, open_: dict[str, Work]) -> None:
    kind, data = str(event["type"]), event["data"]
    key, name = STARTS[kind]
    id_ = str(data.get(key) or kind.partition(".")[0])
    label = str(data.get(name) or kind.partition(".")[0])
    work = Work(id_, kind.partition(".")[0], label, float(event["ts"]), data=data)
    work.run_id = str(data.get("runId") or "")
    open_[id_] = work
    turn.work.append(work)


def _end(turn: Turn, event: Json, open_: dict[str, Work]) -> None:
    kind, data = str(event["type"]), event["data"]
    id_ = str(data.get(ENDS[kind]) or kind.partition(".")[0])
    work = open_.pop(id_, None)
    if work is None:  # it was never started, as a call that was refused
        name = str(data.get("action") or data.get("tool") or data.get("agent") or kind)
        work = Work(id_, kind.partition(".")[0], name, float(event["ts"]))
        turn.work.append(work)
    work.ended_at = float(event["ts"])
    work.ok = kind != "action.rejected" and bool(data.get("ok", not data.get("failed")))
    work.data = {**work.data, **data}


def _replied(turn: Turn, data: Json, at: float) -> None:
    turn.replied_at = at
    turn.type = str(data.get("type", ""))
    turn.message = str(data.get("message") or "")
    _count(turn, data)


def _refused(turn: Turn, data: Json, at: float) -> None:
    turn.replied_at, turn.type = at, "refused"
    turn.message = "; ".join(str(one["message"]) for one in data.get("problems") or ())
    _count(turn, data)


def _count(turn: Turn, data: Json) -> None:
    usage = data.get("usage") or {}
    turn.input_tokens += int(usage.get("inputTokens") or 0)
    turn.output_tokens += int(usage.get("outputTokens") or 0)
    if usage.get("costUsd") is not None:
        turn.cost_usd = (turn.cost_usd or 0.0) + float(usage["costUsd"])


def _ended(turn: Turn, data: Json, at: float) -> None:
    turn.ended_at, turn.outcome = at, str(data.get("outcome", ""))


TAKES: dict[str, Callable[[Turn, Json, float], None]] = {
    "reply.received": _replied,
    "reply.rejected": _refused,
    "reply.truncated": _refused,
    "turn.ended": _ended,
}
