"""What people have on their desks, in the database; its table is made when it is needed first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loopagent.desk_port import DeskRow
from loopagent.stores import desk_sql


if TYPE_CHECKING:
    import sqlite3

    from loopagent.desk_port import DeskKind
    from loopagent.stores.sqlite.readers import Readers
    from loopagent.stores.sqlite.writer import Writer


class SqliteDesk:
    """Keeps desks in the database of a store; see `DeskStore`."""

    _writer: Writer
    _readers: Readers

    async def put_desk(self, row: DeskRow, *, at: float) -> None:
        """Keep a thing; see `DeskStore.put_desk`."""

        def write(db: sqlite3.Connection) -> None:
            db.execute(desk_sql.TABLE)
            db.execute(desk_sql.FORGET, _places(row.owner, at))
            values = _places(row.owner, row.kind, row.name, row.until, row.body)
            db.execute(desk_sql.PUT, values)

        await self._writer.submit(lambda: write)

    async def desk(self, owner: str, kind: DeskKind) -> list[DeskRow]:
        """What somebody has; see `DeskStore.desk`."""

        def read(db: sqlite3.Connection) -> list[tuple[Any, ...]]:
            return (
                db.execute(desk_sql.LIST, _places(owner, kind)).fetchall() if _is_ready(db) else []
            )

        found = [DeskRow(*one) for one in await self._readers.run(read)]
        return sorted(found, key=lambda one: one.name)

    async def delete_desk(self, owner: str, kind: DeskKind, name: str) -> bool:
        """Take a thing away; see `DeskStore.delete_desk`."""

        def write(db: sqlite3.Connection) -> bool:
            values = _places(owner, kind, name)
            return _is_ready(db) and bool(db.execute(desk_sql.DELETE, values).fetchall())

        return await self._writer.submit(lambda: write)


def _places(*values: Any) -> dict[str, Any]:
    """Values for `$1`, `$2` and so on."""
    return {str(place): one for place, one in enumerate(values, 1)}


def _is_ready(db: sqlite3.Connection) -> bool:
    found = db.execute("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'desk'")
    return found.fetchone() is not None
