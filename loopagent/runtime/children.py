"""Runs that belong together: children are started once, their ends reach their parents, budgets are shared.

What a run still has to tell others is in its state, so it is told after a crash as well; telling twice does no
harm. Nobody waits in memory for a child: its end is an event for the parent, wherever the parent is then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from loopagent.core.artifact_handles import handed_down
from loopagent.core.child_messages import parent_context
from loopagent.core.conversation import QUEUED
from loopagent.core.events import CancelRequested, Event, MessagePosted, Reported, Settled
from loopagent.core.family import budgets
from loopagent.core.lineage import (
    News,
    above,
    child_state,
    children_of,
    news,
    outcome_of,
    spent_by,
)
from loopagent.core.outcome import Outcome
from loopagent.core.spending import Ancestor, Spent
from loopagent.core.state import RunState
from loopagent.errors import ConflictError, LoopAgentError, RequestError
from loopagent.logs import log
from loopagent.ports import Handed
from loopagent.runtime.line import Line
from loopagent.runtime.needed import needed


if TYPE_CHECKING:
    from loopagent.core.agent_spec import SubAgentSpec
    from loopagent.core.effects import StartRun
    from loopagent.ports import Store
    from loopagent.runtime.bus import Bus
    from loopagent.runtime.engine import Engine
    from loopagent.runtime.live import Live

ModelOf = Callable[[str, str | None, str], str]
"""The model that answers a child: from its agent's name, the model it names, and its parent's."""


class Children:
    """The trees of runs that this process works on.

    Args:
        engine: Runs the children.
        store: Where runs are kept.
        model_of: Chooses a child's model.
        clock: Seconds since the epoch.
    """

    def __init__(
        self, engine: Engine, store: Store, model_of: ModelOf, clock: Callable[[], float]
    ) -> None:
        self._engine = engine
        self._store = store
        self._model_of = model_of
        self._clock = clock
        self._budgets = Budgets()
        self.line = Line(engine, store, clock)
        self._telling: dict[str, asyncio.Task[None]] = {}

    async def start(self, live: Live, work: StartRun) -> Outcome | None:
        """Have a child run do a piece of work; one that exists already is not started again.

        Returns:
            None when the child is at work and its end will settle the effect; else how the effect ended.
        """
        if self._engine.closing:
            await (
                asyncio.Event().wait()
            )  # the engine cancels its tasks; the next process starts the child
        if work.resume_run_id is not None:
            return await self._go_on(live.state, work, work.resume_run_id)
        sub = live.state.spec.agent(work.agent)
        try:
            wanted = sub.spec.model if sub else None
            child = child_state(
                live.state, work, self._model_of(work.agent, wanted, live.state.model)
            )
        except LoopAgentError as error:
            return Outcome.failed("no_model", str(error))
        if child is None or sub is None:
            return Outcome.failed("unknown_agent", f"There is no sub-agent {work.agent!r}.")
        child.ancestors = self._budgets.frames(child)
        context = await self._context(live.run_id, sub)
        given = await self._given(live.state, sub)
        try:
            await self._engine.create(child, work.message, by="model", context=context, given=given)
        except ConflictError:  # it was made before a crash
            if not self._engine.runs.works_on(child.id):
                await self._engine.resume(child.id)
        return None

    async def _context(self, parent_id: str, sub: SubAgentSpec) -> str:
        if sub.messages == "none":
            return ""
        transcript = await self._store.transcript(parent_id)
        return parent_context(transcript, sub.messages, sub.max_messages)

    async def _given(self, parent: RunState, sub: SubAgentSpec) -> Handed:
        """What the child is handed of its parent's artifacts; nothing else of another run can be looked into."""
        if sub.artifacts == "none":
            return Handed()
        stored = [
            await self._store.artifact(parent.id, one.artifact_id) for one in parent.artifacts
        ]
        return Handed(
            tuple(one for one in stored if one is not None), handed_down(parent.artifacts)
        )

    async def _go_on(self, parent: RunState, work: StartRun, run_id: str) -> Outcome | None:
        """Give a child its answer, or have it try again; its next end settles this effect, not the earlier one."""
        now = self._clock()
        how = {**above(parent), "effect": work.id}

        def decide(child: RunState) -> Sequence[Event]:
            if child.serves == work.id:
                return ()
            taken = Reported("again", how, now) if child.ended else Reported("serves", how, now)
            return taken, MessagePosted(work.message, now, by="model")

        try:
            child = await self._engine.deliver(run_id, decide)
        except RequestError as error:
            return Outcome.failed(error.code, str(error))
        return outcome_of(child) if child.ended else None

    # ------------------------------------------------------------------ telling

    def committed(self, live: Live) -> None:
        """Look at a run that was just committed: what it spent, and whom it has to tell what."""
        state = live.state
        if state.parent_id is not None or state.agent_calls:
            self._budgets.note(state)  # others were never given work, so nobody shares their budget
        if self._engine.closing:
            return
        if state.conversation and state.ended:
            self.line.ended(state)
        if not state.unheard:
            return
        telling = self._telling.get(live.run_id)
        if telling is None or telling.done():
            task = asyncio.create_task(self._tell(live), name=f"{live.run_id}/tell")
            self._telling[live.run_id] = task
            task.add_done_callback(lambda done: self._told_all(live.run_id, done))

    def _told_all(self, run_id: str, done: asyncio.Task[None]) -> None:
        if self._telling.get(run_id) is done:
            del self._telling[run_id]

    async def heard(self, run_id: str) -> None:
        """Wait until the runs around one, and those below, have heard what it has to tell, or until that failed."""
        telling = self._telling.get(run_id)
        if telling is not None:
            await asyncio.wait([telling])

    async def _tell(self, live: Live) -> None:
        try:
            state = live.state
            while state.unheard:
                told = news(state)
                async with asyncio.TaskGroup() as side_by_side:
                    for one in told:
                        side_by_side.create_task(self._bring(state, one))
                state = await self._engine.deliver(live.run_id, self._told(state.unheard, told))
        except Exception as error:  # whatever it is, it is tried again later
            log.error("run.untold", error, run_id=live.run_id)
            await self._engine.let_go(live)

    def _told(
        self, runs: tuple[str, ...], told: list[News]
    ) -> Callable[[RunState], Sequence[Event]]:
        """That these runs have heard; not those for which there is something else to hear by now."""
        now = self._clock()

        def decide(state: RunState) -> Sequence[Event]:
            newer = {one.run_id for one in news(state) if one not in told}
            heard = [one for one in runs if one not in newer]
            return [Reported("told", {"runs": heard}, now)] if heard else ()

        return decide

    async def _bring(self, state: RunState, one: News) -> None:
        now, outcome = self._clock(), one.outcome

        def decide(other: RunState) -> Sequence[Event]:
            if other.ended:
                return ()
            if outcome is not None:
                return [Settled(state.serves, outcome, now)]
            if one.above is not None:
                return [Reported("above", one.above, now)]
            reason = "The run that gave the work does not need it any more."
            return [CancelRequested(now, reason, "engine")]

        try:
            await self._engine.insist(one.run_id, decide)
        except RequestError as error:
            if error.code != "unknown_run":  # work that was taken back before its run was made
                raise
        if outcome is None:  # downwards only: nobody waits for who waits for it
            await self.heard(one.run_id)

    async def stop_stray(self, live: Live) -> bool:
        """Look at a run that is taken up: it may have something to tell, or nobody may need it any more.

        Returns:
            True for a child whose parent has gone on without it, which was stopped; and for a run that waits for
            those before it in its conversation, which was let in if none goes on any more.
        """
        state = live.state
        if QUEUED in state.pending:
            await self.line.let_in(state)
            return True
        if not state.ended and not await needed(state, self._store.load):
            reason = "The run that gave the work has gone on without it."
            event = CancelRequested(self._clock(), reason, "engine")
            await self._engine.deliver(state.id, lambda _: [event])
            return True
        self.committed(live)
        return False

    # ------------------------------------------------------------------ budgets

    def news_for(self, state: RunState) -> list[Event]:
        """What a run must know before it goes on: what the runs around it have spent meanwhile."""
        frames = self._budgets.frames(state)
        if frames == state.ancestors:
            return []
        rows = [list(one) for one in budgets(frames)]
        return [Reported("spent", {"spent": rows}, self._clock())]

    def at_rest(self, state: RunState, bus: Bus) -> None:
        """Nothing of a run's tree is worked on here any more: let go of its budget, and say that the root is idle."""
        root_id = state.root_id or state.id
        self._budgets.forget(root_id)
        if state.id != root_id:
            bus.idle(root_id, "running")

    async def aclose(self) -> None:
        """Stop telling; what is untold is told by the next process."""
        await self.line.aclose()
        tasks = list(self._telling.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class Budgets:
    """What the runs of a tree have spent so far, as far as this process knows."""

    def __init__(self) -> None:
        self._trees: dict[str, dict[str, tuple[Spent, dict[str, Spent]]]] = {}

    def note(self, state: RunState) -> None:
        """Take in how a run stands now."""
        under_way = dict.fromkeys(children_of(state), Spent())
        under_way |= {
            key: one.counted
            for key, one in state.asked.items()
            if key in under_way or not one.stopped
        }
        if state.parent_id is None and not under_way:
            return  # nobody shares its budget
        tree = self._trees.setdefault(state.root_id or state.id, {})
        tree[state.id] = (spent_by(state), under_way)

    def frames(self, state: RunState) -> tuple[Ancestor, ...]:
        """The runs above one, with what they have spent without it by now; what was spent never gets less."""
        if not state.ancestors:
            return ()
        tree = self._trees.get(state.root_id, {})
        tree = {
            state.id: (spent_by(state), {}),
            **tree,
        }  # one that goes on has spent something before
        own = _total(tree, state.id)
        return tuple(
            replace(one, spent=one.spent.at_least(_total(tree, one.run_id).less(own)))
            if one.run_id in tree
            else one
            for one in state.ancestors
        )

    def forget(self, root_id: str) -> None:
        """Let go of a tree."""
        self._trees.pop(root_id, None)


def _total(tree: dict[str, tuple[Spent, dict[str, Spent]]], run_id: str) -> Spent:
    """What a run has spent, with its children: those that ended are in its own count, as others are in part."""
    spent, under_way = tree.get(run_id, (Spent(), {}))
    for one, counted in under_way.items():
        if one in tree:
            spent = spent.plus(_total(tree, one).less(counted))
    return spent
