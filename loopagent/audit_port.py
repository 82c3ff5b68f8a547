"""Looking back at who decided what; a part of `ports.Store`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol


if TYPE_CHECKING:
    from loopagent.ports import RequestRow


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which decisions are looked for; None for all."""

    by: str | None = None
    """A part of who decided, as the log names it."""
    kind: str | None = None
    """Kind of the request: `approval`, `plan`, `question` …"""
    decision: str | None = None
    agent: str | None = None
    run_id: str | None = None
    tenant: str | None = None


class AuditStore(Protocol):
    """Finds requests by what became of them."""

    async def decided(
        self, wanted: Wanted, *, cursor: str | None = None, limit: int = 50
    ) -> tuple[list[RequestRow], str | None]:
        """A page of requests that were decided or answered, the latest decision first, and the next page's cursor."""
        ...
