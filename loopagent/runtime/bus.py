"""Who is listening to which run, in this process: bounded buffers, and a slow reader is dropped, never waited for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from loopagent.core.facts import public_event


if TYPE_CHECKING:
    from loopagent.ports import Commit
    from loopagent.runtime.streaming import ReplyStream


class Subscription:
    """One listener's buffer of public events, oldest first."""

    def __init__(self, run_id: str, capacity: int) -> None:
        self.run_id = run_id
        self.lost = False
        """True once the buffer overflowed: read on from the store, then subscribe again."""
        self._capacity = capacity
        self._events: list[dict[str, Any]] = []
        self._arrived = asyncio.Event()

    def put(self, events: Iterable[dict[str, Any]]) -> None:
        """Add events; an overflow drops them all and marks the subscription as lost."""
        if self.lost:
            return
        self._events.extend(events)
        if len(self._events) > self._capacity:
            self._events.clear()
            self.lost = True
        self._arrived.set()

    async def get(self, timeout_seconds: float) -> list[dict[str, Any]]:
        """What has arrived since the last call; empty after the timeout."""
        try:
            async with asyncio.timeout(timeout_seconds):
                await self._arrived.wait()
        except TimeoutError:
            return []
        self._arrived.clear()
        events, self._events = self._events, []
        return events

    def wake(self) -> None:
        """End a waiting `get` at once."""
        self._arrived.set()


class Bus:
    """In-process fan-out of public events to the listeners of a run."""

    def __init__(self, *, capacity: int = 10_000) -> None:
        self._capacity = capacity
        self._listeners: dict[str, set[Subscription]] = {}
        self.arriving: Callable[[str], Iterable[ReplyStream]] = lambda _: ()
        """The replies that are arriving in a run and below it; set by who knows."""
        self.taps: list[Callable[[Commit], None]] = []
        """Told of every commit, whether anybody listens or not."""
        self.notify: Callable[[], None] = lambda: None
        """Called when a run was committed that has somebody outside to notify."""

    def subscribe(self, run_id: str) -> Subscription:
        """Listen to a run; give back with `unsubscribe`.

        What was shown so far of replies that are arriving comes first.
        """
        subscription = Subscription(run_id, self._capacity)
        so_far = [one.snapshot() for one in self.arriving(run_id)]
        if shown := [one for one in so_far if one is not None]:
            subscription.put(shown)
        self._listeners.setdefault(run_id, set()).add(subscription)
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        """Stop listening."""
        listeners = self._listeners.get(subscription.run_id)
        if listeners is not None:
            listeners.discard(subscription)
            if not listeners:
                del self._listeners[subscription.run_id]

    def heard(self, *run_ids: str) -> bool:
        """Whether anybody listens to one of the runs."""
        return bool(self._listeners) and any(one in self._listeners for one in run_ids)

    def publish(self, run_id: str, events: list[dict[str, Any]], root_id: str = "") -> None:
        """Hand events to everybody who listens to the run, or to the root of its tree; never waits."""
        for name in {run_id, root_id or run_id}:
            for subscription in tuple(self._listeners.get(name, ())):
                subscription.put(events)

    def announce(
        self,
        commits: Sequence[Commit],
        first_seq: int,
        progress: Callable[[], dict[str, Any] | None],
    ) -> None:
        """Hand out what commits of a run tell, numbered from `first_seq`, and how far it came, if anybody listens.

        Listeners of the root hear the whole tree.
        """
        for tap in self.taps:
            for one in commits:
                tap(one)
        state = commits[-1].state
        if state.notify:
            self.notify()
        if not self._listeners:
            return
        root_id = state.root_id or state.id
        if not self.heard(state.id, root_id):
            return
        told = [(one.at, fact) for one in commits for fact in one.facts]
        events = [
            public_event(
                fact,
                seq=seq,
                at=at,
                run_id=state.id,
                root_id=root_id,
                parent_id=state.parent_id,
            )
            for seq, (at, fact) in enumerate(told, first_seq)
        ]
        further = progress()
        self.publish(state.id, events if further is None else [*events, further], root_id)

    def idle(self, run_id: str, status: str) -> None:
        """Tell the listeners of a run that its loop has stopped, for whatever reason."""
        event = {
            "runId": run_id,
            "type": "run.idle",
            "decidedBy": "engine",
            "data": {"status": status},
        }
        self.publish(run_id, [event])

    def nudge(self, *run_ids: str) -> None:
        """Have the listeners of runs look at the store: another process committed something."""
        for run_id in set(run_ids):
            for subscription in tuple(self._listeners.get(run_id, ())):
                subscription.wake()

    def wake_all(self) -> None:
        """End every waiting `get`, for shutdown."""
        for listeners in self._listeners.values():
            for subscription in listeners:
                subscription.wake()
