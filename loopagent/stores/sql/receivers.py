"""Receivers of notifications that fail, in a database."""

from __future__ import annotations

from typing import Final

from loopagent.notification_port import FailingReceiver
from loopagent.stores.sql.tables import Tables


_COLUMNS: Final = "target, failures, at, error, disabled_at"
_READ: Final = f"SELECT {_COLUMNS} FROM receiver"
_FAILED: Final = f"""
INSERT INTO receiver AS known ({_COLUMNS})
VALUES (
  $1, 1, CAST($2 AS double precision), $3,
  CASE WHEN CAST($4 AS integer) = 1 THEN CAST($2 AS double precision) END
)
ON CONFLICT (target) DO UPDATE SET
  failures = known.failures + 1, at = excluded.at, error = excluded.error,
  disabled_at = coalesce(
    known.disabled_at, CASE WHEN $4 > 0 AND known.failures + 1 >= $4 THEN excluded.at END
  )
RETURNING {_COLUMNS}
"""
_FORGET: Final = """
DELETE FROM receiver WHERE target = $1 AND (disabled_at IS NOT NULL) = $2 RETURNING target
"""
_FORGET_ADDRESSES: Final = "DELETE FROM receiver WHERE at < $1 AND target LIKE '%://%'"


class ReceiverTables(Tables):
    """Keeps which receivers fail; see `NotificationStore`."""

    async def receiver(self, target: str) -> FailingReceiver | None:
        """One that fails; see `NotificationStore.receiver`."""
        found = await self._fetched(f"{_READ} WHERE target = $1", target)
        return FailingReceiver(*found[0]) if found else None

    async def receivers(self) -> list[FailingReceiver]:
        """All that fail; see `NotificationStore.receivers`."""
        found = [FailingReceiver(*one) for one in await self._fetched(_READ)]
        return sorted(found, key=lambda one: one.target)

    async def receiver_failed(
        self, target: str, *, at: float, error: str, disable_after: int
    ) -> FailingReceiver:
        """Count a failure; see `NotificationStore.receiver_failed`."""
        done = await self._put((_FAILED, (target, at, error, disable_after)))
        return FailingReceiver(*done.rows[0])

    async def forget_receiver(self, target: str, *, disabled: bool) -> bool:
        """Begin anew; see `NotificationStore.forget_receiver`."""
        return bool((await self._change((_FORGET, (target, disabled)))).rows)

    async def _forget_addresses(self, before: float) -> None:
        """Remove what is known of addresses that runs named, when it is old."""
        await self._change((_FORGET_ADDRESSES, (before,)))
