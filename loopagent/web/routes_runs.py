"""The list of runs, and one run as it goes on."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from loopagent.tree import nested
from loopagent.web.shared import app_of, pages_of


PAGE_ROWS = 50
STATUSES = ("running", "completed", "failed", "cancelled")
router = APIRouter(include_in_schema=False)


@router.get("/runs")
async def list_runs(request: Request) -> Response:
    """Runs, newest first."""
    asked = request.query_params
    rows, following = await app_of(request).runs(
        agent=asked.get("agent") or None,
        status=asked.get("status") if asked.get("status") in STATUSES else None,
        cursor=asked.get("cursor"),
        limit=PAGE_ROWS,
    )
    context = {
        "rows": rows,
        "following": following,
        "asked": dict(asked),
        "statuses": STATUSES,
        "agents": sorted(app_of(request).agents),
    }
    return pages_of(request).page(request, "runs.html", context)


@router.get("/runs/{run_id}")
async def show_run(request: Request, run_id: str) -> Response:
    """One run as it is now; while it can change, the page listens to its events."""
    app = app_of(request)
    view = await app.get(run_id)
    context = {
        "run": view.public(),
        "ended": view.state.ended,
        "tree": nested(await app.tree(view.state.root_id or run_id)),
        "scratchpad": view.state.scratchpad,
        "after": view.seq,
    }
    return pages_of(request).page(request, "run.html", context)
