"""Finding work: runs that are due and that nobody works on, whoever left them and wherever it was.

Who works on what is in the store alone, so any number of processes may look. They look when they are told that there
is something, when a timer runs out, and now and then in case nobody told them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from loopagent.errors import LoopAgentError, StoreError
from loopagent.logs import log
from loopagent.runtime.leases import is_gone


if TYPE_CHECKING:
    from loopagent.ports import Store
    from loopagent.runtime.engine import Engine
    from loopagent.runtime.leases import Leases

POLL_SECONDS = 1.0
"""How often the store is looked at when nothing is heard."""
THOROUGH_EVERY = 3
"""Every so many looks it is also asked for what dead processes and ended runs have left."""
AT_ONCE = 50
"""Runs that are claimed together; what one process does not take is there for the others."""


class Dispatcher:
    """Has the engine take up what is due.

    Args:
        engine: Works on runs.
        store: Knows what is due.
        leases: Signed by this process.
        clock: Seconds since the epoch.
        most: Runs that are worked on at the same time at most; None for any number.
    """

    def __init__(
        self,
        engine: Engine,
        store: Store,
        leases: Leases,
        clock: Callable[[], float],
        *,
        most: int | None = None,
    ) -> None:
        self._engine = engine
        self._store = store
        self._leases = leases
        self._clock = clock
        self._most = most
        self._wake = asyncio.Event()
        self._next: float | None = None

    @property
    def limited(self) -> bool:
        """Whether runs may have to wait for others to end."""
        return self._most is not None

    @property
    def full(self) -> bool:
        """Whether as many runs are worked on as may be."""
        return self._most is not None and self._leases.count >= self._most

    def has_room(self, run_id: str) -> bool:
        """Whether a run may be worked on; one that was claimed is counted already."""
        return not self.full or self._leases.claimed(run_id)

    def wake(self) -> None:
        """Look soon: there is work."""
        self._wake.set()

    def due_at(self, at: float) -> None:
        """Something is due then, in seconds since the epoch."""
        if self._next is None or at < self._next:
            self._next = at
            self._wake.set()

    async def run(self) -> None:
        """Look, again and again; run it as a task."""
        looks = 0
        while True:
            await self._pause()
            try:
                looks += 1
                await self.look(thorough=looks % THOROUGH_EVERY == 0)
            except StoreError as error:
                log.error("runs.not_found", error)
                await asyncio.sleep(POLL_SECONDS)

    async def _pause(self) -> None:
        left = POLL_SECONDS
        if self._next is not None:
            left = min(left, max(self._next - self._clock(), 0.0))
        try:
            async with asyncio.timeout(left):
                await self._wake.wait()
            # what is heard was told a moment ago: one look for all that is told now
            await asyncio.sleep(0)
        except TimeoutError:
            pass
        self._wake.clear()

    async def look(self, *, thorough: bool = True) -> list[str]:
        """Take up what is due.

        Args:
            thorough: Also look for what dead processes hold, and for who may be let in to a conversation.

        Returns:
            Ids of the runs that are worked on now.
        """
        taken: list[str] = []
        await self._leases.give_up()
        gone = [one for one in await self._store.owners() if is_gone(one)] if thorough else []
        while not self.full:
            found = await self._leases.claim_due(self._room(), gone)
            taken += [one for one in found if await self._take_up(one)]
            if len(found) < AT_ONCE:
                break
        for one in await self._store.next_in_line() if thorough else ():
            await self._take_up(one)
        self._next = None if self.full else await self._store.next_due()
        return taken

    def _room(self) -> int:
        return AT_ONCE if self._most is None else min(AT_ONCE, self._most - self._leases.count)

    async def _take_up(self, run_id: str) -> bool:
        """Have one run taken up; one that cannot be is left alone for a while."""
        try:
            taken = await self._engine.resume(run_id)
        except LoopAgentError as error:
            log.error("run.not_taken_up", error, run_id=run_id)
            self._leases.put_off(run_id)
            return False
        await self._leases.unused(run_id)
        return taken
