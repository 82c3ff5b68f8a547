"""The part of the PostgreSQL store that keeps leases, and tells other processes what happens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopagent.dispatch_port import News, Work
from loopagent.stores.postgres import leases
from loopagent.stores.postgres.more_methods import Finding


if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from loopagent.ports import Commit
    from loopagent.stores.postgres.signals import Signals


class PostgresDispatch(Finding):
    """Keeps leases in the database of a store; see `DispatchStore`."""

    _signals: Signals

    async def unfinished(self) -> list[str]:
        """Ids of runs with work to do, oldest first."""
        return await self._connections.run(lambda db, _: leases.unfinished(db))

    async def claim(self, run_id: str, owner: str, *, now: float, lease_seconds: float) -> bool:
        """Take or renew a lease; see `DispatchStore.claim`."""
        return await self._connections.run(
            lambda db, _: leases.claim(db, run_id, owner, now, lease_seconds)
        )

    async def release(self, run_id: str, owner: str) -> bool:
        """Give a lease back; see `DispatchStore.release`."""
        return await self._connections.run(lambda db, _: leases.release(db, run_id, owner))

    async def owner(self, run_id: str) -> str | None:
        """Who holds the lease; see `DispatchStore.owner`."""
        return await self._find(None, lambda db, _: leases.owner(db, run_id))

    async def work(self, run_ids: Sequence[str]) -> list[Work]:
        """What there is to do for some runs; see `DispatchStore.work`."""
        return await self._connections.run(lambda db, _: leases.work(db, run_ids))

    async def take(
        self,
        owner: str,
        *,
        now: float,
        lease_seconds: float,
        limit: int,
        gone: Collection[str] = (),
    ) -> list[str]:
        """Claim what is due; see `DispatchStore.take`."""
        until = now + lease_seconds
        return await self._connections.run(
            lambda db, _: leases.take(db, owner, until, now, limit=limit, gone=gone)
        )

    async def renew(
        self, run_ids: Sequence[str], owner: str, *, now: float, lease_seconds: float
    ) -> dict[str, int]:
        """Renew leases; see `DispatchStore.renew`."""
        until = now + lease_seconds
        return await self._connections.run(lambda db, _: leases.renew(db, run_ids, owner, until))

    async def next_due(self) -> float | None:
        """When the next run is due; see `DispatchStore.next_due`."""
        return await self._connections.run(lambda db, _: leases.next_due(db))

    async def owners(self) -> list[str]:
        """Everybody who holds a lease of a run with work."""
        return await self._connections.run(lambda db, _: leases.owners(db))

    async def next_in_line(self) -> list[str]:
        """Runs that may be let in; see `DispatchStore.next_in_line`."""
        return await self._connections.run(lambda db, _: leases.next_in_line(db))

    def watch(self, heard: Callable[[News], None]) -> None:
        """Have news of other processes brought; see `DispatchStore.watch`."""
        self._signals.watch(heard)

    def offer(self, run_ids: Sequence[str]) -> None:
        """Tell other processes of work; see `DispatchStore.offer`."""
        for one in run_ids:
            self._signals.tell(News(one))

    def _told(self, commit: Commit) -> None:
        """Tell other processes of a commit."""
        state = commit.state
        self._signals.tell(News(state.id, state.root_id or state.id, commit.version + 1))
