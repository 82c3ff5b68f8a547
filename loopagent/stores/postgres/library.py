"""The library of actions, in the database: how its statements are carried out here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loopagent.stores.library_sql import LibraryTables, Step
from loopagent.stores.postgres.more_methods import Finding


if TYPE_CHECKING:
    from collections.abc import Sequence

    from loopagent.stores.postgres.connections import Db


class PostgresLibrary(Finding, LibraryTables):
    """Keeps the library in the database of a store; see `LibraryStore`."""

    async def _fetched(self, query: str, *values: Any) -> Sequence[Any]:
        async def read(db: Db, _: bool) -> list[Sequence[Any]]:
            return [tuple(one) for one in await db.fetch(query, *values)]

        return await self._find([], read)

    async def _transact(self, first: Step, *more: Step) -> bool:
        async def write(db: Db, _: bool) -> bool:
            query, values = first
            async with db.transaction():
                if await db.fetchrow(query, *values) is None:
                    return False
                for query, values in more:
                    await db.execute(query, *values)
                return True

        return await self._connections.run(write)
