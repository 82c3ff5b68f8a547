"""Who works on what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from loopagent.dispatch_port import Work
from loopagent.stores.postgres.conversations import HEADS


if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

Db: TypeAlias = Any


async def unfinished(db: Db) -> list[str]:
    """Ids of runs with work to do, oldest first."""
    found = await db.fetch(
        f"SELECT id, key FROM run WHERE due IS NOT NULL UNION {HEADS} ORDER BY key"
    )
    return [one["id"] for one in found]


async def claim(db: Db, run_id: str, owner: str, now: float, lease_seconds: float) -> bool:
    """Take or renew a lease."""
    found = await db.fetchval(
        """
        UPDATE run SET owner = $1, leased_until = $2
        WHERE id = $3 AND (owner IS NULL OR owner = $1 OR leased_until <= $4) RETURNING true
        """,
        owner,
        now + lease_seconds,
        run_id,
        now,
    )
    return found is not None


async def release(db: Db, run_id: str, owner: str) -> bool:
    """Give a lease back; tells whether the run has work."""
    found = await db.fetchrow(
        "UPDATE run SET owner = NULL, leased_until = NULL WHERE id = $1 AND owner = $2 RETURNING due",
        run_id,
        owner,
    )
    return found is not None and found["due"] is not None


async def owner(db: Db, run_id: str) -> str | None:
    """Who holds a run's lease."""
    found: str | None = await db.fetchval("SELECT owner FROM run WHERE id = $1", run_id)
    return found


async def work(db: Db, run_ids: Sequence[str]) -> list[Work]:
    """What there is to do for some runs."""
    found = await db.fetch(
        """
        SELECT id, due, updated_at, owner, coalesce(leased_until, 0) FROM run
        WHERE due IS NOT NULL AND id = ANY ($1)
        """,
        list(run_ids),
    )
    return [Work(*one) for one in found]


async def take(
    db: Db, by: str, until: float, now: float, *, limit: int, gone: Collection[str]
) -> list[str]:
    """Claim what is due; rows that somebody else is claiming at this moment are passed over."""
    found = await db.fetch(
        """
        UPDATE run SET owner = $1, leased_until = $2 FROM (
          SELECT key FROM run WHERE due <= $3
          AND (owner IS NULL OR leased_until <= $3 OR owner = ANY ($4))
          ORDER BY due, key LIMIT $5 FOR UPDATE SKIP LOCKED) AS free
        WHERE run.key = free.key RETURNING run.id, run.due, run.key
        """,
        by,
        until,
        now,
        list(gone),
        limit,
    )
    return [one["id"] for one in sorted(found, key=lambda one: (one["due"], one["key"]))]


async def renew(db: Db, run_ids: Sequence[str], by: str, until: float) -> dict[str, int]:
    """Renew leases; returns the versions of the runs that are still held."""
    found = await db.fetch(
        """
        UPDATE run SET leased_until = $1 FROM (
          SELECT key FROM run WHERE owner = $2 AND id = ANY ($3) ORDER BY key FOR UPDATE) AS held
        WHERE run.key = held.key RETURNING run.id, run.version
        """,
        until,
        by,
        list(run_ids),
    )
    return {one["id"]: one["version"] for one in found}


async def next_due(db: Db) -> float | None:
    """When the next run that nobody works on is due."""
    found: float | None = await db.fetchval(
        "SELECT due FROM run WHERE due IS NOT NULL AND owner IS NULL ORDER BY due LIMIT 1"
    )
    return found


async def owners(db: Db) -> list[str]:
    """Everybody who holds a lease of a run with work."""
    found = await db.fetch(
        "SELECT DISTINCT owner FROM run WHERE due IS NOT NULL AND owner IS NOT NULL ORDER BY owner"
    )
    return [one["owner"] for one in found]


async def next_in_line(db: Db) -> list[str]:
    """Runs that may be let in."""
    return [one["id"] for one in await db.fetch(HEADS)]
