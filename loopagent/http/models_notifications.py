"""Notifications as they go over the wire."""

from __future__ import annotations

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


class NotificationPage(View):
    """A page of notifications."""

    notifications: list[NotificationView]
    next_cursor: str | None = None
