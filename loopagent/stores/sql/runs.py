"""Lists of runs, in a database."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from loopagent.ports import RunRow
from loopagent.stores.sql.tables import Listing, Tables


if TYPE_CHECKING:
    from collections.abc import Sequence

_RUN: Final = """
SELECT run.key, run.id, run.agent, run.status, run.shown, run.turn, run.title, run.created_at,
       run.updated_at, run.metadata, parent.id, run.tenant
FROM run LEFT JOIN run AS parent ON parent.key = run.parent
"""
_OF_TREE: Final = """
WHERE run.id = $1 OR run.root = (SELECT key FROM run WHERE id = $1) ORDER BY run.key
"""


class RunTables(Tables):
    """Lists runs in the database of a store; see `Store`."""

    async def runs(
        self,
        *,
        agent: str | None = None,
        status: str | None = None,
        roots: bool = False,
        tenant: str | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> tuple[list[RunRow], str | None]:
        """A page of runs, newest first; see `Store.runs`."""
        wanted = {"run.agent = @": agent, "run.status = @": status, "run.tenant = @": tenant}
        fixed = ("run.root IS NULL",) if roots else ()
        return await self._page(_LISTED, wanted, *fixed, cursor=cursor, limit=limit)

    async def tree(self, run_id: str) -> list[RunRow]:
        """A root run and every run below it; see `Store.tree`."""
        return [_run(one) for one in await self._fetched(f"{_RUN} {_OF_TREE}", run_id)]

    async def tenant_of(self, run_id: str) -> str | None:
        """Whose a run is; see `Store.tenant_of`."""
        found = await self._fetched("SELECT tenant FROM run WHERE id = $1", run_id)
        return found[0][0] if found else None


def _run(row: Sequence[Any]) -> RunRow:
    _, run_id, agent, status, shown, turn, title, created_at, *rest = row
    updated_at, metadata, parent_id, tenant = rest
    return RunRow(
        id=run_id,
        agent=agent,
        status=status,
        state=shown,
        turn=turn,
        title=title,
        created_at=created_at,
        updated_at=updated_at,
        metadata=json.loads(metadata) if metadata else {},
        parent_id=parent_id,
        tenant=tenant,
    )


_LISTED: Final = Listing("runs", _RUN, "run.key", _run)
