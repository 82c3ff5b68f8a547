"""An event loop whose clock jumps: when there is nothing to do until a timer is due, it is due at once.

Pauses, back-off and time limits of a run keep their order and cost no time. While threads or actions work for
real, the clock goes as every clock does.
"""

from __future__ import annotations

import asyncio
import selectors
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Final


POLL_SECONDS: Final = 0.005
"""How often it is looked whether real work is over."""


class JumpingLoop(asyncio.SelectorEventLoop):
    """An event loop for `asyncio.Runner(loop_factory=JumpingLoop)`."""

    def __init__(self) -> None:
        self._seconds = monotonic()
        self._working = 0
        self._threads = threading.active_count()
        super().__init__(_Selector(self))

    def time(self) -> float:
        """Seconds on the clock that jumps."""
        return self._seconds

    def pass_time(self, seconds: float) -> None:
        """Let the clock move on."""
        self._seconds += seconds

    @property
    def working(self) -> bool:
        """Whether something goes on whose end only real time brings."""
        return self._working > 0 or threading.active_count() > self._threads

    @contextmanager
    def real_time(self) -> Iterator[None]:
        """No jumps inside."""
        self._working += 1
        try:
            yield
        finally:
            self._working -= 1


class _Selector(selectors.DefaultSelector):
    """Where an event loop waits; this one moves the clock instead, when nothing real is awaited."""

    def __init__(self, loop: JumpingLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or (timeout is not None and timeout <= 0):
            return ready
        if self._loop.working or timeout is None:
            started = monotonic()
            ready = super().select(min(POLL_SECONDS, timeout or POLL_SECONDS))
            self._loop.pass_time(monotonic() - started)
            return ready
        self._loop.pass_time(timeout)
        return []
