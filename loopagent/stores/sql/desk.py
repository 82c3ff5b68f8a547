"""What people have on their desks, in a database."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loopagent.desk_port import DeskRow
from loopagent.stores.sql.tables import Script, Tables


if TYPE_CHECKING:
    from loopagent.desk_port import DeskKind

_PUT: Final = """
INSERT INTO desk (owner, kind, name, until, body) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (owner, kind, name) DO UPDATE SET until = excluded.until, body = excluded.body
"""
_FORGET: Final = "DELETE FROM desk WHERE owner = $1 AND until <= $2"
_LIST: Final = "SELECT owner, kind, name, until, body FROM desk WHERE owner = $1 AND kind = $2"
_DELETE: Final = "DELETE FROM desk WHERE owner = $1 AND kind = $2 AND name = $3 RETURNING name"


class DeskTables(Tables):
    """Keeps desks in the database of a store; see `DeskStore`."""

    async def put_desk(self, row: DeskRow, *, at: float) -> None:
        """Keep a thing; see `DeskStore.put_desk`."""

        def script(_: bool) -> Script[None]:
            yield (_FORGET, (row.owner, at))
            yield (_PUT, (row.owner, row.kind, row.name, row.until, row.body))

        await self._transact(script)

    async def desk(self, owner: str, kind: DeskKind) -> list[DeskRow]:
        """What somebody has; see `DeskStore.desk`."""
        found = [DeskRow(*one) for one in await self._fetched(_LIST, owner, kind)]
        return sorted(found, key=lambda one: one.name)

    async def delete_desk(self, owner: str, kind: DeskKind, name: str) -> bool:
        """Take a thing away; see `DeskStore.delete_desk`."""
        done = await self._change((_DELETE, (owner, kind, name)))
        return bool(done.rows) or done.again
