"""Commits that wait a moment for the next one of their run, so that both are one transaction.

A store that allows it says for how long. Only what leads to nothing but calls that read may wait: should the process
die meanwhile, the model is asked again and nothing has happened that the log does not know. Nobody is told of what
is not stored, and when somebody listens nothing waits.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeAlias

from loopagent.core.abilities import usable_action
from loopagent.core.effects import CallModel, Effect, RunAction
from loopagent.core.events import Event, Settled


if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from loopagent.core.state import RunState
    from loopagent.ports import Commit, Store
    from loopagent.runtime.bus import Bus
    from loopagent.runtime.live import Live


Stored: TypeAlias = "tuple[tuple[Commit, ...], int]"
"""Commits that were stored together, and the `seq` of their first fact."""


class Hold:
    """Stores what runs commit, now or with what they commit next.

    Args:
        store: Where runs are kept.
        bus: Who is told of what is stored.
        late: Stores what a run has kept back for long enough.
    """

    def __init__(self, store: Store, bus: Bus, late: Callable[[Live], Awaitable[None]]) -> None:
        self._store = store
        self._bus = bus
        self._late = late
        self._writing: set[asyncio.Future[None]] = set()
        self._timed: set[Live] = set()

    async def take(self, live: Live, commit: Commit) -> Stored | None:
        """Store a commit with all that was kept back, or keep it back as well.

        Returns:
            What was stored and is to be told; None when the commit was kept back.

        Raises:
            ConflictError: The run was moved on by somebody else; nothing was written.
        """
        if (
            self._store.hold_seconds
            and live.owned
            and can_wait(live.state, commit.events, commit.state, more=bool(live.held))
            and not self._bus.heard(live.run_id, commit.state.root_id)
        ):
            self._keep_back(live, commit)
            return None
        return await self.store(live, commit)

    async def store(self, live: Live, *further: Commit) -> Stored:
        """Store what was kept back, and more; together there is something."""
        commits = (*live.held, *further)
        first_seq = await self._store.commit(*commits)
        live.held = []
        return commits, first_seq

    def _keep_back(self, live: Live, commit: Commit) -> None:
        if not live.held:
            loop = asyncio.get_running_loop()
            live.held_until = loop.time() + self._store.hold_seconds
            if live not in self._timed:  # one timer does for many, as most do not wait for it
                self._timed.add(live)
                loop.call_at(live.held_until, self._due, live)
        live.held.append(commit)

    def _due(self, live: Live) -> None:
        loop = asyncio.get_running_loop()
        if live.held and loop.time() < live.held_until:
            loop.call_at(live.held_until, self._due, live)
            return
        self._timed.discard(live)
        if not live.held:
            return
        task = asyncio.ensure_future(self._late(live))
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)


def can_wait(before: RunState, events: tuple[Event, ...], after: RunState, *, more: bool) -> bool:
    """Whether nobody outside could tell if this had happened twice: a model answered, calls that read go on.

    Args:
        before: The state that the events came to.
        events: What happened.
        after: The state they made.
        more: What led to the state before waits as well, so nothing but calls that read was pending in it.
    """
    pending = after.pending.values()
    if after.unheard or {*map(type, events)} != {Settled} or {*map(type, pending)} != {RunAction}:
        return False
    effects: list[Effect | None] = [*pending]
    if not more:
        effects += [before.pending.get(one.effect_id) for one in events if isinstance(one, Settled)]
    called: set[str] = set()
    for effect in effects:
        if isinstance(effect, RunAction):
            called.add(effect.action)
        elif not isinstance(effect, CallModel):
            return False
    for name in called:
        action = usable_action(after, name)
        if action is None or action.effects != "read":
            return False
    return True
