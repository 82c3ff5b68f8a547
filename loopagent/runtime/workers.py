"""Tasks that perform effects: each brings the outcome back and goes on with one of the effects that follow."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from logging import DEBUG, INFO
from time import perf_counter
from typing import TYPE_CHECKING, Any

from loopagent.core.effects import WORK, Effect, StartRun
from loopagent.logs import log, performing
from loopagent.runtime.ends import broken, event_of, log_end, log_start


if TYPE_CHECKING:
    from loopagent.runtime.children import Children
    from loopagent.runtime.engine import Engine
    from loopagent.runtime.leases import Leases
    from loopagent.runtime.live import Live
    from loopagent.runtime.performs import Performs


SLICE_SECONDS = 0.001
"""A run's only worker that has gone on for so long from one effect to the next lets others have the event loop first;
where there are several, each does so before it delivers."""


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
        """Have effects performed that are still pending."""
        for effect in effects:
            if effect.id in live.state.pending:
                self._start(live, effect)

    def _start(self, live: Live, effect: Effect) -> None:
        """Have an effect performed: by a worker that has just brought an outcome back, else by a new one."""
        if live.spare:
            worker = live.spare.pop(0)
            live.following[worker] = effect
        else:
            worker = asyncio.create_task(
                self._work(live, effect), name=f"{live.run_id}/{effect.id}"
            )
        live.tasks[effect.id] = worker

    async def _work(self, live: Live, effect: Effect) -> None:
        """Perform an effect, bring its outcome back, and go on with one of the effects that follow from it."""
        worker = asyncio.current_task()
        assert worker is not None  # this is a task's coroutine
        began = perf_counter()
        following: Effect | None = effect
        while following is not None:
            if len(live.tasks) == 1 and perf_counter() - began > SLICE_SECONDS:
                await asyncio.sleep(0)  # models and actions may never wait
                began = perf_counter()
            following = await self._perform(live, following, worker)

    async def _perform(
        self, live: Live, effect: Effect, worker: asyncio.Task[None]
    ) -> Effect | None:
        """Perform one effect and deliver its outcome together with whatever else is ready by then."""

        async def report(what: Any, data: dict[str, Any]) -> None:
            async with live.lock:
                await self._engine.record(live, what, data)

        performing(live.run_id, effect.id)  # what is written meanwhile is about that
        if log.hears(DEBUG):
            log_start(live, effect)
        try:
            outcome = await (
                self._children.start(live, effect)
                if isinstance(effect, StartRun)
                else self._performer.perform(live, effect, report)
            )
        except Exception as error:  # a bug in an adapter must not leave the run hanging
            outcome = broken(live, effect, error)
        if log.hears(INFO):
            log_end(live, effect, outcome)
        if live.tasks.get(effect.id) is not worker:
            return None
        live.ready[effect.id] = event_of(effect.id, outcome, self._clock())
        try:
            await self._flush(live, effect.id, worker)
        finally:  # also when it was cancelled meanwhile
            following = live.following.pop(worker, None)
        return following

    async def _flush(self, live: Live, effect_id: str, worker: asyncio.Task[None]) -> None:
        """Deliver what is ready, unless another worker has done so meanwhile."""
        if len(live.tasks) > 1:
            await asyncio.sleep(0)  # whatever ends in the same moment is committed with it
        async with live.lock:
            if effect_id not in live.ready:
                return  # whoever held the lock has delivered it, and dealt out what follows
            events = live.collect()
            try:
                await self._engine.happened(live, events)
            except Exception as error:
                log.error("run.not_saved", error, run_id=live.run_id, effect_id=effect_id)
                live.following.clear()
                await self._engine.let_go(live)
                return
            finally:
                live.spare = []
            self._leases.went_well(live.run_id)
            if type(live.following.get(worker)) in WORK:
                return  # it goes on with that, so the run does not rest
            self._engine.runs.rest(live)
        self._engine.runs.forget_if_resting(live)
