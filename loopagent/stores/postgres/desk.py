"""What people have on their desks, in the database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopagent.desk_port import DeskRow
from loopagent.stores import desk_sql
from loopagent.stores.postgres.more_methods import Finding


if TYPE_CHECKING:
    from loopagent.desk_port import DeskKind
    from loopagent.stores.postgres.connections import Db


class PostgresDesk(Finding):
    """Keeps desks in the database of a store; see `DeskStore`."""

    async def put_desk(self, row: DeskRow, *, at: float) -> None:
        """Keep a thing; see `DeskStore.put_desk`."""
        values = (row.owner, row.kind, row.name, row.until, row.body)

        async def write(db: Db, _: bool) -> None:
            async with db.transaction():
                await db.execute(desk_sql.FORGET, row.owner, at)
                await db.execute(desk_sql.PUT, *values)

        await self._connections.run(write)

    async def desk(self, owner: str, kind: DeskKind) -> list[DeskRow]:
        """What somebody has; see `DeskStore.desk`."""

        async def read(db: Db, _: bool) -> list[DeskRow]:
            return [DeskRow(*one) for one in await db.fetch(desk_sql.LIST, owner, kind)]

        nothing: list[DeskRow] = []
        found = await self._find(nothing, read)
        return sorted(found, key=lambda one: one.name)

    async def delete_desk(self, owner: str, kind: DeskKind, name: str) -> bool:
        """Take a thing away; see `DeskStore.delete_desk`."""

        async def write(db: Db, again: bool) -> bool:
            return bool(await db.fetch(desk_sql.DELETE, owner, kind, name)) or again

        return await self._find(False, write)
