"""Who works on what: one process writes at a time, so whoever takes work looks first without the lock."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from loopagent.dispatch_port import Work
from loopagent.stores.sql.leases import WORK, LeaseTables


if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from loopagent.dispatch_port import News

_FREE = """
SELECT key FROM run WHERE due <= $1
AND (owner IS NULL OR leased_until <= $1 OR owner IN (SELECT value FROM json_each($2)))
"""
_TAKE = f"""
UPDATE run SET owner = $3, leased_until = $4
WHERE key IN ({_FREE} ORDER BY due, key LIMIT $5) RETURNING id, due, key
"""  # noqa: S608 - a constant
_RENEW = """
UPDATE run SET leased_until = $1
WHERE owner = $2 AND id IN (SELECT value FROM json_each($3)) RETURNING id, version
"""

_WORK = f"{WORK} AND id IN (SELECT value FROM json_each($1))"  # noqa: S608


class SqliteLeases(LeaseTables):
    """Keeps leases in the database of a store; see `DispatchStore`. Processes that share a file have to look."""

    async def work(self, run_ids: Sequence[str]) -> list[Work]:
        """What there is to do for some runs; see `DispatchStore.work`."""
        return [Work(*one) for one in await self._fetched(_WORK, json.dumps(list(run_ids)))]

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
        free = (now, json.dumps(list(gone)))
        if not await self._fetched(f"{_FREE} LIMIT 1", *free):
            return []
        done = await self._change((_TAKE, (*free, owner, now + lease_seconds, limit)))
        return [one for one, _, _ in sorted(done.rows, key=lambda row: (row[1], row[2]))]

    async def renew(
        self, run_ids: Sequence[str], owner: str, *, now: float, lease_seconds: float
    ) -> dict[str, int]:
        """Renew leases; see `DispatchStore.renew`."""
        values = (now + lease_seconds, owner, json.dumps(list(run_ids)))
        return {row[0]: row[1] for row in (await self._change((_RENEW, values))).rows}

    def watch(self, heard: Callable[[News], None]) -> None:
        """A file tells nobody that it was changed."""

    def offer(self, run_ids: Sequence[str]) -> None:
        """Nobody can be told."""
