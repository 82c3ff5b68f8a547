"""What a store keeps of triggers; a part of `ports.Store`.

A trigger has one small row: its state as JSON, and when it is to be looked at again. What happens to a trigger
happens as one transaction on that row, together with the deliveries that it is about, and only if nobody else
changed the row meanwhile. So several processes may look after the same triggers, and one of them wins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol


DeliveryStatus = Literal[
    "held",
    "waiting",
    "starting",
    "fired",
    "superseded",
    "filtered",
    "duplicate",
    "cooldown",
    "busy",
    "missed",
    "failed",
]
"""Where an event stands. `held`: others may still take its place (debounce). `waiting`: for a run to end. `starting`:
its run is being made. The others are ends: `fired` has a run, the rest have none and a reason."""
ACCEPTED: Final = frozenset({"held", "waiting", "starting", "fired", "superseded"})
"""Deliveries of these make a later one with the same event id a duplicate; any other may be sent again."""
OPEN: Final = frozenset({"held", "waiting", "starting"})
"""Deliveries of these still have something before them, and are never forgotten."""


@dataclass(frozen=True, slots=True)
class TriggerRow:
    """The state of a trigger. `due` is when it is to be looked at, in seconds since the epoch; None for never."""

    name: str
    version: int
    due: float | None
    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Delivery:
    """One event that reached a trigger, and what became of it."""

    id: str
    trigger: str
    event_id: str
    source: Literal["schedule", "webhook", "manual"]
    at: float
    """When it came, in seconds since the epoch."""
    updated_at: float
    status: DeliveryStatus
    reason: str = ""
    run_id: str = ""
    bytes: int = 0
    """Size of what was sent."""
    dedupe: str = ""
    """Hash of what makes events the same within the dedupe window; empty: nothing does."""
    task: dict[str, Any] | None = field(default=None, repr=False)
    """What its run is to be started with, while it is open; nothing else of the event is kept."""


class TriggerStore(Protocol):
    """Keeps the state of triggers, and what was delivered to them."""

    async def trigger(self, name: str) -> TriggerRow | None:
        """The state of a trigger, or None before anything happened to it."""
        ...

    async def due_triggers(self) -> list[tuple[str, float]]:
        """Names of the triggers that are to be looked at some time, and when, earliest first."""
        ...

    async def save_trigger(self, row: TriggerRow, deliveries: Sequence[Delivery] = ()) -> None:
        """Keep a trigger's new state and the deliveries that changed, all or none; the version becomes one more.

        Args:
            row: The new state, with the version that it was made from; 0 for the first.
            deliveries: New ones, and newer states of known ones; known by their ids.

        Raises:
            ConflictError: The trigger is not at that version any more; nothing was written.
        """
        ...

    async def delivery(self, delivery_id: str) -> Delivery | None:
        """One delivery, or None."""
        ...

    async def delivered(
        self, trigger: str, *, event_id: str = "", dedupe: str = "", since: float = 0.0
    ) -> Delivery | None:
        """The latest accepted delivery of a trigger with this event id, or this hash, that came at `since` or later."""
        ...

    async def deliveries(
        self,
        trigger: str | None = None,
        *,
        status: str | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> tuple[list[Delivery], str | None]:
        """A page of deliveries, newest first, and the cursor of the next page."""
        ...

    async def forget_deliveries(self, trigger: str, before: float) -> int:
        """Remove a trigger's deliveries that came before a time, those that are open excepted; returns how many."""
        ...
