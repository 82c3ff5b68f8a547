"""How statements that all databases share are carried out here."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, TypeVar

from loopagent.stores.sql import SharedTables
from loopagent.stores.sql.tables import Dialect, Many, Rows, Script, Step


if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from loopagent.stores.postgres.connections import Connections, Db

T = TypeVar("T")


class PostgresTables(SharedTables):
    """The part of the PostgreSQL store whose statements are those of all databases."""

    _dialect = Dialect(
        within="strpos",
        member="{column}::json ->> '{name}'",
        person="person",
        passing="FOR UPDATE SKIP LOCKED",
    )
    _connections: Connections

    async def _read(self, query: str, values: Sequence[Any]) -> Rows:
        async def read(db: Db, _: bool) -> Rows:
            rows: Rows = await db.fetch(query, *values)
            return rows

        return await self._connections.run(read)

    async def _transact(self, script: Callable[[bool], Script[T]], *, alone: bool = False) -> T:
        async def write(db: Db, again: bool) -> T:
            async with nullcontext() if alone else db.transaction():
                return await _carried_out(db, script(again))

        return await self._connections.run(write)


async def _carried_out(db: Db, script: Script[T]) -> T:
    try:
        step = next(script)
        while True:
            step = script.send(await _rows(db, step))
    except StopIteration as end:
        result: T = end.value
        return result


async def _rows(db: Db, step: Step | Many) -> Rows:
    if isinstance(step, Many):
        await db.executemany(step.query, step.values)
        return ()
    query, values = step
    rows: Rows = await db.fetch(query, *values)
    return rows
