"""Who works on what, in a database; how many take work side by side is a matter of each database."""

from __future__ import annotations

from typing import Final

from loopagent.stores.sql.tables import Tables


_IN_LINE: Final = """
SELECT run.id, run.key FROM run WHERE run.shown = 'queued' AND NOT EXISTS (
  SELECT 1 FROM run AS before WHERE before.conversation = run.conversation
  AND before.status = 'running' AND before.key < run.key)
"""
"""Runs that wait in a conversation in which no earlier one goes on any more."""
_UNFINISHED: Final = f"SELECT id, key FROM run WHERE due IS NOT NULL UNION {_IN_LINE} ORDER BY key"
_CLAIM: Final = """
UPDATE run SET owner = $1, leased_until = $2
WHERE id = $3 AND (owner IS NULL OR owner = $1 OR leased_until <= $4) RETURNING id
"""
_RELEASE: Final = """
UPDATE run SET owner = NULL, leased_until = NULL WHERE id = $1 AND owner = $2 RETURNING due
"""
_OWNER: Final = "SELECT owner FROM run WHERE id = $1"
_OWNERS: Final = """
SELECT DISTINCT owner FROM run WHERE due IS NOT NULL AND owner IS NOT NULL ORDER BY owner
"""
_NEXT_DUE: Final = """
SELECT due FROM run WHERE due IS NOT NULL AND owner IS NULL ORDER BY due LIMIT 1
"""

WORK: Final = """
SELECT id, due, updated_at, owner, coalesce(leased_until, 0.0) FROM run WHERE due IS NOT NULL
"""
"""What there is to do, in the order in which `Work` takes it."""


class LeaseTables(Tables):
    """Keeps leases in the database of a store; see `DispatchStore`."""

    async def unfinished(self) -> list[str]:
        """Ids of runs with work to do, oldest first."""
        return [run_id for run_id, _ in await self._fetched(_UNFINISHED)]

    async def claim(self, run_id: str, owner: str, *, now: float, lease_seconds: float) -> bool:
        """Take or renew a lease; see `DispatchStore.claim`."""
        done = await self._change((_CLAIM, (owner, now + lease_seconds, run_id, now)))
        return bool(done.rows)

    async def release(self, run_id: str, owner: str) -> bool:
        """Give a lease back; see `DispatchStore.release`."""
        done = await self._change((_RELEASE, (run_id, owner)))
        return bool(done.rows) and done.rows[0][0] is not None

    async def owner(self, run_id: str) -> str | None:
        """Who holds the lease; see `DispatchStore.owner`."""
        found = await self._fetched(_OWNER, run_id)
        return found[0][0] if found else None

    async def next_due(self) -> float | None:
        """When the next run is due; see `DispatchStore.next_due`."""
        found = await self._fetched(_NEXT_DUE)
        return found[0][0] if found else None

    async def owners(self) -> list[str]:
        """Everybody who holds a lease of a run with work."""
        return [owner for (owner,) in await self._fetched(_OWNERS)]

    async def next_in_line(self) -> list[str]:
        """Runs that may be let in; see `DispatchStore.next_in_line`."""
        return [run_id for run_id, _ in await self._fetched(_IN_LINE)]
