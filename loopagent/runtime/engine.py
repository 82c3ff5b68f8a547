"""The shell around the core: commit what `advance` says, perform the effects, bring their outcomes back.

Every way into a run goes through `deliver`, one at a time per run; outcomes that are ready together are advanced
and committed together. A run that only waits has no task, no lease and nothing in memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from loopagent.core.advance import advance
from loopagent.core.effects import WORK, CancelEffect, Effect, RunAction
from loopagent.core.events import Event, Reported, Started
from loopagent.core.family import budgets
from loopagent.core.state import RunState
from loopagent.core.transition import Transition
from loopagent.errors import ConflictError, RequestError, StoreError
from loopagent.logs import log
from loopagent.ports import NOTHING, Commit, Handed, Store
from loopagent.runtime.at_work import AtWork
from loopagent.runtime.bus import Bus
from loopagent.runtime.children import Children, ModelOf
from loopagent.runtime.elsewhere import Elsewhere
from loopagent.runtime.ends import in_doubt
from loopagent.runtime.hold import Hold, Stored
from loopagent.runtime.leases import Leases
from loopagent.runtime.line import Line
from loopagent.runtime.live import Live
from loopagent.runtime.performs import Performs
from loopagent.runtime.repeatable import repeatable
from loopagent.runtime.workers import Workers


MAX_CONFLICTS = 20
"""How often a delivery reloads a run that somebody else moved on, before it gives up."""


class Engine:
    """Runs agents in this process.

    Args:
        store: Where runs are kept.
        performer: Turns effects into outcomes.
        bus: Who listens.
        leases: Keeps other processes from performing the same effects.
        model_of: Chooses the model of a child run.
        clock: Seconds since the epoch.
        works: Whether this process works on runs; if not, it leaves them to others.
    """

    def __init__(
        self,
        *,
        store: Store,
        performer: Performs,
        bus: Bus,
        leases: Leases,
        model_of: ModelOf,
        clock: Callable[[], float],
        works: bool = True,
    ) -> None:
        self._store = store
        self._bus = bus
        self._leases = leases
        self._clock = clock
        self.closing = False
        self._hold = Hold(store, bus, self._store_held)
        self._children = Children(self, store, model_of, clock)
        self._workers = Workers(self, performer, self._children, leases, clock)
        self.runs = AtWork(store, bus, leases, partial(self._children.at_rest, bus=bus))
        self.elsewhere = leases.holder = Elsewhere(self, store, bus, works=works)

    async def create(
        self,
        state: RunState,
        message: str,
        *,
        by: str,
        metadata: dict[str, Any] | None = None,
        context: str = "",
        carried: str = "",
        remembered: tuple[dict[str, Any], ...] = (),
        queued: bool = False,
        given: Handed = NOTHING,
    ) -> None:
        """Create a run with its task, and what it is shown before, and start working on it unless it is to wait."""
        self._check_open()
        now, files = self._clock(), given.described
        started = Started(message, now, by, context, queued, state.payload, files)
        spent = budgets(state.ancestors)
        started = replace(started, carried=carried, spent=spent, remembered=remembered)
        transition = advance(state, started)
        new, facts, said = transition.state, transition.facts, transition.messages
        commit = Commit(new, 0, now, (started,), facts, said, artifacts=given.stored)
        first_seq = await self._store.create(commit, metadata=metadata)
        live = Live.fresh(transition)
        self.runs.add(live)
        self._bus.announce([commit], first_seq, live.progress)
        self._children.committed(live)
        async with live.lock:
            await self._dispatch(live, transition.effects)
        self.runs.forget_if_resting(live)

    async def adopt(self, commit: Commit, metadata: dict[str, Any] | None = None) -> None:
        """Create a run that something has happened in already, and go on with it."""
        self._check_open()
        await self._store.create(commit, metadata=metadata)
        await self.resume(commit.state.id)

    def _check_open(self) -> None:
        if self.closing:
            text = "The server is shutting down."
            raise RequestError("shutting_down", text, status=503, retryable=True)

    async def deliver(self, run_id: str, decide: Callable[[RunState], Sequence[Event]]) -> RunState:
        """Bring events from outside to a run.

        Args:
            run_id: The run.
            decide: Looks at the current state and returns the events, or raises `RequestError`; called again
                when somebody else moved the run on meanwhile.

        Raises:
            RequestError: `unknown_run`, or whatever `decide` raises; nothing was changed then.
        """
        while True:
            live = await self.runs.load(run_id)
            try:
                async with live.lock:
                    if live not in self.runs:
                        continue  # it came to rest and was forgotten while this waited
                    await self.happened(live, decide(live.state), decide)
                    return live.state
            finally:  # also when it was read only to be told no
                self.runs.forget_if_resting(live)

    async def bring(self, run_id: str, decide: Callable[[RunState], Sequence[Event]]) -> RunState:
        """The same for an order: come back when the runs below have heard of it as well.

        What is stopped or paused has stopped then, in the whole tree: nothing of it begins afterwards.
        """
        state = await self.insist(run_id, decide)
        await self._children.heard(run_id)
        return state

    async def insist(self, run_id: str, decide: Callable[[RunState], Sequence[Event]]) -> RunState:
        """`deliver`, however busy another process keeps the run: what stops it must get through."""
        for _ in range(MAX_CONFLICTS):
            with suppress(ConflictError):
                return await self.deliver(run_id, decide)
        return await self.deliver(run_id, decide)

    @property
    def line(self) -> Line:
        """Lets the runs of conversations begin, one after the other."""
        return self._children.line

    async def refresh(self, run_id: str) -> None:
        """Look at a run again that is in hand here and may have been moved on elsewhere."""
        live = self.runs.get(run_id)
        if live is None:
            return
        async with live.lock:
            if live in self.runs:
                await self.runs.reload(live)

    async def recover(self) -> list[str]:
        """Take up every run that has work and nobody working on it; returns their ids."""
        taken: list[str] = []
        for run_id in await self._store.unfinished():
            live = self.runs.get(run_id)
            if live is not None and (live.owned or live.tasks or live.queued):
                continue
            if await self.resume(run_id):
                taken.append(run_id)
        return taken

    async def resume(self, run_id: str) -> bool:
        """Work on a run that was left in the middle; False when another process holds it or nothing is to do."""
        known = self.runs.get(run_id)
        if known is not None:
            if known.tasks or known.queued or known.state.unheard or known.lock.locked():
                return False
            self.runs.drop(known)
        live = await self.runs.load(run_id)
        try:
            if await self._children.stop_stray(live):
                return False
            async with live.lock:
                return live in self.runs and await self._take_up(live)
        finally:
            self.runs.forget_if_resting(live)

    async def _take_up(self, live: Live) -> bool:
        """Perform what is pending and not performed here, if nobody else does; under the run's lock."""
        if live.state.ended or not live.workable or not self.elsewhere.may_work(live.run_id):
            return False
        if not await self._leases.take(live):
            return False
        if doubts := in_doubt(live, self._clock()):
            await self.happened(live, doubts)
        await self._dispatch(live, [live.state.pending[key] for key in live.workable])
        return True

    async def catch_up(self, live: Live, version: int) -> None:
        """Look at a run that another process moved on to a version, and go on from there."""
        async with live.lock:
            if live in self.runs and live.version < version:
                await self.runs.reload(live)
                if live.owned:
                    await self._dispatch(live, [live.state.pending[key] for key in live.workable])
        self.runs.forget_if_resting(live)

    async def unattended(self, run_ids: Iterable[str]) -> set[str]:
        """Those of some runs that have work now, and that nobody works on, here or elsewhere."""
        return await self._leases.unattended(run_ids)

    async def aclose(self, grace_seconds: float = 0.0) -> None:
        """Stop performing. Nothing is lost: what was pending is pending for the next process.

        Args:
            grace_seconds: How long calls under way may go on; what follows from them is left to others.
        """
        self.closing = True
        await self._children.aclose()
        await self.elsewhere.aclose()
        calls = [task for live in self.runs for task in live.calls]
        if calls and grace_seconds > 0:
            await asyncio.wait(calls, timeout=grace_seconds)
        workers = [task for live in self.runs for task in live.workers]
        for live in self.runs:
            live.stop_all()
        await asyncio.gather(*workers, return_exceptions=True)
        for live in self.runs:
            await self._workers.finish(live)
            await self._store_held(live)
            await self._leases.give_back(live)
        self.runs.clear()

    # ------------------------------------------------------------------ one way in

    async def happened(
        self,
        live: Live,
        events: Sequence[Event],
        again: Callable[[RunState], Sequence[Event]] | None = None,
        tries: int = MAX_CONFLICTS,
    ) -> None:
        """Bring events to a run in hand, under its lock: advance, commit, tell, and begin what follows.

        When somebody else moved it on meanwhile, `again` looks at it as it is now and says what happens then, the same
        if not given; up to `tries` times.

        Raises:
            ConflictError: Somebody else moves the run on all the time; nothing has happened here.
        """
        before, came = live.state, tuple(events)
        if came and before.ancestors:
            came = (*self._children.news_for(before), *came)
        transition = advance(before, *came)
        if not transition.changed:
            live.settle(())
            return
        after = transition.state
        commit = Commit(
            after,
            live.version,
            after.clock,
            came,
            transition.facts,
            transition.messages,
            transition.spilled,
            self._store.durability == "turn" and repeatable(before, came, after),
            after.payload is before.payload,
        )
        try:
            stored = await self._hold.take(live, commit)
        except ConflictError as error:
            await self._look_again(live)
            if tries == 1:
                text = (
                    f"Run {live.run_id} is being changed by somebody else all the time; try again."
                )
                raise ConflictError(text) from error
            newer = events if again is None else again(live.state)
            await self.happened(live, newer, again, tries - 1)
            await self._take_up(live)  # something may be pending that nobody here has begun
            return
        await self._moved_on(live, transition, stored)
        if before.paused and not after.paused:  # what waited begins
            await self._take_up(live)

    async def _moved_on(self, live: Live, transition: Transition, stored: Stored | None) -> None:
        """A transition was committed or kept back: it is how the run stands now."""
        live.state = transition.state
        live.version += 1
        live.view.follow(transition.state, transition.messages)
        in_vain = live.settle(transition.facts)
        if stored is not None:
            self._bus.announce(*stored, live.progress)
        self._children.committed(live)
        await self._dispatch(live, transition.effects)
        if in_vain:
            await self.record(live, "discarded", {"calls": in_vain})

    async def record(self, live: Live, what: Any, data: dict[str, Any]) -> None:
        """Store something that happened; under the run's lock."""
        await self.happened(live, [Reported(what, data, self._clock())])

    async def _look_again(self, live: Live) -> None:
        """Look at a run that somebody else moved on; what was kept back happens to it as it is now."""
        await self.runs.reload(live)
        for one in live.take_held():
            await self.happened(live, one.events)

    async def _store_held(self, live: Live) -> None:
        """Store what was kept back; never raises."""
        async with live.lock:
            try:
                if live.held:
                    stored = await self._hold.store(live)
                    self._bus.announce(*stored, live.progress)
            except ConflictError:
                await self._look_again(live)
            except Exception as error:
                log.error("run.not_saved", error, run_id=live.run_id)
                await self.let_go(live)

    # ------------------------------------------------------------------ performing

    async def _dispatch(self, live: Live, effects: Sequence[Effect]) -> None:
        """Start what is to be performed; journal first which calls must not silently run twice."""
        for effect in effects:
            if type(effect) is CancelEffect:
                live.stop(effect.target)
        todo = live.to_perform(effects)
        works = bool(todo) and type(todo[0]) in WORK  # then it neither waits nor is it for a clock
        if not works and self.elsewhere.parks(live, self._clock()):
            await self._park(live)
            return
        if not todo or self.closing:
            self.runs.rest(live)
            return
        if not works and live.state.waiting:
            await self._leases.give_back(live)  # only clocks run: whoever has the answer may go on
            self._workers.begin(live, todo)
            self.runs.rest(live)
            return
        if not (
            live.owned or (self.elsewhere.may_work(live.run_id) and await self._leases.take(live))
        ):
            live.idle.set()
            self.elsewhere.left(live.run_id)
            return
        live.idle.clear()
        for one in todo:
            if type(one) is RunAction and not one.repeatable:
                await self._journal(live, todo)
                break
        self._workers.begin(live, todo)

    async def _journal(self, live: Live, todo: Sequence[Effect]) -> None:
        """Store which calls begin now that must not silently run twice."""
        risky = [one.id for one in todo if isinstance(one, RunAction) and not one.repeatable]
        await self.record(live, "started", {"effects": risky})

    async def _park(self, live: Live) -> None:
        """Leave a run to the clock of the store: nothing of it stays here."""
        assert live.state.due is not None
        live.stop_all()
        await self._leases.give_back(live)
        self.elsewhere.due_at(live.state.due)
        if live.state.waiting:
            self.runs.rest(live)
        else:
            live.idle.set()

    async def let_go(self, live: Live, *, lost: bool = False) -> None:
        """Let go of a run whose progress cannot be saved, or that was `lost`: the store has it as it is."""
        live.stop_all()
        live.ready.clear()
        live.take_held()
        self.runs.drop(live)
        if lost:
            self._leases.forget(live)
        elif self.elsewhere.dispatcher is not None and live.owned:
            self._leases.put_off(live.run_id)
        else:
            try:
                await self._leases.give_back(live)
            except StoreError:
                log.warning("lease.not_released", run_id=live.run_id)
