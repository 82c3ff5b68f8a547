"""Requests to people, and who decided what, in memory."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING

from loopagent.stores import records
from loopagent.stores.audit import page_of, place_of


if TYPE_CHECKING:
    from collections.abc import Collection

    from loopagent.audit_port import Wanted
    from loopagent.core.state import RunState
    from loopagent.ports import RequestRow


@dataclass(slots=True)
class _Request:
    """A request to a person. `key` grows with time."""

    key: int
    row: RequestRow


class MemoryRequests:
    """The part of a store in memory that keeps requests."""

    def __init__(self) -> None:
        super().__init__()
        self._requests: dict[str, _Request] = {}

    @abstractmethod
    def _next_key(self) -> int: ...

    def _change_request(self, change: records.RequestChange, state: RunState, at: float) -> None:
        known = self._requests.get(change.request_id)
        if change.status == "open":
            row = records.opened(change, state, at)
            key = known.key if known else self._next_key()
            self._requests[change.request_id] = _Request(key, row)
        elif known is not None:
            known.row = records.changed(known.row, change, at)

    def _forget_requests(self, run_ids: Collection[str]) -> None:
        kept = self._requests.items()
        self._requests = {name: one for name, one in kept if one.row.run_id not in run_ids}

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
        behind, size = records.decode_cursor("requests", cursor), records.page_size(limit)
        ordered = sorted(self._requests.values(), key=attrgetter("key"), reverse=newest)
        fitting = (
            one
            for one in ordered
            if (behind is None or (one.key < behind if newest else one.key > behind))
            and status in (None, one.row.status)
            and run_id in (None, one.row.run_id)
            and tenant in (None, one.row.tenant)
        )
        found = list(islice(fitting, size + 1))
        rows = [one.row for one in found[:size]]
        return rows, records.next_cursor("requests", found, size, attrgetter("key"))

    async def request(self, request_id: str) -> RequestRow | None:
        """One request; see `Store.request`."""
        found = self._requests.get(request_id)
        return None if found is None else found.row

    async def open_requests(self, tenant: str | None = None) -> int:
        """How many requests wait; see `Store.open_requests`."""
        rows = (one.row for one in self._requests.values() if one.row.status == "open")
        return sum(tenant in (None, one.tenant) for one in rows)

    async def decided(
        self, wanted: Wanted, *, cursor: str | None = None, limit: int = 50
    ) -> tuple[list[RequestRow], str | None]:
        """A page of decisions; see `Store.decided`."""
        before, size = place_of(cursor), records.page_size(limit)
        kept = [one for one in self._requests.values() if _fits(one.row, wanted)]
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
