"""Requests to people, and who decided what, in a database."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from loopagent.ports import RequestRow
from loopagent.stores import records
from loopagent.stores.audit import page_of, place_of
from loopagent.stores.sql.tables import Listing, Tables, where


if TYPE_CHECKING:
    from collections.abc import Sequence

    from loopagent.audit_port import Wanted

_READ: Final = """
SELECT request.key, request.id, run.id, run.agent, request.status, request.created_at,
       request.body, request.resolved_at, request.resolution, run.tenant, request.holder,
       request.held_at
FROM request JOIN run ON run.key = request.run
"""
_OPEN: Final = "request.status = 'open'"
"""Named outright where it can be, because a partial index does not serve a placeholder; likewise `_RESOLVED`."""
_RESOLVED: Final = "request.status = 'resolved'"


class RequestTables(Tables):
    """Finds requests in the database of a store; see `Store`."""

    async def requests(
        self,
        *,
        status: str | None = "open",
        run_id: str | None = None,
        tenant: str | None = None,
        newest: bool = False,
        cursor: str | None = None,
        limit: int = 50,
    ) -> tuple[list[RequestRow], str | None]:
        """A page of requests to people; see `Store.requests`."""
        fixed, other = ((_OPEN,), None) if status == "open" else ((), status)
        wanted = {"request.status = @": other, "run.id = @": run_id, "run.tenant = @": tenant}
        return await self._page(_LISTED, wanted, *fixed, cursor=cursor, limit=limit, newest=newest)

    async def request(self, request_id: str) -> RequestRow | None:
        """One request; see `Store.request`."""
        found = await self._fetched(f"{_READ} WHERE request.id = $1", request_id)
        return _request(found[0]) if found else None

    async def open_requests(self, tenant: str | None = None) -> int:
        """How many requests wait; see `Store.open_requests`. Of all tenants it reads the index alone."""
        joined = "" if tenant is None else "JOIN run ON run.key = request.run"
        text, values = where({"run.tenant = @": tenant}, _OPEN)
        found = await self._fetched(f"SELECT count(*) FROM request {joined} {text}", *values)
        return found[0][0] if found else 0

    async def decided(
        self, wanted: Wanted, *, cursor: str | None = None, limit: int = 50
    ) -> tuple[list[RequestRow], str | None]:
        """A page of decisions; see `Store.decided`."""
        before, size = place_of(cursor), records.page_size(limit)
        resolution, within = "request.resolution", self._dialect.within
        conditions = {
            f"{self._member('request.body', 'kind')} = @": wanted.kind,
            f"{self._member(resolution, 'decision')} = @": wanted.decision,
            "run.agent = @": wanted.agent,
            "run.id = @": wanted.run_id,
            "run.tenant = @": wanted.tenant,
            f"{within}({self._member(resolution, 'by')}, @) > 0": wanted.by,
        }
        text, values = where(conditions, _RESOLVED)
        if before is not None:
            at, key = len(values) + 1, len(values) + 2
            place = f"CAST(${at} AS double precision), CAST(${key} AS bigint)"
            text = f"{text} AND (request.resolved_at, request.key) < ({place})"
            values = [*values, *before]
        order = f"ORDER BY request.resolved_at DESC, request.key DESC LIMIT {size + 1}"
        found = await self._fetched(f"{_READ} {text} {order}", *values)
        return page_of([(one[0], _request(one)) for one in found], size)

    def _member(self, column: str, name: str) -> str:
        return self._dialect.member.format(column=column, name=name)


def _request(row: Sequence[Any]) -> RequestRow:
    _, request_id, run_id, agent, status, created_at, *rest = row
    body, resolved_at, resolution, tenant, holder, held_at = rest
    return RequestRow(
        id=request_id,
        run_id=run_id,
        agent=agent,
        status=status,
        created_at=created_at,
        body=json.loads(body),
        resolved_at=resolved_at,
        resolution=json.loads(resolution) if resolution else None,
        tenant=tenant,
        holder=holder,
        held_at=held_at,
    )


_LISTED: Final = Listing("requests", _READ, "request.key", _request)
