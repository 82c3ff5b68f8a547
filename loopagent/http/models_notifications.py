"""Notifications as they go over the wire."""

from __future__ import annotations

from typing import Literal

from pydantic import JsonValue

from loopagent.http.body import View
from loopagent.notification_port import NoticeStatus


class AttemptView(View):
    """One attempt to deliver. Times are in seconds since the epoch."""

    at: float
    seconds: float
    """How long it took."""
    status: int | None = None
    """What the other side answered."""
    error: str
    """Why it did not get through; empty when it did."""


class NotificationView(View):
    """Something that one receiver is told of once, and what became of it. Times are in seconds since the epoch."""

    id: str
    """Sent as `webhook-id`, the same at every attempt."""
    type: str
    """Name of the event."""
    run_id: str
    agent: str
    target: str
    """Who is told; of an address that a run names, the host."""
    status: NoticeStatus
    at: float
    due_at: float | None = None
    """When it is tried next, or when a claim on it ends."""
    tries: int
    """Attempts since it happened, or since it was last replayed."""
    data: dict[str, JsonValue]
    """What is told."""
    attempts: list[AttemptView]
    """The latest attempts, oldest first."""


class ReceiverDetail(View):
    """Who is told. Times are in seconds since the epoch."""

    id: str
    kind: Literal["webhook", "mail", "run"]
    """`run`: an address that a run named, which is listed while it fails."""
    target: str
    """Where it is, without what may be a secret."""
    events: list[str]
    """What it is told; empty for everything."""
    agents: list[str]
    """Of which agents; empty for all."""
    status: Literal["enabled", "failing", "disabled"]
    """`disabled`: too many failed in a row, so nothing is sent there until somebody enables it."""
    failures: int
    """Notifications in a row that were given up."""
    failed_at: float | None = None
    error: str
    """Why the latest one was given up."""
    disabled_at: float | None = None


class ReceiverList(View):
    """All receivers."""

    receivers: list[ReceiverDetail]


class NotificationPage(View):
    """A page of notifications."""

    notifications: list[NotificationView]
    next_cursor: str | None = None
