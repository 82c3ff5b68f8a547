"""The runs of a conversation, one after the other: who waits is let in when the run before has ended.

Who is next follows from the store alone, so it does not matter which process sees the end of a run, or whether the
one that saw it lived long enough to let the next one in.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, NamedTuple

from loopagent.core.conversation import QUEUED, history
from loopagent.core.events import Settled
from loopagent.core.outcome import Outcome
from loopagent.errors import RequestError
from loopagent.logs import log
from loopagent.runtime.carry import approvals, carried


if TYPE_CHECKING:
    from loopagent.conversation_port import ConversationRow
    from loopagent.core.state import RunState
    from loopagent.ports import Store
    from loopagent.runtime.engine import Engine

MAX_SHOWN = 500
"""Messages that a run is shown of its conversation at most, whatever its budget."""


class Past(NamedTuple):
    """What was before a run in its conversation."""

    context: str = ""
    """What was said last."""
    carried: str = ""
    """What the run before it had looked up."""
    remembered: tuple[dict[str, Any], ...] = ()
    """Calls that need no approval in the conversation any more."""


class Line:
    """Lets the runs of conversations begin.

    Args:
        engine: Runs them.
        store: Knows who is next.
        clock: Seconds since the epoch.
    """

    def __init__(self, engine: Engine, store: Store, clock: Callable[[], float]) -> None:
        self._engine = engine
        self._store = store
        self._clock = clock
        self._tasks: set[asyncio.Task[None]] = set()

    async def past(self, state: RunState) -> Past:
        """What a run is shown of its conversation when it begins now."""
        row = await self._row(state)
        if row is None:
            return Past()
        recent = await self._store.said(
            row.user, row.id, tenant=row.tenant, first=max(1, row.last - MAX_SHOWN + 1)
        )
        context = history(recent, row.messages, state.spec.limits.max_history_tokens)
        remembered = await approvals(self._store, state, recent)
        return Past(context, await carried(self._store, state, recent), remembered)

    async def let_in(self, state: RunState) -> None:
        """Let a waiting run begin if it is its turn; saying so twice does no harm."""
        row = await self._row(state)
        if row is None or row.active[:1] != (state.id,):
            return
        begins = Settled(QUEUED, Outcome.done((await self.past(state))._asdict()), self._clock())
        await self._engine.deliver(state.id, lambda _: [begins])

    def hold(self, state: RunState) -> None:
        """End a waiting run when it is too late to begin; after a restart, at the latest when its turn comes."""
        most = state.spec.limits.max_queue_seconds
        if most is not None:
            self._later(self._too_late(state.id, self._clock() + most), f"{state.id}/queue")

    async def _too_late(self, run_id: str, due: float) -> None:
        try:
            await asyncio.sleep(max(0.0, due - self._clock()))
            over = Settled(QUEUED, Outcome.done(), max(due, self._clock()))
            await self._engine.deliver(run_id, lambda _: [over])
        except RequestError:  # it was deleted meanwhile
            return

    def _later(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def ended(self, state: RunState) -> None:
        """A run of a conversation has ended: let in who is next, in a task of its own."""
        self._later(self._next(state), f"{state.id}/next")

    async def _next(self, ended: RunState) -> None:
        try:
            row = await self._row(ended)
            first = await self._store.load(row.active[0]) if row and row.active else None
            if first is not None and QUEUED in first.state.pending:
                await self.let_in(first.state)
        except Exception as error:  # whatever it is, the sweep tries again
            log.error("run.not_let_in", error, run_id=ended.id)

    async def _row(self, state: RunState) -> ConversationRow | None:
        return await self._store.conversation(state.user, state.conversation, tenant=state.tenant)

    async def aclose(self) -> None:
        """Stop; who was not let in is let in by the next process."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
