"""The loop state of a run as its public events tell it: a fold, the same in Python and in every client.

Events may come twice, late, or from the middle of a run. What arrives without a number (`reply.delta`, `run.idle`)
may also come out of order: it counts only where it can be true.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from loopagent.core.loop_heard import HANDLERS, WAITING, Event, Heard, listed, mapping, number, text
from loopagent.core.loop_view import Ask, LoopState, combine, open_asks


_TAKES: Final = frozenset({"request.resolved", "run.message_queued"})
"""What a run says when it takes an answer; the `model` is that of the run above."""
_GOING: Final = frozenset({"running", "streaming"})


def loop_state(events: Iterable[Event], run_id: str | None = None) -> LoopState:
    """What a run is doing, by its public events.

    Args:
        events: As they came, ephemeral ones included.
        run_id: The run to look at, together with the runs below it; None for the root.

    Returns:
        The same that the server reports after the last of these events.
    """
    fold = LoopFold(run_id)
    for event in events:
        fold.add(event)
    return fold.state


class LoopFold:
    """Takes the events of a run and of the runs below it, one by one.

    Args:
        run_id: The run to look at; None for the root of whatever comes.
    """

    def __init__(self, run_id: str | None = None) -> None:
        self._run_id = run_id
        self._root = ""
        self._first = ""
        self._parts: dict[str, Heard] = {}
        self._answered: set[str] = set()
        """Ids of calls of client tools that are over; they may be told of again."""
        self.seq = 0
        """Number of the last persisted event."""

    @classmethod
    def of_run(cls, run: Mapping[str, Any]) -> LoopFold:
        """A fold that begins with a run as `GET /runs/{id}` returns it, for whoever follows it from its `seq` on."""
        fold = cls(text(run, "id"))
        fold.seq = number(run, "seq")
        fold._seed(run)
        return fold

    @property
    def state(self) -> LoopState:
        """What the run is doing now."""
        return combine(self._looked_at, self._parts)

    @property
    def asks(self) -> list[Ask]:
        """Every open request of the run and of the runs below it that it waits for."""
        return open_asks(self._looked_at, self._parts)

    @property
    def _looked_at(self) -> str:
        return self._run_id or (self._root if self._root in self._parts else self._first)

    def add(self, event: Event) -> None:
        """Take an event; one that was taken before or belongs to another tree changes nothing."""
        kind, run_id = text(event, "type"), text(event, "runId")
        if kind == "stream.reset":
            self._reset(event)
            return
        data = mapping(event, "data")
        if not run_id or self._foreign(event) or self._again(event, kind, data):
            return
        self._first = self._first or run_id
        run = self._of(run_id)
        if kind == "run.created":
            run = self._parts[run_id] = Heard(run_id)
            run.child = text(event, "parentRunId") != ""
            above = self._parts.get(text(event, "parentRunId"))
            run.agents = [*(above.agents if above else ()), text(data, "agent")]
        if "seq" in event:
            run.found()
        if kind in HANDLERS:
            HANDLERS[kind](run, event, data)
            run.settle()
        self._around(run, kind, event, data)

    def _of(self, run_id: str) -> Heard:
        if run_id not in self._parts:
            self._parts[run_id] = Heard(run_id)
        return self._parts[run_id]

    def _around(self, run: Heard, kind: str, event: Event, data: Event) -> None:
        """What an event says about more than what its run does by itself."""
        child = text(data, "runId")
        if kind == "subagent.started" and child in self._parts and child != self._run_id:
            self._parts[child].heard = False
        elif kind == "client_tool.completed":
            self._answered.add(text(data, "requestId"))
        elif kind in _TAKES and "model" in {text(data, "by"), text(event, "decidedBy")}:
            run.heard = True

    def _foreign(self, event: Event) -> bool:
        root = text(event, "rootRunId")
        self._root = self._root or root
        return bool(root) and root != self._root

    def _again(self, event: Event, kind: str, data: Event) -> bool:
        """Whether a persisted event was taken before. Open calls of client tools are sent again, to be sure."""
        if "seq" not in event:
            return False
        seq = number(event, "seq")
        if seq > self.seq:
            self.seq = seq
            return False
        return kind != "client_tool.requested" or text(data, "requestId") in self._answered

    # ------------------------------------------------------------------ beginning in the middle

    def _reset(self, event: Event) -> None:
        """Begin anew with the run as it is now; the events from `after` on follow."""
        self._parts, self._answered, self.seq = {}, set(), number(event, "after")
        self._seed(mapping(event, "run"))

    def _seed(self, run: Event) -> None:
        run_id, state = text(run, "id"), mapping(run, "state")
        self._root, self._first = text(run, "rootRunId") or run_id, run_id
        first = self._of(run_id)
        first.agents, first.child = [text(run, "agent")], run.get("parentRunId") is not None
        word = text(state, "state")
        still = self._of(
            text(mapping(state, "ask"), "runId") or run_id if word == "resumable" else run_id
        )
        told = {**state, "state": "running" if word in WAITING else word}
        HANDLERS["run.state"](still, {}, told)
        if still is not first:
            first.calls[still.run_id] = still.run_id
        if word == "idle":
            return
        first.streaming = first.calling = word == "streaming"
        self._seed_asking(first, still, run, word)
        self._seed_below(first, run, word)
        for one in self._parts.values():
            one.settle()

    def _seed_asking(self, first: Heard, still: Heard, run: Event, word: str) -> None:
        """The open requests of the tree; `still` is the run that stands still, where that is why the tree does."""
        for body in listed(run, "requests"):
            if not isinstance(body, Mapping):
                continue
            asking = self._of(text(body, "runId"))
            asking.put(body)
            if asking is first:
                continue
            below = asking.run_id.startswith(f"{still.run_id}.")
            (still if below else first).calls[asking.run_id] = asking.run_id
            if below or word != "resumable":
                asking.word = asking.word if asking.lost else "waiting"
            elif asking is not still:  # it stands still as well, or one above it does
                asking.word, asking.lost = "resumable", True

    def _seed_below(self, first: Heard, run: Event, word: str) -> None:
        """The children that ask nothing."""
        for child in map(str, listed(run, "children")):
            if not any(one == child or one.startswith(f"{child}.") for one in self._parts):
                first.calls[child] = child
                if word not in _GOING:  # all stand still, this one without a request
                    still = self._of(child)
                    still.word, still.lost = "resumable", True
        if word in WAITING and not first.calls:
            first.word = "waiting"
        elif word in _GOING and all(one in self._parts for one in first.calls.values()):
            for one in first.calls.values():  # something goes on: an answer is on its way
                self._parts[one].heard = False
