"""Time limits of many waits with one timer of the event loop, which is set again only when an earlier limit comes.

Most calls end long before their limit. A timer for each would be made and thrown away every time.
"""

from __future__ import annotations

import asyncio
from typing import Any, TypeAlias


Waited: TypeAlias = "asyncio.Future[Any]"


class Deadlines:
    """Gives None to those that wait for a result when their time is up; for one event loop."""

    def __init__(self) -> None:
        self._due: dict[Waited, float] = {}
        self._timer: asyncio.TimerHandle | None = None

    def add(self, result: Waited, ends_at: float) -> None:
        """Give None to a result at a time of the event loop's clock, unless it is settled by then."""
        self._due[result] = ends_at
        timer = self._timer
        if timer is None or ends_at < timer.when():
            self._set(ends_at)

    def drop(self, result: Waited) -> None:
        """Nobody waits for it any more. The timer stays: it looks for the next limit when it fires."""
        self._due.pop(result, None)

    def _set(self, ends_at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_at(ends_at, self._fire)

    def _fire(self) -> None:
        assert self._timer is not None
        now, self._timer = self._timer.when(), None
        for result in [one for one, ends_at in self._due.items() if ends_at <= now]:
            del self._due[result]
            if not result.done():
                result.set_result(None)
        if self._due:
            self._set(min(self._due.values()))
