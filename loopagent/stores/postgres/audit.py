"""Who decided what, in the database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopagent.stores import records
from loopagent.stores.audit import page_of, place_of
from loopagent.stores.postgres.more_methods import Finding
from loopagent.stores.postgres.reads import REQUEST, request_row
from loopagent.stores.postgres.statements import where


if TYPE_CHECKING:
    from loopagent.audit_port import Wanted
    from loopagent.ports import RequestRow
    from loopagent.stores.postgres.connections import Db


class PostgresAudit(Finding):
    """Finds decisions in the database of a store; see `Store.decided`."""

    async def decided(
        self, wanted: Wanted, *, cursor: str | None = None, limit: int = 50
    ) -> tuple[list[RequestRow], str | None]:
        """A page of decisions; see `Store.decided`."""
        before, size = place_of(cursor), records.page_size(limit)
        conditions = {
            "request.body::json ->> 'kind' = @": wanted.kind,
            "request.resolution::json ->> 'decision' = @": wanted.decision,
            "run.agent = @": wanted.agent,
            "run.id = @": wanted.run_id,
            "run.tenant = @": wanted.tenant,
            "strpos(request.resolution::json ->> 'by', @) > 0": wanted.by,
        }
        text, values = where(conditions, "request.status = 'resolved'")
        if before is not None:
            place = f"${len(values) + 1}::float8, ${len(values) + 2}::bigint"
            text = f"{text} AND (request.resolved_at, request.key) < ({place})"
            values = [*values, *before]
        order = "ORDER BY request.resolved_at DESC, request.key DESC"

        async def read(db: Db, _: bool) -> list[tuple[int, RequestRow]]:
            rows = await db.fetch(f"{REQUEST} {text} {order} LIMIT {size + 1}", *values)
            return [(one["key"], request_row(one)) for one in rows]

        return page_of(await self._find([], read), size)
