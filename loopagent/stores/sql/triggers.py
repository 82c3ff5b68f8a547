"""Triggers and what was delivered to them, in a database."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from pydantic import TypeAdapter

from loopagent.stores import records
from loopagent.stores.sql.tables import Listing, Many, Tables, among, where
from loopagent.trigger_port import ACCEPTED, OPEN, Delivery, TriggerRow


if TYPE_CHECKING:
    from collections.abc import Sequence

_DELIVERY: TypeAdapter[Delivery] = TypeAdapter(Delivery)
_FIELDS: Final = ("id", "trigger", "event_id", "status", "at", "dedupe")
_REST: Final = [name for name in Delivery.__dataclass_fields__ if name not in _FIELDS]
_COLUMNS: Final = 'id, "trigger", event_id, status, at, dedupe, body'
_READ: Final = f"SELECT key, {_COLUMNS} FROM delivery"
_PUT: Final = f"""
INSERT INTO delivery ({_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (id) DO UPDATE SET status = excluded.status, body = excluded.body
"""
_FORGET: Final = f"""
DELETE FROM delivery WHERE "trigger" = $1 AND at < $2 AND status NOT IN {among(OPEN)} RETURNING key
"""
_STATE: Final = "SELECT name, version, due, body FROM trigger_state WHERE name = $1"
_DUE: Final = "SELECT name, due FROM trigger_state WHERE due IS NOT NULL ORDER BY due, name"
_FIRST: Final = """
INSERT INTO trigger_state (name, version, due, body) VALUES ($1, $2, $3, $4)
ON CONFLICT (name) DO NOTHING RETURNING version
"""
_NEXT: Final = """
UPDATE trigger_state SET version = $2, due = $3, body = $4
WHERE name = $1 AND version = $5 RETURNING version
"""


class TriggerTables(Tables):
    """Keeps triggers in the database of a store; see `TriggerStore`."""

    async def trigger(self, name: str) -> TriggerRow | None:
        """The state of a trigger; see `TriggerStore.trigger`."""
        found = await self._fetched(_STATE, name)
        if not found:
            return None
        _, version, due, body = found[0]
        return TriggerRow(name, version, due, json.loads(body))

    async def due_triggers(self) -> list[tuple[str, float]]:
        """Triggers that are to be looked at; see `TriggerStore.due_triggers`."""
        return [(name, due) for name, due in await self._fetched(_DUE)]

    async def save_trigger(self, row: TriggerRow, deliveries: Sequence[Delivery] = ()) -> None:
        """Keep a trigger's new state; see `TriggerStore.save_trigger`."""
        values = (row.name, row.version + 1, row.due, _json(row.body))
        first = (_NEXT, (*values, row.version)) if row.version else (_FIRST, values)
        made = [(*(getattr(one, name) for name in _FIELDS), _rest(one)) for one in deliveries]
        done = await self._put(first, *([Many(_PUT, made)] if made else []))
        if not done.rows:
            raise records.trigger_moved_on(row.name)

    async def delivery(self, delivery_id: str) -> Delivery | None:
        """One delivery; see `TriggerStore.delivery`."""
        found = await self._fetched(f"{_READ} WHERE id = $1", delivery_id)
        return _delivery(found[0]) if found else None

    async def delivered(
        self, trigger: str, *, event_id: str = "", dedupe: str = "", since: float = 0.0
    ) -> Delivery | None:
        """The latest that is the same; see `TriggerStore.delivered`."""
        same = {"event_id = @": event_id or None, "dedupe = @": dedupe or None}
        wanted = {**same, "at >= @": since, '"trigger" = @': trigger}
        text, values = where(wanted, f"status IN {among(ACCEPTED)}")
        found = await self._fetched(f"{_READ} {text} ORDER BY key DESC LIMIT 1", *values)
        return _delivery(found[0]) if found else None

    async def deliveries(
        self,
        trigger: str | None = None,
        *,
        status: str | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> tuple[list[Delivery], str | None]:
        """A page of deliveries; see `TriggerStore.deliveries`."""
        wanted = {'"trigger" = @': trigger, "status = @": status}
        return await self._page(_LISTED, wanted, cursor=cursor, limit=limit)

    async def forget_deliveries(self, trigger: str, before: float) -> int:
        """Remove old deliveries; see `TriggerStore.forget_deliveries`."""
        return len((await self._change((_FORGET, (trigger, before)))).rows)


def _delivery(row: Sequence[Any]) -> Delivery:
    _, *found, body = row
    columns = dict(zip(_FIELDS, found, strict=True))
    return _DELIVERY.validate_python({**columns, **json.loads(body)})


def _rest(delivery: Delivery) -> str:
    """What the columns do not say."""
    return _json({name: getattr(delivery, name) for name in _REST})


def _json(value: Any) -> str:
    return records.json_text("the state of a trigger", value)


_LISTED: Final = Listing("deliveries", _READ, "key", _delivery)
