"""Who works on what, for runs in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from loopagent.dispatch_port import Work


if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from loopagent.dispatch_port import News


class Leased(Protocol):
    """A run as far as its lease is concerned."""

    version: int
    updated_at: float
    owner: str | None
    leased_until: float

    @property
    def due(self) -> float | None:
        """When there is something to do for it."""


class MemoryDispatch:
    """The part of a store in memory that keeps leases; see `DispatchStore`. There is one process, so no news."""

    def _leases(self) -> Mapping[str, Leased]:
        raise NotImplementedError

    def _heads(self) -> set[str]:
        raise NotImplementedError

    async def unfinished(self) -> list[str]:
        """Ids of runs with work to do, oldest first."""
        heads = self._heads()
        return [key for key, one in self._leases().items() if one.due is not None or key in heads]

    async def claim(self, run_id: str, owner: str, *, now: float, lease_seconds: float) -> bool:
        """Take or renew a lease; see `DispatchStore.claim`."""
        run = self._leases().get(run_id)
        if run is None or (run.owner not in (None, owner) and run.leased_until > now):
            return False
        run.owner, run.leased_until = owner, now + lease_seconds
        return True

    async def release(self, run_id: str, owner: str) -> bool:
        """Give a lease back; see `DispatchStore.release`."""
        run = self._leases().get(run_id)
        if run is None or run.owner != owner:
            return False
        run.owner = None
        return run.due is not None

    async def owner(self, run_id: str) -> str | None:
        """Who holds the lease; see `DispatchStore.owner`."""
        run = self._leases().get(run_id)
        return None if run is None else run.owner

    async def work(self, run_ids: Sequence[str]) -> list[Work]:
        """What there is to do for some runs; see `DispatchStore.work`."""
        found = [(key, self._leases().get(key)) for key in dict.fromkeys(run_ids)]
        return [
            Work(key, one.due, one.updated_at, one.owner, one.leased_until)
            for key, one in found
            if one is not None and one.due is not None
        ]

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
        free = [
            (one.due, key)
            for key, one in self._leases().items()
            if one.due is not None
            and one.due <= now
            and (one.owner is None or one.leased_until <= now or one.owner in gone)
        ]
        taken = [key for _, key in sorted(free, key=lambda one: one[0])[:limit]]
        for key in taken:
            run = self._leases()[key]
            run.owner, run.leased_until = owner, now + lease_seconds
        return taken

    async def renew(
        self, run_ids: Sequence[str], owner: str, *, now: float, lease_seconds: float
    ) -> dict[str, int]:
        """Renew leases; see `DispatchStore.renew`."""
        runs = {one: self._leases().get(one) for one in run_ids}
        held = {one: run for one, run in runs.items() if run is not None and run.owner == owner}
        for run in held.values():
            run.leased_until = now + lease_seconds
        return {one: run.version for one, run in held.items()}

    async def next_due(self) -> float | None:
        """When the next run is due; see `DispatchStore.next_due`."""
        free = [one.due for one in self._leases().values() if one.owner is None]
        return min((one for one in free if one is not None), default=None)

    async def owners(self) -> list[str]:
        """Everybody who holds a lease of a run with work."""
        runs = self._leases().values()
        busy = {one.owner for one in runs if one.owner and one.due is not None}
        return sorted(busy)

    async def next_in_line(self) -> list[str]:
        """Runs that may be let in; see `DispatchStore.next_in_line`."""
        return sorted(self._heads())

    def watch(self, heard: Callable[[News], None]) -> None:
        """There is nobody else to hear of."""

    def offer(self, run_ids: Sequence[str]) -> None:
        """There is nobody else to tell."""
