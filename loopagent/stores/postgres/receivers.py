"""Receivers of notifications that fail, in the database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopagent.notification_port import FailingReceiver
from loopagent.stores.postgres.more_methods import Finding


if TYPE_CHECKING:
    from loopagent.stores.postgres.connections import Db

_COLUMNS = "target, failures, at, error, disabled_at"
_READ = f"SELECT {_COLUMNS} FROM receiver"
_FAILED = f"""
INSERT INTO receiver AS known (target, failures, at, error, disabled_at)
VALUES ($1, 1, $2::float8, $3, CASE WHEN $4::integer = 1 THEN $2::float8 END)
ON CONFLICT (target) DO UPDATE SET failures = known.failures + 1, at = $2::float8, error = $3,
  disabled_at = coalesce(
    known.disabled_at, CASE WHEN $4 > 0 AND known.failures + 1 >= $4 THEN $2::float8 END
  )
RETURNING {_COLUMNS}
"""


class PostgresReceivers(Finding):
    """Keeps which receivers fail; see `NotificationStore`."""

    async def receiver(self, target: str) -> FailingReceiver | None:
        """One that fails; see `NotificationStore.receiver`."""

        async def read(db: Db, _: bool) -> FailingReceiver | None:
            found = await db.fetchrow(f"{_READ} WHERE target = $1", target)
            return None if found is None else FailingReceiver(*found)

        return await self._find(None, read)

    async def receivers(self) -> list[FailingReceiver]:
        """All that fail; see `NotificationStore.receivers`."""

        async def read(db: Db, _: bool) -> list[FailingReceiver]:
            query = f'{_READ} ORDER BY target COLLATE "C"'
            return [FailingReceiver(*one) for one in await db.fetch(query)]

        return await self._connections.run(read)

    async def receiver_failed(
        self, target: str, *, at: float, error: str, disable_after: int
    ) -> FailingReceiver:
        """Count a failure; see `NotificationStore.receiver_failed`."""

        async def write(db: Db, _: bool) -> FailingReceiver:
            return FailingReceiver(*await db.fetchrow(_FAILED, target, at, error, disable_after))

        return await self._connections.run(write)

    async def forget_receiver(self, target: str, *, disabled: bool) -> bool:
        """Begin anew; see `NotificationStore.forget_receiver`."""
        query = """
        DELETE FROM receiver WHERE target = $1 AND (disabled_at IS NOT NULL) = $2 RETURNING target
        """

        async def write(db: Db, _: bool) -> bool:
            return await db.fetchval(query, target, disabled) is not None

        return await self._find(False, write)
