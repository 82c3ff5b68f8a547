"""Triggers and what was delivered to them, in the database."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from loopagent.core.json_values import compact_json
from loopagent.stores import records
from loopagent.stores.postgres.more_methods import Finding
from loopagent.stores.postgres.statements import where
from loopagent.trigger_port import ACCEPTED, OPEN, Delivery, TriggerRow


if TYPE_CHECKING:
    from collections.abc import Sequence

    from loopagent.stores.postgres.connections import Db

_DELIVERY: TypeAdapter[Delivery] = TypeAdapter(Delivery)
_COLUMNS = ("id", "trigger", "event_id", "status", "at", "dedupe")
_REST = [name for name in Delivery.__dataclass_fields__ if name not in _COLUMNS]
_PUT = """
INSERT INTO delivery (id, trigger, event_id, status, at, dedupe, body) VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (id) DO UPDATE SET status = excluded.status, body = excluded.body
"""
_READ = "SELECT key, id, trigger, event_id, status, at, dedupe, body FROM delivery"
_FIRST = """
INSERT INTO trigger_state (name, version, due, body) VALUES ($1, $2::integer + 1, $3, $4)
ON CONFLICT (name) DO NOTHING RETURNING version
"""
_NEXT = """
UPDATE trigger_state SET version = version + 1, due = $3, body = $4
WHERE name = $1 AND version = $2 RETURNING version
"""


class PostgresTriggers(Finding):
    """Keeps triggers in the database of a store; see `TriggerStore`."""

    async def trigger(self, name: str) -> TriggerRow | None:
        """The state of a trigger; see `TriggerStore.trigger`."""
        return await self._find(None, lambda db, _: _trigger(db, name))

    async def due_triggers(self) -> list[tuple[str, float]]:
        """Triggers that are to be looked at; see `TriggerStore.due_triggers`."""
        query = "SELECT name, due FROM trigger_state WHERE due IS NOT NULL ORDER BY due, name"

        async def read(db: Db, _: bool) -> list[tuple[str, float]]:
            return [(one["name"], one["due"]) for one in await db.fetch(query)]

        return await self._connections.run(read)

    async def save_trigger(self, row: TriggerRow, deliveries: Sequence[Delivery] = ()) -> None:
        """Keep a trigger's new state; see `TriggerStore.save_trigger`."""
        body = _json(row.body)
        made = [(*(getattr(one, name) for name in _COLUMNS), _rest(one)) for one in deliveries]

        async def write(db: Db, _: bool) -> None:
            async with db.transaction():
                query = _NEXT if row.version else _FIRST
                if not await db.fetchval(query, row.name, row.version, row.due, body):
                    raise records.trigger_moved_on(row.name)
                await db.executemany(_PUT, made)

        await self._connections.run(write)

    async def delivery(self, delivery_id: str) -> Delivery | None:
        """One delivery; see `TriggerStore.delivery`."""
        found = await self._deliveries("WHERE id = $1", [delivery_id])
        return found[0][1] if found else None

    async def delivered(
        self, trigger: str, *, event_id: str = "", dedupe: str = "", since: float = 0.0
    ) -> Delivery | None:
        """The latest that is the same; see `TriggerStore.delivered`."""
        text, values = where(
            {
                "event_id = @": event_id or None,
                "dedupe = @": dedupe or None,
                "at >= @": since,
                "trigger = @": trigger,
                "status = ANY (@)": sorted(ACCEPTED),
            }
        )
        found = await self._deliveries(f"{text} ORDER BY key DESC LIMIT 1", values)
        return found[0][1] if found else None

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
        text, values = where({"trigger = @": trigger, "status = @": status, "key < @": before})
        found = await self._deliveries(f"{text} ORDER BY key DESC LIMIT {size + 1}", values)
        return [one for _, one in found[:size]], records.next_cursor("deliveries", found, size)

    async def forget_deliveries(self, trigger: str, before: float) -> int:
        """Remove old deliveries; see `TriggerStore.forget_deliveries`."""
        query = "DELETE FROM delivery WHERE trigger = $1 AND at < $2 AND status <> ALL ($3) RETURNING key"

        async def forget(db: Db, _: bool) -> int:
            return len(await db.fetch(query, trigger, before, sorted(OPEN)))

        return await self._find(0, forget)

    async def _deliveries(self, rest: str, values: Sequence[Any]) -> list[tuple[int, Delivery]]:
        async def read(db: Db, _: bool) -> list[tuple[int, Delivery]]:
            return [_delivery(one) for one in await db.fetch(f"{_READ} {rest}", *values)]

        return await self._find([], read)


async def _trigger(db: Db, name: str) -> TriggerRow | None:
    found = await db.fetchrow("SELECT version, due, body FROM trigger_state WHERE name = $1", name)
    if found is None:
        return None
    return TriggerRow(name, found["version"], found["due"], json.loads(found["body"]))


def _delivery(found: Any) -> tuple[int, Delivery]:
    columns = {name: found[name] for name in _COLUMNS}
    return found["key"], _DELIVERY.validate_python({**columns, **json.loads(found["body"])})


def _rest(delivery: Delivery) -> str:
    """What the columns do not say."""
    return _json({name: getattr(delivery, name) for name in _REST})


def _json(value: Any) -> str:
    try:
        return compact_json(value)
    except (ValueError, TypeError) as error:
        raise records.not_json("the state of a trigger", ValueError(str(error))) from error
