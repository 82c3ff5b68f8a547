"""The runs that this process has in hand: read when something is to happen to them, forgotten when they rest."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from loopagent.core.lineage import children_of
from loopagent.errors import RequestError
from loopagent.runtime.live import Live
from loopagent.runtime.view import shown_messages


if TYPE_CHECKING:
    from loopagent.core.state import RunState
    from loopagent.ports import Store
    from loopagent.runtime.bus import Bus
    from loopagent.runtime.leases import Leases
    from loopagent.runtime.streaming import ReplyStream


class AtWork:
    """The live sides of runs, by id.

    Args:
        store: Where runs are read from.
        bus: Who is told that a run does nothing now.
        leases: Given up when a run is forgotten.
        tree_rests: Called with the state of a run when nothing of its tree is in hand any more.
    """

    def __init__(
        self, store: Store, bus: Bus, leases: Leases, tree_rests: Callable[[RunState], None]
    ) -> None:
        self._store = store
        self._bus = bus
        bus.arriving = self.replies
        self._leases = leases
        self._tree_rests = tree_rests
        self._trees: dict[str, dict[str, Live]] = {}
        """By the first part of their ids, which the runs of a tree share."""
        self._loading: dict[str, asyncio.Lock] = {}

    def __iter__(self) -> Iterator[Live]:
        return iter([live for tree in self._trees.values() for live in tree.values()])

    def __contains__(self, live: Live) -> bool:
        return self.get(live.run_id) is live

    def get(self, run_id: str) -> Live | None:
        """The run if it is in hand."""
        return self._tree_of(run_id).get(run_id)

    def add(self, live: Live) -> None:
        """Take a run in hand."""
        self._trees.setdefault(_stem(live.run_id), {})[live.run_id] = live

    def drop(self, live: Live) -> None:
        """Let go of a run, whatever it is doing; whoever waits for it looks again."""
        tree = self._tree_of(live.run_id)
        live.close()
        if tree.get(live.run_id) is live:
            del tree[live.run_id]
            if not tree:
                del self._trees[_stem(live.run_id)]
        live.idle.set()

    def clear(self) -> None:
        """Let go of all runs."""
        for live in self:
            live.close()
        self._trees.clear()

    def _tree_of(self, run_id: str) -> dict[str, Live]:
        return self._trees.get(_stem(run_id), {})

    async def load(self, run_id: str) -> Live:
        """The live side of a run, read from the store unless it is here already.

        Raises:
            RequestError: `unknown_run`.
        """
        live = self.get(run_id)
        if live is not None:
            return live
        async with self._loading.setdefault(run_id, asyncio.Lock()):
            live = self.get(run_id)
            if live is None:
                live = await self._read(run_id)
                self.add(live)
        self._loading.pop(run_id, None)
        return live

    async def reload(self, live: Live) -> None:
        """Look at a run that somebody else moved on, and stop what it does not wait for any more."""
        fresh = await self._read(live.run_id)
        live.state, live.version, live.view = fresh.state, fresh.version, fresh.view
        for key in {*live.tasks, *live.ready} - live.state.pending.keys():
            live.stop(key)

    async def _read(self, run_id: str) -> Live:
        snapshot = await self._store.load(run_id)
        if snapshot is None:
            raise RequestError("unknown_run", f"There is no run {run_id!r}.", status=404)
        return Live(snapshot, await shown_messages(self._store, snapshot.state))

    def any_of(self, run_id: str) -> Live | None:
        """The run, or one below it, if it is in hand."""
        tree = self._tree_of(run_id)
        below = (one for key, one in tree.items() if key.startswith(f"{run_id}."))
        return tree.get(run_id) or next(below, None)

    def replies(self, run_id: str) -> list[ReplyStream]:
        """The replies that are arriving in a run and, if it is the root of its tree, in those below it."""
        lives = self._tree_of(run_id).values()
        heard = [one for one in lives if run_id in {one.run_id, one.state.root_id}]
        return [one.reply for one in heard if one.reply is not None]

    def partial(self, run_id: str) -> str:
        """Visible text of the reply that is arriving now, empty when none is."""
        live = self.get(run_id)
        return live.partial if live is not None and live.state.calling is not None else ""

    def streams(self, run_id: str) -> bool:
        """Whether a reply is arriving of which something can be seen."""
        live = self.get(run_id)
        return live is not None and live.reply is not None and live.reply.streams

    def works_on(self, run_id: str) -> bool:
        """Whether the run, or one below it, is in hand."""
        return self.any_of(run_id) is not None

    async def idle(self, run_id: str, timeout_seconds: float | None) -> bool:
        """Wait until the run stops working here (ended or waiting for people); False on timeout."""
        live = self.any_of(run_id)
        if live is None:
            return True
        try:
            async with asyncio.timeout(timeout_seconds):
                await live.idle.wait()
        except TimeoutError:
            return False
        return True

    def rest(self, live: Live) -> None:
        """Tell whoever waits that the run does nothing now, if so."""
        if self._asleep(live, live.quiet) and not live.idle.is_set():
            live.idle.set()
            self._bus.idle(live.run_id, live.state.status)

    def forget_if_resting(self, live: Live) -> None:
        """Let go of a run that nothing goes on in, then of those above it.

        One that somebody has locked is left: they are about to do something, and ask again.
        """
        if live.lock.locked() or not self._asleep(live, live.resting) or live not in self:
            return
        self.drop(live)
        self._leases.drop(live)
        parent = self.get(live.state.parent_id or "")
        if parent is not None:
            self.rest(parent)
            self.forget_if_resting(parent)
        elif not self.works_on(live.state.root_id):
            self._tree_rests(live.state)

    def _asleep(self, live: Live, still: bool) -> bool:
        """Whether nothing goes on here, in the run (which is `still`) and in the children it waits for."""
        return still and not any(self.get(one) for one in children_of(live.state))


def _stem(run_id: str) -> str:
    """What the ids of a tree's runs begin with: a child's id is its parent's, a dot, and more."""
    return run_id.partition(".")[0]
