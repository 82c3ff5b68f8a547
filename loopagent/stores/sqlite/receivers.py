"""Receivers of notifications that fail, in the database; the table is made when the first one does."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

from loopagent.notification_port import FailingReceiver


if TYPE_CHECKING:
    from collections.abc import Sequence

    from loopagent.stores.sqlite.readers import Readers
    from loopagent.stores.sqlite.writer import Writer

_TABLE = """
CREATE TABLE IF NOT EXISTS receiver (
  target TEXT PRIMARY KEY,
  failures INTEGER NOT NULL,
  at REAL NOT NULL,
  error TEXT NOT NULL,
  disabled_at REAL
) WITHOUT ROWID
"""
_READ = "SELECT target, failures, at, error, disabled_at FROM receiver"
_FAILED = """
INSERT INTO receiver VALUES (?1, 1, ?2, ?3, CASE WHEN ?4 = 1 THEN ?2 END)
ON CONFLICT (target) DO UPDATE SET failures = failures + 1, at = ?2, error = ?3,
  disabled_at = coalesce(disabled_at, CASE WHEN ?4 > 0 AND failures + 1 >= ?4 THEN ?2 END)
RETURNING target, failures, at, error, disabled_at
"""


class SqliteReceivers:
    """Keeps which receivers fail; see `NotificationStore`."""

    _writer: Writer
    _readers: Readers

    async def receiver(self, target: str) -> FailingReceiver | None:
        """One that fails; see `NotificationStore.receiver`."""
        query = f"{_READ} WHERE target = ?"
        found = await self._readers.run(lambda db: _rows(db, query, (target,)))
        return found[0] if found else None

    async def receivers(self) -> list[FailingReceiver]:
        """All that fail; see `NotificationStore.receivers`."""
        return await self._readers.run(lambda db: _rows(db, f"{_READ} ORDER BY target"))

    async def receiver_failed(
        self, target: str, *, at: float, error: str, disable_after: int
    ) -> FailingReceiver:
        """Count a failure; see `NotificationStore.receiver_failed`."""

        def write(db: sqlite3.Connection) -> FailingReceiver:
            db.execute(_TABLE)
            values = (target, at, error, disable_after)
            return FailingReceiver(*db.execute(_FAILED, values).fetchone())

        return await self._writer.submit(lambda: write)

    async def forget_receiver(self, target: str, *, disabled: bool) -> bool:
        """Begin anew; see `NotificationStore.forget_receiver`."""
        query = "DELETE FROM receiver WHERE target = ? AND (disabled_at IS NOT NULL) = ?"

        def write(db: sqlite3.Connection) -> bool:
            return _is_ready(db) and db.execute(query, (target, disabled)).rowcount == 1

        return await self._writer.submit(lambda: write)


def forget_addresses(db: sqlite3.Connection, before: float) -> None:
    """Remove what is known of addresses that runs named, when it is old."""
    if _is_ready(db):
        query = "DELETE FROM receiver WHERE at < ? AND target LIKE '%://%'"
        db.execute(query, (before,))


def _is_ready(db: sqlite3.Connection) -> bool:
    found = db.execute("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'receiver'")
    return found.fetchone() is not None


def _rows(db: sqlite3.Connection, query: str, values: Sequence[Any] = ()) -> list[FailingReceiver]:
    rows = db.execute(query, values).fetchall() if _is_ready(db) else []
    return [FailingReceiver(*one) for one in rows]
