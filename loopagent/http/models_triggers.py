"""Triggers as they go over the wire."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue

from loopagent.http.body import Body, View
from loopagent.trigger_port import DeliveryStatus


class TriggerSummary(View):
    """A trigger and how it stands. Times are in seconds since the epoch."""

    name: str
    kind: Literal["schedule", "webhook"]
    description: str
    enabled: bool
    agent: str
    next_at: float | None = None
    """When its schedule is due next."""
    fired_at: float | None = None
    """When it last fired."""
    held: int
    """Events that wait for quiet."""
    waiting: int
    """Events that wait for a run to end."""
    running: int
    """Runs that are known to go on; only counted where their number is limited."""


class TriggerList(View):
    """All triggers."""

    triggers: list[TriggerSummary]


class DeliveryView(View):
    """An event that reached a trigger, and what became of it. Times are in seconds since the epoch."""

    id: str
    trigger: str
    event_id: str
    """The same one never starts two runs."""
    source: Literal["schedule", "webhook", "manual"]
    at: float
    updated_at: float
    status: DeliveryStatus
    reason: str
    """Why it did not fire, or not yet."""
    run_id: str | None = None
    """The run that it started; of a duplicate, the one that the first of its kind started."""
    bytes: int


class DeliveryPage(View):
    """A page of deliveries."""

    deliveries: list[DeliveryView]
    next_cursor: str | None = None


class FireTrigger(Body):
    """What a trigger is to be fired with."""

    body: JsonValue = None
    """What a webhook would have been sent."""
    event_id: str | None = Field(default=None, min_length=1, max_length=200)
    """Id of the event; without, a new one."""
