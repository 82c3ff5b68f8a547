"""The list of runs, one run as it goes on, and what may be done to it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response, StreamingResponse

from loopagent.app import App
from loopagent.core.facts import FACT_TYPES
from loopagent.explain import explain
from loopagent.runtime.turn import turn_record
from loopagent.tree import nested
from loopagent.web.charts import columns, gantt
from loopagent.web.shared import app_of, caller_of, pages_of
from loopagent.web.timeline import timeline_of


PAGE_ROWS = 50
RECENT_EVENTS = 2_000
"""How far back the page of a run looks; the whole log can be downloaded."""
STATUSES = ("running", "completed", "failed", "cancelled")
router = APIRouter(include_in_schema=False)


@router.get("/runs")
async def list_runs(request: Request) -> Response:
    """Runs, newest first."""
    asked = request.query_params
    rows, following = await app_of(request).runs(
        agent=asked.get("agent") or None,
        status=asked.get("status") if asked.get("status") in STATUSES else None,
        tenant=caller_of(request).tenant,
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
    return await run_page(request, run_id)


async def run_page(request: Request, run_id: str, error: str = "", status: int = 200) -> Response:
    """The page of a run, with why the last thing that somebody wanted of it was refused."""
    app = app_of(request)
    view = await app.get(run_id)
    state = view.state
    after = max(0, view.seq - RECENT_EVENTS)
    events = await app.store.events(run_id, after=after, limit=RECENT_EVENTS)
    timeline = timeline_of(events, run_id)
    now = app.now() if not state.ended else timeline.last_at
    tree = nested(await app.tree(state.root_id or run_id))
    context = {
        "run": view.public(),
        "ended": state.ended,
        "limits": state.spec.limits,
        "tree": tree if tree and tree[0]["children"] else [],
        "scratchpad": state.scratchpad,
        "artifacts": state.artifacts,
        "timeline": timeline,
        "began_at": events[0]["ts"] if events else now,
        "gantt": gantt(timeline, now),
        "columns": columns(timeline),
        "after": view.seq,
        "types": sorted(one for one in FACT_TYPES if one),
        "earlier": after > 0,
        "error": error,
    }
    return pages_of(request).page(request, "run.html", context, status=status)


@router.get("/runs/{run_id}/turns/{turn}")
async def show_turn(request: Request, run_id: str, turn: int) -> Response:
    """One turn: decision, raw reply, problems, prompt, payload difference, usage."""
    app = app_of(request)
    await app.need_log(run_id)
    record = (await turn_record(app.store, run_id, turn, app.system)).public()
    context = {
        "run": (await app.get(run_id)).public(),
        "turn": record,
        "decision": _parsed(record["raw"]),
    }
    return pages_of(request).page(request, "turn.html", context)


def _parsed(raw: str) -> Any:
    """The reply as JSON when it is that, for reading it field by field."""
    try:
        return json.loads(raw)
    except ValueError:
        return None


@router.get("/runs/{run_id}/explain")
async def explain_run(request: Request, run_id: str) -> Response:
    """Who decided what, turn by turn, and on which grounds."""
    app = app_of(request)
    await app.need_log(run_id)
    view = await app.get(run_id)
    explanation = explain([event async for event in app.events(run_id, live=False)])
    context = {"run": view.public(), "text": explanation.text()}
    return pages_of(request).page(request, "explain.html", context)


@router.get("/runs/{run_id}/log")
async def download_log(request: Request, run_id: str) -> Response:
    """All events of a run as JSON Lines."""
    app = app_of(request)
    await app.need_log(run_id)
    await app.get(run_id)
    headers = {"Content-Disposition": f'attachment; filename="{run_id}.jsonl"'}
    return StreamingResponse(_lines(app, run_id), media_type="application/jsonl", headers=headers)


async def _lines(app: App, run_id: str) -> AsyncIterator[str]:
    async for event in app.events(run_id, live=False):
        yield json.dumps(event, ensure_ascii=False) + "\n"
