"""Who performs the effects of a run: one process at a time, by a lease that a heartbeat renews."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

from loopagent.errors import StoreError
from loopagent.logs import log


if TYPE_CHECKING:
    from loopagent.ports import Store
    from loopagent.runtime.live import Live


def owner_name(token: str) -> str:
    """The name this process signs leases with: host, process id and a token that no other start shares."""
    return f"{socket.gethostname()}:{os.getpid()}:{token}"


def is_gone(owner: str) -> bool:
    """Whether the process that signed a lease is certainly dead: same host, and no such process id."""
    host, _, rest = owner.partition(":")
    pid = rest.partition(":")[0]
    if host != socket.gethostname() or not pid.isdigit():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


class Leases:
    """The leases of one process.

    Args:
        store: Where leases are kept.
        owner: Name that signs them, see `owner_name`.
        clock: Seconds since the epoch.
        lease_seconds: How long a lease holds without being renewed; it is renewed three times in that time.
    """

    def __init__(
        self, store: Store, owner: str, clock: Callable[[], float], *, lease_seconds: float = 30.0
    ) -> None:
        self._store = store
        self._owner = owner
        self._clock = clock
        self._lease_seconds = lease_seconds
        self._held: dict[str, Live] = {}
        self._returning: set[asyncio.Task[None]] = set()

    async def take(self, live: Live) -> bool:
        """Get the right to perform a run's effects; False while a living process holds it."""
        if live.owned:
            return True
        live.owned = await self._claim(live.run_id) or await self._inherit(live.run_id)
        if live.owned:
            self._held[live.run_id] = live
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

    async def renew(self) -> None:
        """Renew every lease held, for ever; run it as a task."""
        while True:
            await asyncio.sleep(self._lease_seconds / 3)
            for run_id in list(self._held):
                try:
                    await self._claim(run_id)
                except StoreError as error:
                    log.error("lease.not_renewed", error, run_id=run_id)

    def drop(self, live: Live) -> None:
        """Give a lease back in the background; the run rests."""
        if live.owned:
            task = asyncio.create_task(self.give_back(live))
            self._returning.add(task)
            task.add_done_callback(self._returning.discard)

    async def give_back(self, live: Live) -> None:
        """Give a lease back."""
        if self._held.pop(live.run_id, None) is not None:
            live.owned = False
            await self._store.release(live.run_id, self._owner)

    async def aclose(self) -> None:
        """Wait until everything is given back."""
        await asyncio.gather(*self._returning, return_exceptions=True)
