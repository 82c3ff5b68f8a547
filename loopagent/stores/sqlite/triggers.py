"""Triggers and what was delivered to them, in the database."""

from __future__ import annotations

import json
import sqlite3
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from loopagent.core.json_values import compact_json
from loopagent.stores import records
from loopagent.stores.sqlite.conditions import where
from loopagent.stores.sqlite.file import statements
from loopagent.trigger_port import ACCEPTED, OPEN, Delivery, TriggerRow


if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from loopagent.stores.sqlite.readers import Readers
    from loopagent.stores.sqlite.writer import Writer

_DELIVERY: TypeAdapter[Delivery] = TypeAdapter(Delivery)
_COLUMNS = ("id", "trigger", "event_id", "status", "at", "dedupe")
_PUT = """
INSERT INTO delivery (id, "trigger", event_id, status, at, dedupe, body) VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET status = excluded.status, body = excluded.body
"""
_READ = 'SELECT key, id, "trigger", event_id, status, at, dedupe, body FROM delivery'


def _among(statuses: frozenset[str]) -> str:
    return ", ".join(f"'{one}'" for one in sorted(statuses))


class SqliteTriggers:
    """Keeps triggers in the database of a store; see `TriggerStore`."""

    _writer: Writer
    _readers: Readers

    async def trigger(self, name: str) -> TriggerRow | None:
        """The state of a trigger; see `TriggerStore.trigger`."""
        return await self._readers.run(lambda db: _trigger(db, name))

    async def due_triggers(self) -> list[tuple[str, float]]:
        """Triggers that are to be looked at; see `TriggerStore.due_triggers`."""
        query = "SELECT name, due FROM trigger_state WHERE due IS NOT NULL ORDER BY due, name"
        return await self._readers.run(lambda db: _rows(db, query))

    async def save_trigger(self, row: TriggerRow, deliveries: Sequence[Delivery] = ()) -> None:
        """Keep a trigger's new state; see `TriggerStore.save_trigger`."""

        def prepare() -> Callable[[sqlite3.Connection], None]:
            body = _json(row.body)
            made = [(*(getattr(one, name) for name in _COLUMNS), _rest(one)) for one in deliveries]
            return lambda db: _save(db, row, body, made)

        await self._writer.submit(prepare)

    async def delivery(self, delivery_id: str) -> Delivery | None:
        """One delivery; see `TriggerStore.delivery`."""
        found = await self._readers.run(lambda db: _read(db, "WHERE id = ?", (delivery_id,)))
        return found[0][1] if found else None

    async def delivered(
        self, trigger: str, *, event_id: str = "", dedupe: str = "", since: float = 0.0
    ) -> Delivery | None:
        """The latest that is the same; see `TriggerStore.delivered`."""
        same = {"event_id = ?": event_id, "dedupe = ?": dedupe}
        given = {text: value for text, value in same.items() if value}
        where = f'WHERE {" AND ".join([*given, "at >= ?"])} AND "trigger" = ? AND status IN'
        rest = f"{where} ({_among(ACCEPTED)}) ORDER BY key DESC LIMIT 1"
        values = (*given.values(), since, trigger)
        found = await self._readers.run(lambda db: _read(db, rest, values))
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
        wanted = {'"trigger" = ?': trigger, "status = ?": status, "key < ?": before}
        conditions, given = where(wanted)
        rest, values = f"{conditions} ORDER BY key DESC LIMIT ?", (*given, size + 1)
        found = await self._readers.run(lambda db: _read(db, rest, values))
        return [one for _, one in found[:size]], records.next_cursor("deliveries", found, size)

    async def forget_deliveries(self, trigger: str, before: float) -> int:
        """Remove old deliveries; see `TriggerStore.forget_deliveries`."""
        where = f'"trigger" = ? AND at < ? AND status NOT IN ({_among(OPEN)})'

        def write(db: sqlite3.Connection) -> int:
            if not _is_ready(db):
                return 0
            return db.execute(f"DELETE FROM delivery WHERE {where}", (trigger, before)).rowcount  # noqa: S608 - no text of a caller's

        return await self._writer.submit(lambda: write)


def _save(
    db: sqlite3.Connection, row: TriggerRow, body: str, deliveries: Sequence[tuple[Any, ...]]
) -> None:
    if not _is_ready(db):
        script = files("loopagent.stores.sqlite").joinpath("triggers.sql").read_text("utf-8")
        for one in statements(script):
            db.execute(one)
    found = db.execute("SELECT version FROM trigger_state WHERE name = ?", (row.name,)).fetchone()
    if (found[0] if found else 0) != row.version:
        raise records.trigger_moved_on(row.name)
    db.execute(
        "INSERT OR REPLACE INTO trigger_state (name, version, due, body) VALUES (?, ?, ?, ?)",
        (row.name, row.version + 1, row.due, body),
    )
    db.executemany(_PUT, deliveries)


def _is_ready(db: sqlite3.Connection) -> bool:
    found = db.execute("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'delivery'")
    return found.fetchone() is not None


def _rows(db: sqlite3.Connection, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    return db.execute(query, values).fetchall() if _is_ready(db) else []


def _trigger(db: sqlite3.Connection, name: str) -> TriggerRow | None:
    query = "SELECT name, version, due, body FROM trigger_state WHERE name = ?"
    found = _rows(db, query, (name,))
    if not found:
        return None
    _, version, due, body = found[0]
    return TriggerRow(name, version, due, json.loads(body))


def _read(db: sqlite3.Connection, rest: str, values: Sequence[Any]) -> list[tuple[int, Delivery]]:
    return [
        (
            key,
            _DELIVERY.validate_python(
                {**dict(zip(_COLUMNS, found, strict=True)), **json.loads(body)}
            ),
        )
        for key, *found, body in _rows(db, f"{_READ} {rest}", values)
    ]


def _rest(delivery: Delivery) -> str:
    """What the columns do not say."""
    return _json({name: getattr(delivery, name) for name in _REST})


def _json(value: Any) -> str:
    try:
        return compact_json(value)
    except (ValueError, TypeError) as error:
        raise records.not_json("the state of a trigger", ValueError(str(error))) from error


_REST = [name for name in Delivery.__dataclass_fields__ if name not in _COLUMNS]
