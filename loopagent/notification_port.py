"""What a store keeps of notifications; a part of `ports.Store`.

A run carries the names of those that are told of it. The commit that opens a request, or that ends the run, writes a
row for each of them in the same transaction, so that no kill can lose one. Senders of any number of processes claim
rows whose time has come: a claim is an attempt with a time limit, after which the row is anybody's again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol


NoticeStatus = Literal["waiting", "sending", "sent", "failed"]
"""Where a notification stands. `waiting`: for its time. `sending`: somebody tries. `failed`: nobody tries any more."""
OPEN: Final = frozenset({"waiting", "sending"})
"""Notifications of these still have something before them, and are never forgotten."""
MAX_ATTEMPTS_KEPT: Final = 20
"""Attempts that the delivery log of one notification keeps, the latest ones."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt to deliver. `at` is in seconds since the epoch; `status` is what the other side answered."""

    at: float
    seconds: float
    status: int | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that one receiver is told of once. Times are in seconds since the epoch."""

    id: str
    """Follows from the commit; the same at every attempt, so that a receiver can tell a repetition."""
    kind: str
    """Name of the event: `request.created`, `run.completed`, `run.failed` or `run.cancelled`."""
    run_id: str
    agent: str
    target: str
    """Who is told: the name of a receiver in the settings, or the address that the run was started with."""
    at: float
    """When it happened."""
    since: float
    """When the attempts began."""
    due: float | None
    """When it is looked at again; of one that is being sent, when others may take it. None: never."""
    status: NoticeStatus = "waiting"
    version: int = 1
    tries: int = 0
    """Attempts since `since`."""
    attempts: tuple[Attempt, ...] = ()
    """The latest attempts, oldest first."""
    data: dict[str, Any] = field(default_factory=dict[str, Any])
    """What the receiver is told: ids and short words."""
    tenant: str = ""
    """That of its run."""


@dataclass(frozen=True, slots=True)
class FailingReceiver:
    """Somebody whose notifications were given up. Times are in seconds since the epoch."""

    target: str
    failures: int
    """How many in a row."""
    at: float
    """When the latest one was given up."""
    error: str
    """Why."""
    disabled_at: float | None = None
    """Since when nothing is sent there any more; None while it is."""


class NotificationStore(Protocol):
    """Keeps who is to be told of what, and what became of it.

    `create` and `commit` of a store keep what `loopagent.notifications.outbox.notices_of` makes of a commit, in the
    same transaction; a row that is there stays as it is.
    """

    async def notice(self, notice_id: str) -> Notice | None:
        """One notification, or None."""
        ...

    async def notices(
        self,
        *,
        run_id: str | None = None,
        status: str | None = None,
        tenant: str | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> tuple[list[Notice], str | None]:
        """A page of notifications, newest first, and the cursor of the next page; with `tenant` those of its runs."""
        ...

    async def notice_due(self) -> float | None:
        """When the next notification is to be looked at, or None."""
        ...

    async def claim_notices(self, *, now: float, lease_seconds: float, limit: int) -> list[Notice]:
        """Take notifications whose time has come, those first that wait longest; nobody else gets them meanwhile.

        They become `sending`, due when the lease ends, and one version newer.
        """
        ...

    async def save_notice(self, notice: Notice) -> bool:
        """Keep a newer state of a notification; the version becomes one more.

        Returns:
            False if it is gone, or not at the version that the new state was made from; nothing is written then.
        """
        ...

    async def forget_notices(self, before: float) -> int:
        """Remove notifications of before a time, those that are open excepted; returns how many.

        What is known of failing addresses that runs named goes with them.
        """
        ...

    async def receiver(self, target: str) -> FailingReceiver | None:
        """A receiver whose latest notification was given up, or None."""
        ...

    async def receivers(self) -> list[FailingReceiver]:
        """All of them, by target."""
        ...

    async def receiver_failed(
        self, target: str, *, at: float, error: str, disable_after: int
    ) -> FailingReceiver:
        """Count a notification that was given up; so many in a row disable the receiver, 0: none do."""
        ...

    async def forget_receiver(self, target: str, *, disabled: bool) -> bool:
        """Forget that a receiver failed, if it is disabled, or if it is not; False when there is no such one."""
        ...
