"""Requests to people, and who decided what, in memory."""

from __future__ import annotations

from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Protocol

from loopagent.stores import records
from loopagent.stores.audit import page_of, place_of


if TYPE_CHECKING:
    from loopagent.audit_port import Wanted
    from loopagent.ports import RequestRow


class _Kept(Protocol):
    key: int
    row: RequestRow


class MemoryRequests:
    """The part of a store in memory that lists requests; see `Store`."""

    _requests: dict[str, Any]

    async def requests(
        self,
        *,
        status: str | None = "open",
        run_id: str | None = None,
        tenant: str | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> tuple[list[RequestRow], str | None]:
        """A page of requests to people, oldest first; see `Store.requests`."""
        behind = records.decode_cursor("requests", cursor) or 0
        fitting = (
            one
            for one in self._requests.values()
            if one.key > behind
            and status in (None, one.row.status)
            and run_id in (None, one.row.run_id)
            and tenant in (None, one.row.tenant)
        )
        size = records.page_size(limit)
        found = list(islice(fitting, size + 1))
        rows = [one.row for one in found[:size]]
        return rows, records.next_cursor("requests", found, size, attrgetter("key"))

    async def decided(
        self, wanted: Wanted, *, cursor: str | None = None, limit: int = 50
    ) -> tuple[list[RequestRow], str | None]:
        """A page of decisions; see `Store.decided`."""
        before, size = place_of(cursor), records.page_size(limit)
        kept: list[_Kept] = [one for one in self._requests.values() if _fits(one.row, wanted)]
        found = sorted(
            ((one.row.resolved_at or 0.0, one.key, one.row) for one in kept), reverse=True
        )
        behind = [(key, row) for at, key, row in found if before is None or (at, key) < before]
        return page_of(behind[: size + 1], size)


def _fits(row: RequestRow, wanted: Wanted) -> bool:
    done = row.resolution or {}
    return (
        row.status == "resolved"
        and wanted.kind in (None, row.body.get("kind"))
        and wanted.decision in (None, done.get("decision"))
        and wanted.agent in (None, row.agent)
        and wanted.run_id in (None, row.run_id)
        and wanted.tenant in (None, row.tenant)
        and (wanted.by or "") in done.get("by", "")
    )
