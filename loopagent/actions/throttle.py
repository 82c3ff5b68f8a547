"""Holding calls back: so many a time, so many side by side."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary


if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from loopagent.actions.format import LimitsSection

_Loop = asyncio.AbstractEventLoop
BURST = 10
"""After a rest, this part of the calls of a rate may start at once, at least one: of `60/m` six."""


@dataclass(slots=True)
class _Bucket:
    """Calls that may start now; it fills with time."""

    rate: float
    most: float
    tokens: float
    filled_at: float

    def wait_seconds(self, now: float) -> float:
        """Take a call; gives how long it has to wait for its turn."""
        self.tokens = min(self.most, self.tokens + (now - self.filled_at) * self.rate)
        self.filled_at = now
        self.tokens -= 1.0
        return max(0.0, -self.tokens / self.rate)


@dataclass(slots=True)
class _Gates:
    buckets: dict[str, _Bucket] = field(default_factory=dict[str, _Bucket])
    slots: dict[str, asyncio.Semaphore] = field(default_factory=dict[str, asyncio.Semaphore])


class Throttles:
    """The limits of all actions of a process, each event loop by itself."""

    def __init__(self) -> None:
        self._gates: WeakKeyDictionary[_Loop, _Gates] = WeakKeyDictionary()

    @asynccontextmanager
    async def turn(
        self, key: str, limits: LimitsSection, on_wait: Callable[[float], None]
    ) -> AsyncGenerator[None, None]:
        """Wait for the turn of a call, and hold its place until the end of the block.

        Args:
            key: Whose limits they are.
            limits: The limits.
            on_wait: Told how many seconds the rate makes it wait, if it does.
        """
        loop = asyncio.get_running_loop()
        gates = self._gates.setdefault(loop, _Gates())
        async with AsyncExitStack() as stack:
            if limits.concurrency is not None:
                slot = gates.slots.setdefault(key, asyncio.Semaphore(limits.concurrency))
                await stack.enter_async_context(slot)
            if limits.rate is not None:
                now = loop.time()
                most = max(1.0, limits.rate.calls // BURST)
                fresh = _Bucket(limits.rate.per_second, most, most, now)
                bucket = gates.buckets.setdefault(key, fresh)
                wait = bucket.wait_seconds(now)
                if wait > 0:
                    on_wait(wait)
                    await asyncio.sleep(wait)
            yield
