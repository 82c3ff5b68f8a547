"""Tasks that perform effects: each brings the outcome back and goes on with one of the effects that follow."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from logging import INFO
from time import perf_counter
from typing import TYPE_CHECKING, Any

from loopagent.core.effects import WORK, Effect, StartRun
from loopagent.core.events import Event, Settled
from loopagent.logs import log, performing
from loopagent.runtime.ends import begun, broken, log_end, log_start


if TYPE_CHECKING:
    from loopagent.runtime.children import Children
    from loopagent.runtime.engine import Engine
    from loopagent.runtime.leases import Leases
    from loopagent.runtime.live import Live
    from loopagent.runtime.performs import Performs


SLICE_SECONDS = 0.002
"""A worker that has gone on for so long from one effect to the next delivers, and lets others have the event loop."""


class Workers:
    """The tasks of one process.

    Args:
        engine: Is told what happened.
        performer: Turns effects into outcomes.
        children: Has child runs do their work.
        leases: Hear of it when a run went well.
        clock: Seconds since the epoch.
    """

    def __init__(
        self,
        engine: Engine,
        performer: Performs,
        children: Children,
        leases: Leases,
        clock: Callable[[], float],
    ) -> None:
        self._engine = engine
        self._performer = performer
        self._children = children
        self._leases = leases
        self._clock = clock

    def begin(self, live: Live, effects: Sequence[Effect]) -> None:
        """Have effects performed: by the worker that has just brought what they follow from, else by new ones.

        Calls may all end at once, so further workers come when one has to wait; other effects begin side by side.
        """
        for effect in effects:
            live.queued[effect.id] = effect
        wanted = 1 if type(effects[0]) in WORK else len(effects)
        for _ in range(wanted - live.taken_up):
            self._employ(live)

    async def finish(self, live: Live) -> None:
        """Deliver what has ended and whose worker was stopped at another effect."""
        if live.ready:
            await self._flush(live)

    def _employ(self, live: Live) -> None:
        worker = asyncio.create_task(self._work(live), name=f"{live.run_id}/worker")
        live.workers.add(worker)
        worker.add_done_callback(live.workers.discard)

    def _spread(self, live: Live) -> None:
        """Employ as many workers as there is work left: whoever would have done it has to wait for something."""
        live.spreading = False
        if self._engine.closing:
            return
        for _ in range(max(len(live.queued), bool(live.ready))):
            self._employ(live)

    async def _work(self, live: Live) -> None:
        """Perform effects one after the other, and bring their outcomes back together.

        Most take no time that others could use. Before one that might, it is seen to that others go on.
        """
        worker = asyncio.current_task()
        assert worker is not None  # this is a task's coroutine
        began = perf_counter()
        while True:
            effect = None if self._engine.closing else live.take()
            if effect is not None:
                if (live.queued or live.ready) and not live.spreading:
                    live.spreading = True
                    asyncio.get_running_loop().call_soon(self._spread, live)
                await self._perform(live, effect, worker)
            elif not live.ready:
                return
            if live.queued and effect is not None:
                continue
            await self._flush(live)
            if perf_counter() - began > SLICE_SECONDS:
                await asyncio.sleep(0)  # models and actions may never wait
                began = perf_counter()

    async def _perform(self, live: Live, effect: Effect, worker: asyncio.Task[None]) -> None:
        """Perform one effect; its outcome is ready then, unless it was stopped meanwhile."""

        async def report(what: Any, data: dict[str, Any]) -> None:
            async with live.lock:
                await self._engine.record(live, what, data)

        live.tasks[effect.id] = worker
        performing((live.run_id, effect.id))  # what is written meanwhile is about that
        heard = log.hears(INFO)
        if heard:
            log_start(live, effect)
        try:
            outcome = await (
                self._children.start(live, effect)
                if isinstance(effect, StartRun)
                else self._performer.perform(live, effect, report)
            )
        except Exception as error:  # a bug in an adapter must not leave the run hanging
            outcome = broken(live, effect, error)
        if heard:
            log_end(live, effect, outcome)
        if live.tasks.get(effect.id) is worker:
            del live.tasks[effect.id]
            at = self._clock()
            live.ready[effect.id] = (
                begun(effect.id, at) if outcome is None else Settled(effect.id, outcome, at)
            )

    async def _flush(self, live: Live) -> None:
        """Deliver what is ready, unless another worker does so."""
        if live.tasks:
            await asyncio.sleep(0)  # whatever ends in the same moment is committed with it
        await live.lock.acquire()  # `async with` would take twice as many calls
        try:
            ready, live.ready = live.ready, {}
            if not ready or await self._deliver(live, [*ready.values()]):
                return
        finally:
            live.lock.release()
        self._engine.runs.forget_if_resting(live)

    async def _deliver(self, live: Live, events: list[Event]) -> bool:
        """Bring events under the run's lock; True when their worker goes on, so that the run does not rest."""
        live.taken_up = True
        try:
            await self._engine.happened(live, events)
        except Exception as error:
            log.error("run.not_saved", error, run_id=live.run_id)
            await self._engine.let_go(live)
            return True
        finally:
            live.taken_up = False
        self._leases.went_well(live.run_id)
        if live.queued and type(next(iter(live.queued.values()))) in WORK:
            return True
        self._engine.runs.rest(live)
        return False
