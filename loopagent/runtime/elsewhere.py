"""What other processes do to the same runs: hearing of it, catching up, and leaving work to them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from loopagent.logs import log


if TYPE_CHECKING:
    from loopagent.dispatch_port import News
    from loopagent.ports import Store
    from loopagent.runtime.bus import Bus
    from loopagent.runtime.dispatch import Dispatcher
    from loopagent.runtime.engine import Engine
    from loopagent.runtime.live import Live

HOLD_SECONDS = 2.0
"""A timer that runs out sooner is waited for in memory; a later one is left to the store."""


class Elsewhere:
    """The other processes, as far as an engine is concerned.

    Args:
        engine: Whose runs they are.
        store: Shared with them.
        bus: Who listens here.
        works: Whether this process works on runs at all.
    """

    def __init__(self, engine: Engine, store: Store, bus: Bus, *, works: bool) -> None:
        self._engine = engine
        self._store = store
        self._bus = bus
        self.works = works
        """Whether this process works on runs at all."""
        self.dispatcher: Dispatcher | None = None
        """Takes up what is due, in a process that goes on; None in one that does only what it is told."""
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def goes_on(self) -> bool:
        """Whether what is due is taken up by itself, here or elsewhere."""
        return self.dispatcher is not None or not self.works

    # ------------------------------------------------------------------ hearing

    def hear(self, news: News) -> None:
        """Something happened elsewhere."""
        if not news.run_id:
            self._bus.wake_all()
            self._look()
        elif not news.version:
            self._look()
        else:
            self._bus.nudge(news.run_id, news.root_id)
            self.moved(news.run_id, news.version)

    def moved(self, run_id: str, version: int) -> None:
        """A run is at this version now; if it is in hand here, what changed is looked at."""
        live = self._engine.runs.get(run_id)
        if live is not None and live.version < version:
            task = asyncio.create_task(self._catch_up(live, version), name=f"{run_id}/news")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _catch_up(self, live: Live, version: int) -> None:
        try:
            await self._engine.catch_up(live, version)
        except Exception as error:
            log.error("run.not_caught_up", error, run_id=live.run_id)

    async def lost(self, live: Live) -> None:
        """Another process took a run over: what is done for it here is of no use any more."""
        await self._engine.let_go(live, lost=True)

    # ------------------------------------------------------------------ leaving

    def left(self, run_id: str) -> None:
        """A run has work that this process does not do."""
        self._look()
        self._store.offer([run_id])

    def fewer(self) -> None:
        """One run less is worked on here."""
        if self.dispatcher is not None and self.dispatcher.limited:
            self.dispatcher.wake()

    def _look(self) -> None:
        if self.dispatcher is not None:
            self.dispatcher.wake()

    def may_work(self, run_id: str) -> bool:
        """Whether this process may take up a run."""
        return self.works and (self.dispatcher is None or self.dispatcher.has_room(run_id))

    def parks(self, live: Live, now: float) -> bool:
        """Whether nothing but a clock runs for a run, and the store is to wait for it."""
        due = live.state.due
        if not due or live.ready or not self.goes_on:
            return False
        return due > now + (0.0 if live.state.waiting else HOLD_SECONDS)

    def due_at(self, at: float) -> None:
        """A run will be due then."""
        if self.dispatcher is not None:
            self.dispatcher.due_at(at)

    async def aclose(self) -> None:
        """Stop catching up."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
