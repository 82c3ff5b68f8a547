"""Who works on what. Each function runs inside a transaction."""

from __future__ import annotations

import json
import sqlite3
from typing import TYPE_CHECKING

from loopagent.dispatch_port import Work
from loopagent.stores.sqlite.conversations import HEADS


if TYPE_CHECKING:
    from collections.abc import Collection, Sequence


def unfinished(connection: sqlite3.Connection) -> list[str]:
    """Ids of runs with work to do, oldest first."""
    found = connection.execute(
        f"SELECT id, key FROM run WHERE due IS NOT NULL UNION {HEADS} ORDER BY key"  # noqa: S608 - a constant
    )
    return [one for one, _ in found]


def claim(
    connection: sqlite3.Connection, run_id: str, owner: str, now: float, lease_seconds: float
) -> bool:
    """Take or renew a lease."""
    cursor = connection.execute(
        """
        UPDATE run SET owner = ?1, leased_until = ?2
        WHERE id = ?3 AND (owner IS NULL OR owner = ?1 OR leased_until <= ?4)
        """,
        (owner, now + lease_seconds, run_id, now),
    )
    return cursor.rowcount == 1


def release(connection: sqlite3.Connection, run_id: str, owner: str) -> bool:
    """Give a lease back; tells whether the run has work."""
    found = connection.execute(
        "UPDATE run SET owner = NULL, leased_until = NULL WHERE id = ? AND owner = ? RETURNING due",
        (run_id, owner),
    ).fetchall()
    return bool(found) and found[0][0] is not None


def owner(connection: sqlite3.Connection, run_id: str) -> str | None:
    """Who holds a run's lease."""
    found = connection.execute("SELECT owner FROM run WHERE id = ?", (run_id,)).fetchone()
    return None if found is None else found[0]


def work(connection: sqlite3.Connection, run_ids: Sequence[str]) -> list[Work]:
    """What there is to do for some runs."""
    found = connection.execute(
        """
        SELECT id, due, updated_at, owner, leased_until FROM run
        WHERE due IS NOT NULL AND id IN (SELECT value FROM json_each(?))
        """,
        (json.dumps(list(run_ids)),),
    )
    return [Work(run_id, due, at, owner, until or 0.0) for run_id, due, at, owner, until in found]


_FREE = """
SELECT key FROM run WHERE due <= ?1
AND (owner IS NULL OR leased_until <= ?1 OR owner IN (SELECT value FROM json_each(?2)))
"""


def may_take(connection: sqlite3.Connection, now: float, gone: Collection[str]) -> bool:
    """Whether there is anything to take: a look without the write lock."""
    values = (now, json.dumps(list(gone)))
    return connection.execute(f"{_FREE} LIMIT 1", values).fetchone() is not None


def take(
    connection: sqlite3.Connection,
    by: str,
    until: float,
    now: float,
    *,
    limit: int,
    gone: Collection[str],
) -> list[str]:
    """Claim what is due."""
    found = connection.execute(
        f"""
        UPDATE run SET owner = ?3, leased_until = ?4
        WHERE key IN ({_FREE} ORDER BY due, key LIMIT ?5) RETURNING id, due, key
        """,  # noqa: S608 - a constant
        (now, json.dumps(list(gone)), by, until, limit),
    )
    return [one for one, _, _ in sorted(found.fetchall(), key=lambda one: one[1:])]


def renew(
    connection: sqlite3.Connection, run_ids: Sequence[str], by: str, until: float
) -> dict[str, int]:
    """Renew leases; returns the versions of the runs that are still held."""
    found = connection.execute(
        """
        UPDATE run SET leased_until = ?1
        WHERE owner = ?2 AND id IN (SELECT value FROM json_each(?3)) RETURNING id, version
        """,
        (until, by, json.dumps(list(run_ids))),
    )
    return dict(found.fetchall())


def next_due(connection: sqlite3.Connection) -> float | None:
    """When the next run that nobody works on is due."""
    found = connection.execute(
        "SELECT due FROM run WHERE due IS NOT NULL AND owner IS NULL ORDER BY due LIMIT 1"
    ).fetchone()
    return None if found is None else float(found[0])


def owners(connection: sqlite3.Connection) -> list[str]:
    """Everybody who holds a lease of a run with work."""
    found = connection.execute(
        "SELECT DISTINCT owner FROM run WHERE due IS NOT NULL AND owner IS NOT NULL ORDER BY owner"
    )
    return [one for (one,) in found]


def next_in_line(connection: sqlite3.Connection) -> list[str]:
    """Runs that may be let in."""
    return [one for one, _ in connection.execute(HEADS)]
