"""Who decided what, in the database."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loopagent.stores import records
from loopagent.stores.audit import page_of, place_of
from loopagent.stores.sqlite.conditions import where
from loopagent.stores.sqlite.reads import REQUEST, request_row


if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from loopagent.audit_port import Wanted
    from loopagent.ports import RequestRow
    from loopagent.stores.sqlite.readers import Readers


class SqliteAudit:
    """Finds decisions in the database of a store; see `Store.decided`."""

    _readers: Readers

    async def decided(
        self, wanted: Wanted, *, cursor: str | None = None, limit: int = 50
    ) -> tuple[list[RequestRow], str | None]:
        """A page of decisions; see `Store.decided`."""
        before, size = place_of(cursor), records.page_size(limit)
        conditions = {
            "json_extract(request.body, '$.kind') = ?": wanted.kind,
            "json_extract(request.resolution, '$.decision') = ?": wanted.decision,
            "run.agent = ?": wanted.agent,
            "run.id = ?": wanted.run_id,
            "run.tenant = ?": wanted.tenant,
            "instr(json_extract(request.resolution, '$.by'), ?) > 0": wanted.by,
        }
        text, values = where(conditions, "request.status = 'resolved'")
        if before is not None:
            text, values = (
                f"{text} AND (request.resolved_at, request.key) < (?, ?)",
                [*values, *before],
            )
        query = f"{REQUEST} {text} ORDER BY request.resolved_at DESC, request.key DESC LIMIT ?"
        found = await self._readers.run(lambda db: _rows(db, query, (*values, size + 1)))
        return page_of(found, size)


def _rows(
    db: sqlite3.Connection, query: str, values: Sequence[Any]
) -> list[tuple[int, RequestRow]]:
    return [(one[0], request_row(one)) for one in db.execute(query, values).fetchall()]
