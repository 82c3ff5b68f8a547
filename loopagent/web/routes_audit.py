"""Who decided what, the latest decision first."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from loopagent.audit_port import Wanted
from loopagent.web.cards import KINDS
from loopagent.web.shared import app_of, caller_of, pages_of


PAGE_ROWS = 100
MAX_CHARS = 200
DECISIONS = {
    "approve": "approved",
    "reject": "sent back",
    "answer": "answered",
    "terminate": "run stopped",
}
router = APIRouter(include_in_schema=False)


@router.get("/audit")
async def list_decisions(request: Request) -> Response:
    """Decisions; filters are in the address."""
    asked = request.query_params

    def word(name: str) -> str | None:
        return asked.get(name, "").strip()[:MAX_CHARS] or None

    tenant = caller_of(request).tenant
    wanted = Wanted(word("by"), word("kind"), word("decision"), word("agent"), word("run"), tenant)
    rows, following = await app_of(request).store.decided(
        wanted, cursor=asked.get("cursor"), limit=PAGE_ROWS
    )
    context = {
        "rows": rows,
        "following": following,
        "asked": dict(asked),
        "kinds": KINDS,
        "decisions": DECISIONS,
        "agents": sorted(app_of(request).agents),
    }
    return pages_of(request).page(request, "audit.html", context)
