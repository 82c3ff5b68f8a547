"""Triggers and what was delivered to them, in memory."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from loopagent.stores import records
from loopagent.trigger_port import ACCEPTED, OPEN


if TYPE_CHECKING:
    from collections.abc import Sequence

    from loopagent.trigger_port import Delivery, TriggerRow


class MemoryTriggers:
    """The part of a store in memory that keeps triggers; see `TriggerStore`."""

    def __init__(self) -> None:
        super().__init__()
        self._triggers: dict[str, TriggerRow] = {}
        self._deliveries: dict[str, tuple[int, Delivery]] = {}
        self._last_delivery = 0

    async def trigger(self, name: str) -> TriggerRow | None:
        """The state of a trigger; see `TriggerStore.trigger`."""
        return self._triggers.get(name)

    async def due_triggers(self) -> list[tuple[str, float]]:
        """Triggers that are to be looked at; see `TriggerStore.due_triggers`."""
        found = [(one.name, one.due) for one in self._triggers.values() if one.due is not None]
        return sorted(found, key=lambda one: (one[1], one[0]))

    async def save_trigger(self, row: TriggerRow, deliveries: Sequence[Delivery] = ()) -> None:
        """Keep a trigger's new state; see `TriggerStore.save_trigger`."""
        known = self._triggers.get(row.name)
        if (known.version if known else 0) != row.version:
            raise records.trigger_moved_on(row.name)
        body = records.plain(row.body)
        for one in deliveries:
            number, _ = self._deliveries.get(one.id, (self._last_delivery + 1, one))
            self._last_delivery = max(self._last_delivery, number)
            self._deliveries[one.id] = (number, replace(one, task=records.plain(one.task)))
        self._triggers[row.name] = replace(row, version=row.version + 1, body=body)

    async def delivery(self, delivery_id: str) -> Delivery | None:
        """One delivery; see `TriggerStore.delivery`."""
        found = self._deliveries.get(delivery_id)
        return None if found is None else found[1]

    async def delivered(
        self, trigger: str, *, event_id: str = "", dedupe: str = "", since: float = 0.0
    ) -> Delivery | None:
        """The latest that is the same; see `TriggerStore.delivered`."""
        fitting = [
            (number, one)
            for number, one in self._deliveries.values()
            if one.trigger == trigger
            and one.status in ACCEPTED
            and one.at >= since
            and (event_id in ("", one.event_id))
            and (dedupe in ("", one.dedupe))
        ]
        return max(fitting, key=lambda one: one[0])[1] if fitting else None

    async def deliveries(
        self,
        trigger: str | None = None,
        *,
        status: str | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> tuple[list[Delivery], str | None]:
        """A page of deliveries; see `TriggerStore.deliveries`."""
        before, size = records.decode_cursor("deliveries", cursor), records.page_size(limit)
        fitting = (
            pair
            for pair in sorted(self._deliveries.values(), key=lambda pair: -pair[0])
            if (before is None or pair[0] < before)
            and trigger in (None, pair[1].trigger)
            and status in (None, pair[1].status)
        )
        found = list(islice(fitting, size + 1))
        return [one for _, one in found[:size]], records.next_cursor("deliveries", found, size)

    async def forget_deliveries(self, trigger: str, before: float) -> int:
        """Remove old deliveries; see `TriggerStore.forget_deliveries`."""
        old = [
            key
            for key, (_, one) in self._deliveries.items()
            if one.trigger == trigger and one.at < before and one.status not in OPEN
        ]
        for key in old:
            del self._deliveries[key]
        return len(old)
