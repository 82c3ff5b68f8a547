"""Notifications, in the database."""

from __future__ import annotations

import json
import sqlite3
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter
from pydantic_core import to_json

from loopagent.notification_port import OPEN, Notice
from loopagent.stores import records
from loopagent.stores.sqlite.conditions import where
from loopagent.stores.sqlite.file import statements
from loopagent.stores.sqlite.receivers import SqliteReceivers, forget_addresses


if TYPE_CHECKING:
    from collections.abc import Sequence

_NOTICE: TypeAdapter[Notice] = TypeAdapter(Notice)
_COLUMNS = ("id", "run_id", "status", "version", "at", "due", "tenant")
_READ = "SELECT key, id, run, status, version, at, due, tenant, body FROM notice"
_PUT = """
INSERT OR IGNORE INTO notice (id, run, status, version, at, due, tenant, body)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""
_CHANGE = """
UPDATE notice SET status = ?, version = version + 1, due = ?, body = ? WHERE id = ? AND version = ?
"""
_CLAIM = """
UPDATE notice SET status = 'sending', version = version + 1, due = ?
WHERE key IN (SELECT key FROM notice WHERE due <= ? ORDER BY due, key LIMIT ?)
RETURNING key
"""


class SqliteNotices(SqliteReceivers):
    """Keeps notifications in the database of a store; see `NotificationStore`."""

    async def notice(self, notice_id: str) -> Notice | None:
        """One notification; see `NotificationStore.notice`."""
        found = await self._readers.run(lambda db: _read(db, "WHERE id = ?", (notice_id,)))
        return found[0][1] if found else None

    async def notices(
        self,
        *,
        run_id: str | None = None,
        status: str | None = None,
        tenant: str | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> tuple[list[Notice], str | None]:
        """A page of notifications; see `NotificationStore.notices`."""
        before, size = records.decode_cursor("notices", cursor), records.page_size(limit)
        wanted = {"run = ?": run_id, "status = ?": status, "tenant = ?": tenant}
        conditions, given = where({**wanted, "key < ?": before})
        rest, values = f"{conditions} ORDER BY key DESC LIMIT ?", (*given, size + 1)
        found = await self._readers.run(lambda db: _read(db, rest, values))
        return [one for _, one in found[:size]], records.next_cursor("notices", found, size)

    async def notice_due(self) -> float | None:
        """When the next one is looked at; see `NotificationStore.notice_due`."""
        return await self._readers.run(_next_due)

    async def claim_notices(self, *, now: float, lease_seconds: float, limit: int) -> list[Notice]:
        """Take some; see `NotificationStore.claim_notices`."""

        def write(db: sqlite3.Connection) -> list[Notice]:
            if not _is_ready(db):
                return []
            keys = [key for (key,) in db.execute(_CLAIM, (now + lease_seconds, now, limit))]
            taken = [one for key in sorted(keys) for one in _read(db, "WHERE key = ?", (key,))]
            return [one for _, one in taken]

        return await self._writer.submit(lambda: write)

    async def save_notice(self, notice: Notice) -> bool:
        """Keep a newer state; see `NotificationStore.save_notice`."""
        values = (notice.status, notice.due, _rest(notice), notice.id, notice.version)

        def write(db: sqlite3.Connection) -> bool:
            return _is_ready(db) and db.execute(_CHANGE, values).rowcount == 1

        return await self._writer.submit(lambda: write)

    async def forget_notices(self, before: float) -> int:
        """Remove old ones; see `NotificationStore.forget_notices`."""
        still = ", ".join(f"'{one}'" for one in sorted(OPEN))
        query = f"DELETE FROM notice WHERE at < ? AND status NOT IN ({still})"  # noqa: S608 - no text of a caller's

        def write(db: sqlite3.Connection) -> int:
            forget_addresses(db, before)
            return db.execute(query, (before,)).rowcount if _is_ready(db) else 0

        return await self._writer.submit(lambda: write)


def put(db: sqlite3.Connection, notices: Sequence[Notice]) -> None:
    """Keep new notifications, inside the transaction of the commit that they come from."""
    if not _is_ready(db):
        script = files("loopagent.stores.sqlite").joinpath("notices.sql").read_text("utf-8")
        for one in statements(script):
            db.execute(one)
    rows = [(*(getattr(one, name) for name in _COLUMNS), _rest(one)) for one in notices]
    db.executemany(_PUT, rows)


def forget_run(db: sqlite3.Connection, key: int) -> None:
    """Remove the notifications of a run that is being removed."""
    if _is_ready(db):
        db.execute("DELETE FROM notice WHERE run = (SELECT id FROM run WHERE key = ?)", (key,))


def _next_due(db: sqlite3.Connection) -> float | None:
    if not _is_ready(db):
        return None
    ((due,),) = db.execute("SELECT min(due) FROM notice WHERE due IS NOT NULL").fetchall()
    return None if due is None else float(due)


def _is_ready(db: sqlite3.Connection) -> bool:
    found = db.execute("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'notice'")
    return found.fetchone() is not None


def _read(db: sqlite3.Connection, rest: str, values: Sequence[Any]) -> list[tuple[int, Notice]]:
    rows = db.execute(f"{_READ} {rest}", values).fetchall() if _is_ready(db) else []
    return [
        (
            key,
            _NOTICE.validate_python(
                {**dict(zip(_COLUMNS, found, strict=True)), **json.loads(body)}
            ),
        )
        for key, *found, body in rows
    ]


def _rest(notice: Notice) -> str:
    """What the columns do not say."""
    return to_json({name: getattr(notice, name) for name in _REST}).decode()


_REST = [name for name in Notice.__dataclass_fields__ if name not in _COLUMNS]
