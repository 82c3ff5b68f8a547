"""The part of the SQLite store that keeps leases."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopagent.stores.sqlite import leases


if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from loopagent.dispatch_port import News, Work
    from loopagent.stores.sqlite.readers import Readers
    from loopagent.stores.sqlite.writer import Writer


class SqliteDispatch:
    """Keeps leases in the database of a store; see `DispatchStore`. Processes that share a file have to look."""

    _writer: Writer
    _readers: Readers

    async def unfinished(self) -> list[str]:
        """Ids of runs with work to do, oldest first."""
        return await self._readers.run(leases.unfinished)

    async def claim(self, run_id: str, owner: str, *, now: float, lease_seconds: float) -> bool:
        """Take or renew a lease; see `DispatchStore.claim`."""
        return await self._writer.submit(
            lambda: lambda db: leases.claim(db, run_id, owner, now, lease_seconds)
        )

    async def release(self, run_id: str, owner: str) -> bool:
        """Give a lease back; see `DispatchStore.release`."""
        return await self._writer.submit(lambda: lambda db: leases.release(db, run_id, owner))

    async def owner(self, run_id: str) -> str | None:
        """Who holds the lease; see `DispatchStore.owner`."""
        return await self._readers.run(lambda db: leases.owner(db, run_id))

    async def work(self, run_ids: Sequence[str]) -> list[Work]:
        """What there is to do for some runs; see `DispatchStore.work`."""
        return await self._readers.run(lambda db: leases.work(db, run_ids))

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
        if not await self._readers.run(lambda db: leases.may_take(db, now, gone)):
            return []
        until = now + lease_seconds
        return await self._writer.submit(
            lambda: lambda db: leases.take(db, owner, until, now, limit=limit, gone=gone)
        )

    async def renew(
        self, run_ids: Sequence[str], owner: str, *, now: float, lease_seconds: float
    ) -> dict[str, int]:
        """Renew leases; see `DispatchStore.renew`."""
        until = now + lease_seconds
        return await self._writer.submit(lambda: lambda db: leases.renew(db, run_ids, owner, until))

    async def next_due(self) -> float | None:
        """When the next run is due; see `DispatchStore.next_due`."""
        return await self._readers.run(leases.next_due)

    async def owners(self) -> list[str]:
        """Everybody who holds a lease of a run with work."""
        return await self._readers.run(leases.owners)

    async def next_in_line(self) -> list[str]:
        """Runs that may be let in; see `DispatchStore.next_in_line`."""
        return await self._readers.run(leases.next_in_line)

    def watch(self, heard: Callable[[News], None]) -> None:
        """A file tells nobody that it was changed."""

    def offer(self, run_ids: Sequence[str]) -> None:
        """Nobody can be told."""
