"""Notifications, in memory."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from loopagent.notification_port import OPEN, FailingReceiver
from loopagent.notifications.outbox import notices_of
from loopagent.stores import records


if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from loopagent.notification_port import Notice
    from loopagent.ports import Commit


class MemoryNotices:
    """The part of a store in memory that keeps notifications; see `NotificationStore`."""

    def __init__(self) -> None:
        super().__init__()
        self._notices: dict[str, tuple[int, Notice]] = {}
        self._last_notice = 0
        self._receivers: dict[str, FailingReceiver] = {}

    def _announce(self, commit: Commit) -> None:
        for one in notices_of(commit):
            if one.id not in self._notices:
                self._last_notice += 1
                self._notices[one.id] = (self._last_notice, one)

    def _unannounce(self, run_ids: AbstractSet[str]) -> None:
        self._notices = {
            key: pair for key, pair in self._notices.items() if pair[1].run_id not in run_ids
        }

    async def notice(self, notice_id: str) -> Notice | None:
        """One notification; see `NotificationStore.notice`."""
        found = self._notices.get(notice_id)
        return None if found is None else found[1]

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
        fitting = (
            pair
            for pair in reversed(self._notices.values())
            if (before is None or pair[0] < before)
            and run_id in (None, pair[1].run_id)
            and status in (None, pair[1].status)
            and tenant in (None, pair[1].tenant)
        )
        found = list(islice(fitting, size + 1))
        return [one for _, one in found[:size]], records.next_cursor("notices", found, size)

    async def notice_due(self) -> float | None:
        """When the next one is looked at; see `NotificationStore.notice_due`."""
        dues = (one.due for _, one in self._notices.values())
        return min((due for due in dues if due is not None), default=None)

    async def claim_notices(self, *, now: float, lease_seconds: float, limit: int) -> list[Notice]:
        """Take some; see `NotificationStore.claim_notices`."""
        due = [pair for pair in self._notices.values() if (pair[1].due or now + 1) <= now]
        due.sort(key=lambda pair: (pair[1].due, pair[0]))
        taken: list[Notice] = []
        for number, one in due[:limit]:
            new = replace(one, status="sending", due=now + lease_seconds, version=one.version + 1)
            self._notices[one.id] = (number, new)
            taken.append(new)
        return taken

    async def save_notice(self, notice: Notice) -> bool:
        """Keep a newer state; see `NotificationStore.save_notice`."""
        number, known = self._notices.get(notice.id, (0, None))
        if known is None or known.version != notice.version:
            return False
        self._notices[notice.id] = (number, replace(notice, version=notice.version + 1))
        return True

    async def forget_notices(self, before: float) -> int:
        """Remove old ones; see `NotificationStore.forget_notices`."""
        old = [
            key
            for key, (_, one) in self._notices.items()
            if one.at < before and one.status not in OPEN
        ]
        for key in old:
            del self._notices[key]
        kept = self._receivers.items()
        self._receivers = {
            key: one for key, one in kept if one.at >= before or "://" not in one.target
        }
        return len(old)

    async def receiver(self, target: str) -> FailingReceiver | None:
        """One that fails; see `NotificationStore.receiver`."""
        return self._receivers.get(target)

    async def receivers(self) -> list[FailingReceiver]:
        """All that fail; see `NotificationStore.receivers`."""
        return sorted(self._receivers.values(), key=lambda one: one.target)

    async def receiver_failed(
        self, target: str, *, at: float, error: str, disable_after: int
    ) -> FailingReceiver:
        """Count a failure; see `NotificationStore.receiver_failed`."""
        known = self._receivers.get(target) or FailingReceiver(target, 0, at, error)
        new = replace(known, failures=known.failures + 1, at=at, error=error)
        if known.disabled_at is None and 0 < disable_after <= new.failures:
            new = replace(new, disabled_at=at)
        self._receivers[target] = new
        return new

    async def forget_receiver(self, target: str, *, disabled: bool) -> bool:
        """Begin anew; see `NotificationStore.forget_receiver`."""
        known = self._receivers.get(target)
        if known is None or (known.disabled_at is not None) != disabled:
            return False
        del self._receivers[target]
        return True
