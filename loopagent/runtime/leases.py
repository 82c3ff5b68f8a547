"""Who performs the effects of a run: one process at a time, by a lease that a heartbeat renews."""

from __future__ import annotations

import asyncio
import hashlib
import os
import socket
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from loopagent.errors import StoreError
from loopagent.logs import log


if TYPE_CHECKING:
    from loopagent.dispatch_port import Work
    from loopagent.ports import Store
    from loopagent.runtime.live import Live

PROCESS_SPACE = Path("/proc/self/ns/pid")
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
LEASE_SECONDS = 30.0
"""How long a lease holds without being renewed, unless somebody says otherwise."""
LONGEST_PAUSE_SECONDS = 60.0
"""A run that cannot be worked on is tried again after a while, which grows up to this."""


@cache
def machine() -> str:
    """Names the machine, and the space of process ids in it: a container may have the same host name as another."""
    parts: list[str] = []
    with suppress(OSError):
        parts.append(str(PROCESS_SPACE.readlink()))
    with suppress(OSError):
        parts.append(BOOT_ID.read_text("ascii").strip())
    digest = hashlib.sha256("|".join(parts).encode()).hexdigest()[:8]
    return f"{socket.gethostname()}~{digest}"


def owner_name(token: str) -> str:
    """The name this process signs leases with: machine, process id and a token that no other start shares."""
    return f"{machine()}:{os.getpid()}:{token}"


def is_gone(owner: str) -> bool:
    """Whether the process that signed a lease is certainly dead: same machine, and no such process id."""
    host, _, rest = owner.partition(":")
    pid = rest.partition(":")[0]
    if host != machine() or not pid.isdigit():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


class Holder(Protocol):
    """Whoever works on the runs that are held."""

    async def lost(self, live: Live) -> None:
        """Another process took a run over."""
        ...

    def moved(self, run_id: str, version: int) -> None:
        """Another process moved a run on that is held here; it is at this version now."""
        ...

    def left(self, run_id: str) -> None:
        """A run was given back although it has work."""
        ...

    def fewer(self) -> None:
        """One run less is held than before."""
        ...


