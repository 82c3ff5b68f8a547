"""Who decided what in a run, when, and on which grounds: read from its stored events and nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from loopagent.explain_rules import NONE, OTHER, QUIET, RULES, joined
from loopagent.explain_seats import SEATS


Event = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Decision:
    """One decision. `seat` is a key of `SEATS` or `-`; `seq` numbers its event, `ts` is seconds since the epoch."""

    seq: int
    ts: float
    type: str
    seat: str
    decided_by: str
    decision: str
    grounds: str
    path: str | None = None

    def public(self) -> dict[str, Any]:
        """The same as camelCase JSON."""
        return {
            "seq": self.seq,
            "ts": self.ts,
            "type": self.type,
            "seat": self.seat,
            "question": SEATS.get(self.seat),
            "decidedBy": self.decided_by,
            "decision": self.decision,
            "grounds": self.grounds,
            "path": self.path,
        }


@dataclass(frozen=True, slots=True)
class Chapter:
    """The decisions of one turn of one run, or those between turns (`turn` is None)."""

    run_id: str
    agent: str
    turn: int | None
    decisions: list[Decision] = field(default_factory=list[Decision])

    def public(self) -> dict[str, Any]:
        """The same as camelCase JSON."""
        listed = [one.public() for one in self.decisions]
        return {"runId": self.run_id, "agent": self.agent, "turn": self.turn, "decisions": listed}


@dataclass(frozen=True, slots=True)
class Explanation:
    """A run explained. `status` is how the run stands by its events."""

    run_id: str
    agent: str
    status: str
    chapters: list[Chapter]

    @property
    def decided_by(self) -> dict[str, int]:
        """How many decisions each of them made, most first."""
        made = (one.decided_by for chapter in self.chapters for one in chapter.decisions)
        return dict(Counter(made).most_common())

    def public(self) -> dict[str, Any]:
        """The same as camelCase JSON."""
        return {
            "runId": self.run_id,
            "agent": self.agent,
            "status": self.status,
            "decidedBy": self.decided_by,
            "chapters": [one.public() for one in self.chapters],
        }

    def text(self) -> str:
        """For people: turn by turn, one line a decision, and the questions of the seats below."""
        counts = ", ".join(f"{who} {count}" for who, count in self.decided_by.items())
        lines = [f"{self.run_id}: {self.agent}, {self.status}", f"decisions: {counts}"]
        for chapter in self.chapters:
            lines += ["", self._heading(chapter), *map(_line, chapter.decisions)]
        met = {one.seat for chapter in self.chapters for one in chapter.decisions}
        lines += ["", *(f"  {seat}  {SEATS[seat]}" for seat in sorted(met - {NONE}))]
        return "\n".join(lines)

    def _heading(self, chapter: Chapter) -> str:
        where = "outside of turns" if chapter.turn is None else f"turn {chapter.turn}"
        if chapter.run_id == self.run_id:
            return where
        return f"{where} of {chapter.agent} ({chapter.run_id.removeprefix(self.run_id + '.')})"


def explain(events: Iterable[Event]) -> Explanation:
    """Explain a run.

    Args:
        events: Its stored events, as the API gives them, from the first on; those of sub-agents may be among them.
    """
    reader = _Reader()
    for event in events:
        reader.read(event)
    return Explanation(
        reader.run_id, reader.agents.get(reader.run_id, ""), reader.status, reader.chapters
    )


_STATUS = {
    "run.started": "running",
    "run.waiting": "waiting",
    "run.resumed": "running",
    "run.completed": "completed",
    "run.failed": "failed",
    "run.cancelled": "cancelled",
}


class _Reader:
    """Takes events in their order; what an event refers to came before it."""

    def __init__(self) -> None:
        self.run_id = ""
        self.status = "running"
        self.agents: dict[str, str] = {}
        self.chapters: list[Chapter] = []
        self._latest: dict[str, Chapter] = {}
        self._kinds: dict[str, str] = {}
        self._decided: dict[str, Event] = {}

    def read(self, event: Event) -> None:
        """Take the next event."""
        self.run_id = self.run_id or event["runId"]
        kind, data = event["type"], event["data"]
        if event["runId"] == self.run_id:
            self.status = _STATUS.get(kind, self.status)
        if kind == "run.created":
            self.agents[event["runId"]] = data["agent"]
        self._remember(event)
        if kind not in QUIET:
            self._chapter(event).decisions.append(self._decision(event))

    def _remember(self, event: Event) -> None:
        """Keep what later events refer to: what was asked, and what was answered."""
        request = event["data"].get("requestId")
        if event["type"] == "request.created":
            self._kinds[request] = event["data"]["kind"]
        elif event["type"] == "request.resolved":
            self._decided[request.removesuffix(".ask")] = event

    def _chapter(self, event: Event) -> Chapter:
        """The turn that an event belongs to, together also where runs side by side take turns in the log."""
        run_id, turn = event["runId"], event.get("turn")
        last = self._latest.get(run_id)
        if last is None or last.turn != turn:
            last = self._latest[run_id] = Chapter(run_id, self.agents.get(run_id, ""), turn)
            self.chapters.append(last)
        return last

    def _decision(self, event: Event) -> Decision:
        kind = event["type"]
        data = event["data"]
        if "requestId" in data and "kind" not in data:
            data = {**data, "kind": self._kinds.get(data["requestId"])}
        rule = RULES.get(kind, OTHER)
        grounds = rule.grounds(data)
        if kind == "action.started":
            grounds = joined(grounds, self._allowed(event))
        return Decision(
            seq=event["seq"],
            ts=event["ts"],
            type=kind,
            seat=rule.seat_of(data),
            decided_by=event["decidedBy"],
            decision=rule.decision(data) or kind,
            grounds=grounds,
            path=event.get("path"),
        )

    def _allowed(self, event: Event) -> str:
        """Why a call may run: a person approved it, or all calls that it belongs to; else policy asks nobody."""
        key = f"{event['runId']}:{event['data']['callId']}"
        while key not in self._decided and "." in key:
            key = key.rpartition(".")[0]
        answer = self._decided.get(key)
        if answer is None:
            return "the policy asks nobody about it"
        edited = " with other parameters" if answer["data"].get("edited") else ""
        return f"{answer['data']['by']} approved it{edited} (event {answer['seq']})"


def _line(one: Decision) -> str:
    grounds = f" - {one.grounds}" if one.grounds else ""
    return f"  {one.seq:>4}  {one.seat:<2}  {one.decided_by:<6}  {one.decision}{grounds}"
