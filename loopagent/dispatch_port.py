"""What a store must be able to do so that many workers share its runs; a part of `ports.Store`.

A run has a time when a worker has something to do for it: at once, when a timer runs out, or never while it waits
for people. Who works on it holds its lease. So a run that waits is a row and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class News:
    """What another process did.

    `version` is what the run is at now; 0 says only that there is work that nobody has taken. An empty `run_id` says
    that something may have been missed.
    """

    run_id: str = ""
    root_id: str = ""
    version: int = 0


@dataclass(frozen=True, slots=True)
class Work:
    """What a worker has to do for a run, and who does it. Times are seconds since the epoch."""

    run_id: str
    due: float
    """When it has to be done; 0 is at once."""
    moved_at: float
    """When something happened in the run last."""
    owner: str | None = None
    """Who holds the lease, whether it has expired or not."""
    leased_until: float = 0.0
    """When that expires."""


class DispatchStore(Protocol):
    """Knows which runs have work, and who does it."""

    async def unfinished(self) -> list[str]:
        """Ids of runs that have work for a worker, now or later (not ended, not only waiting for people).

        A run that waits in a conversation in which no earlier one goes on any more has: to be let in.
        """
        ...

    async def claim(self, run_id: str, owner: str, *, now: float, lease_seconds: float) -> bool:
        """Take or renew the right to perform a run's effects; False while another owner's lease is valid."""
        ...

    async def release(self, run_id: str, owner: str) -> bool:
        """Give the right back, if `owner` holds it; True when the run has work all the same, now or later."""
        ...

    async def owner(self, run_id: str) -> str | None:
        """Who holds the run's lease, whether it has expired or not."""
        ...

    async def work(self, run_ids: Sequence[str]) -> list[Work]:
        """What there is to do for some runs, in any order; those without work for a worker are left out."""
        ...

    async def take(
        self,
        owner: str,
        *,
        now: float,
        lease_seconds: float,
        limit: int,
        gone: Collection[str] = (),
    ) -> list[str]:
        """Claim runs that are due and that nobody works on, the longest due first; what others claim is passed over.

        Args:
            owner: Who claims them.
            now: Seconds since the epoch.
            lease_seconds: How long the leases hold.
            limit: No more than these.
            gone: Owners that are known to be dead; their leases count as expired.

        Returns:
            Ids of the runs whose leases the owner holds now, and did not hold before.
        """
        ...

    async def renew(
        self, run_ids: Sequence[str], owner: str, *, now: float, lease_seconds: float
    ) -> dict[str, int]:
        """Renew leases; returns the versions of the runs that the owner still holds, by id."""
        ...

    async def next_due(self) -> float | None:
        """When the next run that nobody works on is due, in seconds since the epoch; None if none ever is."""
        ...

    async def owners(self) -> list[str]:
        """Everybody who holds the lease of a run that has work."""
        ...

    async def next_in_line(self) -> list[str]:
        """Runs that wait in a conversation in which no earlier one goes on any more."""
        ...

    def watch(self, heard: Callable[[News], None]) -> None:
        """Have news of what other processes do brought; to be called before `open`. Some stores hear of nothing."""
        ...

    def offer(self, run_ids: Sequence[str]) -> None:
        """Tell other processes that runs have work that nobody has taken; whether they hear of it is not certain."""
        ...
