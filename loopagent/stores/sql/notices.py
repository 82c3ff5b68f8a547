"""Notifications, in a database."""

from __future__ import annotations

import json
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from pydantic import TypeAdapter
from pydantic_core import to_json

from loopagent.notification_port import OPEN, Notice
from loopagent.stores.sql.receivers import ReceiverTables
from loopagent.stores.sql.tables import Listing, among


if TYPE_CHECKING:
    from collections.abc import Sequence

_NOTICE: TypeAdapter[Notice] = TypeAdapter(Notice)
_FIELDS: Final = ("id", "run_id", "status", "version", "at", "due", "tenant")
_REST: Final = [name for name in Notice.__dataclass_fields__ if name not in _FIELDS]
COLUMNS: Final = ("id", "run", "status", "version", "at", "due", "tenant", "body")
"""The columns of a notification, in the order of `notice_values`; `body` is what the others do not say."""
_ALL: Final = f"key, {', '.join(COLUMNS)}"
_READ: Final = f"SELECT {_ALL} FROM notice"
_DUE: Final = "SELECT min(due) FROM notice WHERE due IS NOT NULL"
_CHANGE: Final = """
UPDATE notice SET status = $1, version = version + 1, due = $2, body = $3
WHERE id = $4 AND version = $5 RETURNING key
"""
_CLAIM: Final = f"""
UPDATE notice SET status = 'sending', version = version + 1, due = $1
WHERE key IN (SELECT key FROM notice WHERE due <= $2 ORDER BY due, key LIMIT $3 {{passing}})
RETURNING {_ALL}
"""
_FORGET: Final = f"DELETE FROM notice WHERE at < $1 AND status NOT IN {among(OPEN)} RETURNING key"


class NoticeTables(ReceiverTables):
    """Keeps notifications in the database of a store; see `NotificationStore`."""

    async def notice(self, notice_id: str) -> Notice | None:
        """One notification; see `NotificationStore.notice`."""
        found = await self._fetched(f"{_READ} WHERE id = $1", notice_id)
        return _notice(found[0]) if found else None

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
        wanted = {"run = @": run_id, "status = @": status, "tenant = @": tenant}
        return await self._page(_LISTED, wanted, cursor=cursor, limit=limit)

    async def notice_due(self) -> float | None:
        """When the next one is looked at; see `NotificationStore.notice_due`."""
        found = await self._fetched(_DUE)
        return found[0][0] if found else None

    async def claim_notices(self, *, now: float, lease_seconds: float, limit: int) -> list[Notice]:
        """Take some; see `NotificationStore.claim_notices`."""
        query = _CLAIM.format(passing=self._dialect.passing)
        done = await self._change((query, (now + lease_seconds, now, limit)))
        return [_notice(one) for one in sorted(done.rows, key=itemgetter(0))]

    async def save_notice(self, notice: Notice) -> bool:
        """Keep a newer state; see `NotificationStore.save_notice`."""
        values = (notice.status, notice.due, _rest(notice), notice.id, notice.version)
        return bool((await self._change((_CHANGE, values))).rows)

    async def forget_notices(self, before: float) -> int:
        """Remove old ones; see `NotificationStore.forget_notices`."""
        await self._forget_addresses(before)
        return len((await self._change((_FORGET, (before,)))).rows)


def notice_values(notice: Notice) -> tuple[Any, ...]:
    """The values of `COLUMNS`."""
    return (*(getattr(notice, name) for name in _FIELDS), _rest(notice))


def _notice(row: Sequence[Any]) -> Notice:
    _, *found, body = row
    columns = dict(zip(_FIELDS, found, strict=True))
    return _NOTICE.validate_python({**columns, **json.loads(body)})


def _rest(notice: Notice) -> str:
    """What the columns do not say."""
    return to_json({name: getattr(notice, name) for name in _REST}).decode()


_LISTED: Final = Listing("notices", _READ, "key", _notice)
