"""Who is listening to which run, in this process: bounded buffers, and a slow reader is dropped, never waited for."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any


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

    def subscribe(self, run_id: str) -> Subscription:
        """Listen to a run; give back with `unsubscribe`."""
        subscription = Subscription(run_id, self._capacity)
        self._listeners.setdefault(run_id, set()).add(subscription)
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        """Stop listening."""
        listeners = self._listeners.get(subscription.run_id)
        if listeners is not None:
            listeners.discard(subscription)
            if not listeners:
                del self._listeners[subscription.run_id]

    def heard(self, run_id: str) -> bool:
        """Whether anybody listens to the run."""
        return run_id in self._listeners

    def publish(self, run_id: str, events: list[dict[str, Any]]) -> None:
        """Hand events to everybody who listens to the run; never waits."""
        for subscription in tuple(self._listeners.get(run_id, ())):
            subscription.put(events)

    def wake_all(self) -> None:
        """End every waiting `get`, for shutdown."""
        for listeners in self._listeners.values():
            for subscription in listeners:
                subscription.wake()
