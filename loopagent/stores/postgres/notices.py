"""Notifications, in the database."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter
from pydantic_core import to_json

from loopagent.notification_port import OPEN, Notice
from loopagent.stores import records
from loopagent.stores.postgres.receivers import PostgresReceivers
from loopagent.stores.postgres.statements import where


if TYPE_CHECKING:
    from collections.abc import Sequence

    from loopagent.stores.postgres.connections import Db
    from loopagent.stores.postgres.statements import Statement

_NOTICE: TypeAdapter[Notice] = TypeAdapter(Notice)
_COLUMNS = {
    "id": "text[]",
    "run_id": "text[]",
    "status": "text[]",
    "version": "integer[]",
    "at": "double precision[]",
    "due": "double precision[]",
    "tenant": "text[]",
}
_REST = [name for name in Notice.__dataclass_fields__ if name not in _COLUMNS]
_FIELDS = "key, id, run, status, version, at, due, tenant, body"
_READ = f"SELECT {_FIELDS} FROM notice"
_CHANGE = """
UPDATE notice SET status = $1, version = version + 1, due = $2, body = $3
WHERE id = $4 AND version = $5 RETURNING key
"""
_FORGET_ADDRESSES = "DELETE FROM receiver WHERE at < $1 AND target LIKE '%://%'"
_CLAIM = f"""
WITH taken AS (
  UPDATE notice SET status = 'sending', version = version + 1, due = $1
  WHERE key IN (
    SELECT key FROM notice WHERE due <= $2 ORDER BY due, key LIMIT $3 FOR UPDATE SKIP LOCKED
  )
  RETURNING {_FIELDS}
)
SELECT * FROM taken ORDER BY key
"""


class PostgresNotices(PostgresReceivers):
    """Keeps notifications in the database of a store; see `NotificationStore`."""

    async def notice(self, notice_id: str) -> Notice | None:
        """One notification; see `NotificationStore.notice`."""
        found = await self._notices("WHERE id = $1", [notice_id])
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
        wanted = {"run = @": run_id, "status = @": status, "tenant = @": tenant}
        text, values = where({**wanted, "key < @": before})
        found = await self._notices(f"{text} ORDER BY key DESC LIMIT {size + 1}", values)
        return [one for _, one in found[:size]], records.next_cursor("notices", found, size)

    async def notice_due(self) -> float | None:
        """When the next one is looked at; see `NotificationStore.notice_due`."""
        query = "SELECT min(due) FROM notice WHERE due IS NOT NULL"

        async def read(db: Db, _: bool) -> float | None:
            found: float | None = await db.fetchval(query)
            return found

        return await self._connections.run(read)

    async def claim_notices(self, *, now: float, lease_seconds: float, limit: int) -> list[Notice]:
        """Take some; see `NotificationStore.claim_notices`."""

        async def write(db: Db, _: bool) -> list[Notice]:
            found = await db.fetch(_CLAIM, now + lease_seconds, now, limit)
            return [_notice(one)[1] for one in found]

        return await self._connections.run(write)

    async def save_notice(self, notice: Notice) -> bool:
        """Keep a newer state; see `NotificationStore.save_notice`."""
        values = (notice.status, notice.due, _rest(notice), notice.id, notice.version)

        async def write(db: Db, _: bool) -> bool:
            return await db.fetchval(_CHANGE, *values) is not None

        return await self._connections.run(write)

    async def forget_notices(self, before: float) -> int:
        """Remove old ones; see `NotificationStore.forget_notices`."""
        query = "DELETE FROM notice WHERE at < $1 AND status <> ALL ($2) RETURNING key"

        async def forget(db: Db, _: bool) -> int:
            await db.execute(_FORGET_ADDRESSES, before)
            return len(await db.fetch(query, before, sorted(OPEN)))

        return await self._connections.run(forget)

    async def _notices(self, rest: str, values: Sequence[Any]) -> list[tuple[int, Notice]]:
        async def read(db: Db, _: bool) -> list[tuple[int, Notice]]:
            return [_notice(one) for one in await db.fetch(f"{_READ} {rest}", *values)]

        return await self._connections.run(read)


def add(made: Statement, notices: Sequence[Notice]) -> None:
    """Keep new notifications, as a part of the commit that they come from."""
    columns = [
        made.value([getattr(one, name) for one in notices], kind) for name, kind in _COLUMNS.items()
    ]
    bodies = made.value([_rest(one) for one in notices], "text[]")
    made.add(
        "announced",
        f"""
        INSERT INTO notice (id, run, status, version, at, due, tenant, body)
        SELECT new.id, new.run, new.status, new.version, new.at, new.due, new.tenant, new.body
        FROM place, unnest({", ".join(columns)}, {bodies}) WITH ORDINALITY
          AS new (id, run, status, version, at, due, tenant, body, number)
        ORDER BY new.number
        ON CONFLICT (id) DO NOTHING
        """,
    )


def _notice(found: Any) -> tuple[int, Notice]:
    columns = {name: found["run" if name == "run_id" else name] for name in _COLUMNS}
    return found["key"], _NOTICE.validate_python({**columns, **json.loads(found["body"])})


def _rest(notice: Notice) -> str:
    """What the columns do not say."""
    return to_json({name: getattr(notice, name) for name in _REST}).decode()