class Leases:
    """The leases of one process.

    Args:
        store: Where leases are kept.
        owner: Name that signs them, see `owner_name`.
        clock: Seconds since the epoch.
        lease_seconds: How long a lease holds without being renewed; it is renewed three times in that time.
    """

    def __init__(
        self,
        store: Store,
        owner: str,
        clock: Callable[[], float],
        *,
        lease_seconds: float = LEASE_SECONDS,
    ) -> None:
        self._store = store
        self._owner = owner
        self._clock = clock
        self._lease_seconds = lease_seconds
        self._held: dict[str, Live] = {}
        self._claimed: set[str] = set()
        """Claimed by `claim_due`, and not taken by anybody here yet."""
        self._put_off: dict[str, float] = {}
        """Runs that are left alone for a while, and when their leases are given back."""
        self._failures: dict[str, int] = {}
        self._returning: set[asyncio.Task[None]] = set()
        self.holder: Holder | None = None
        """Who is told what becomes of leases."""

    @property
    def count(self) -> int:
        """How many runs are worked on; those that wait to ask a model again are not."""
        working = sum(1 for live in self._held.values() if not live.pauses)
        return working + len(self._claimed)

    def claimed(self, run_id: str) -> bool:
        """Whether a run was claimed, and is counted, but is not yet taken."""
        return run_id in self._claimed

    async def take(self, live: Live) -> bool:
        """Get the right to perform a run's effects; False while a living process holds it."""
        if live.owned:
            return True
        run_id = live.run_id
        if run_id in self._put_off:
            return False
        live.owned = (
            run_id in self._claimed or await self._claim(run_id) or await self._inherit(run_id)
        )
        if live.owned:
            self._claimed.discard(run_id)
            self._held[run_id] = live
        return live.owned

    async def _claim(self, run_id: str) -> bool:
        return await self._store.claim(
            run_id, self._owner, now=self._clock(), lease_seconds=self._lease_seconds
        )

    async def _inherit(self, run_id: str) -> bool:
        """Take over from a process of this machine that no longer exists, without waiting for its lease to end."""
        owner = await self._store.owner(run_id)
        if owner is None or not is_gone(owner):
            return False
        await self._store.release(run_id, owner)
        return await self._claim(run_id)

    async def claim_due(self, limit: int, gone: Collection[str]) -> list[str]:
        """Claim runs that are due; each is to be taken, or to be reported as `unused`."""
        found = await self._store.take(
            self._owner,
            now=self._clock(),
            lease_seconds=self._lease_seconds,
            limit=limit,
            gone=gone,
        )
        self._claimed.update(found)
        return found

    async def unattended(self, run_ids: Iterable[str]) -> set[str]:
        """Those of some runs that have work now, and that nobody works on.

        Whoever did is dead or has not renewed the lease, or nobody has taken the run up for as long as a lease holds.
        """
        known = self._held.keys() | self._claimed | self._put_off.keys()
        elsewhere = [one for one in run_ids if one not in known]
        found = await self._store.work(elsewhere) if elsewhere else []
        return {one.run_id for one in found if self._is_left(one)}

    def _is_left(self, work: Work) -> bool:
        now = self._clock()
        if work.due > now:
            return False
        if work.owner is not None:
            return work.leased_until <= now or is_gone(work.owner)
        return max(work.due, work.moved_at) <= now - self._lease_seconds

    async def unused(self, run_id: str) -> None:
        """Give back what was claimed, if nobody here took it."""
        if run_id in self._claimed:
            self._claimed.discard(run_id)
            await self._store.release(run_id, self._owner)

    def put_off(self, run_id: str) -> None:
        """Leave a run alone for a while, with its lease held; longer each time in a row."""
        live = self._held.pop(run_id, None)
        if live is not None:
            live.owned = False
        self._claimed.discard(run_id)
        failures = self._failures[run_id] = self._failures.get(run_id, 0) + 1
        self._put_off[run_id] = self._clock() + min(2.0 ** (failures - 1), LONGEST_PAUSE_SECONDS)

    def went_well(self, run_id: str) -> None:
        """What happened to a run was saved."""
        if self._failures:
            self._failures.pop(run_id, None)

    async def give_up(self) -> None:
        """Give back what was left alone long enough, for whoever wants to try again."""
        now = self._clock()
        for run_id in [one for one, at in self._put_off.items() if at <= now]:
            await self._store.release(run_id, self._owner)
            self._put_off.pop(run_id, None)

    async def renew(self) -> None:
        """Renew every lease held, for ever; run it as a task."""
        while True:
            await asyncio.sleep(self._lease_seconds / 3)
            try:
                await self._renew()
            except StoreError as error:
                log.error("leases.not_renewed", error, runs=len(self._held))

    async def _renew(self) -> None:
        """Renew, and see what others did to the runs meanwhile."""
        held = dict(self._held)
        names = [*held, *self._claimed, *self._put_off]
        if not names:
            return
        kept = await self._store.renew(
            names, self._owner, now=self._clock(), lease_seconds=self._lease_seconds
        )
        for run_id, live in held.items():
            if self._held.get(run_id) is not live:
                continue
            if run_id not in kept:
                log.warning("lease.lost", run_id=run_id)
                self.forget(live)
                if self.holder is not None:
                    await self.holder.lost(live)
            elif kept[run_id] > live.version and self.holder is not None:
                self.holder.moved(run_id, kept[run_id])

    def forget(self, live: Live) -> None:
        """Another process holds it now."""
        self._held.pop(live.run_id, None)
        live.owned = False

    def drop(self, live: Live) -> None:
        """Give a lease back in the background; the run rests."""
        if live.owned:
            task = asyncio.create_task(self._give_back(live))
            self._returning.add(task)
            task.add_done_callback(self._returning.discard)

    async def _give_back(self, live: Live) -> None:
        try:
            await self.give_back(live)
        except StoreError as error:
            log.error("lease.not_released", error, run_id=live.run_id)

    async def give_back(self, live: Live) -> None:
        """Give a lease back."""
        if self._held.pop(live.run_id, None) is not None:
            live.owned = False
            left = await self._store.release(live.run_id, self._owner)
            if self.holder is not None:
                self.holder.fewer()
                if left:
                    self.holder.left(live.run_id)

    async def aclose(self) -> None:
        """Wait until everything is given back."""
        await asyncio.gather(*self._returning, return_exceptions=True)
        for run_id in [*self._claimed, *self._put_off]:
            with suppress(StoreError):
                await self._store.release(run_id, self._owner)
