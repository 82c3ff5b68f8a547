"""The list of runs, one run as it goes on, its turns and messages."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response, StreamingResponse

from loopagent.app import App
from loopagent.core.advance import hears
from loopagent.core.facts import FACT_TYPES
from loopagent.core.plan_reads import holding
from loopagent.explain import explain
from loopagent.runtime.course import course_of
from loopagent.runtime.turn import turn_record
from loopagent.runview import RunView
from loopagent.tree import nested
from loopagent.web.charts import columns, costs, gantt
from loopagent.web.run_view import (
    fate,
    filtered,
    loop_of,
    notes_of,
    pad_history,
    progress_of,
    started_loops,
)
from loopagent.web.shared import app_of, caller_of, pages_of, whole
from loopagent.web.turn_view import decision_of, lines_of, prompt_parts


PAGE_ROWS = 50
PAGE_MESSAGES = 50
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
    after = max(0, view.seq - RECENT_EVENTS)
    events = await app.store.events(run_id, after=after, limit=RECENT_EVENTS)
    tree = nested(await app.tree(view.state.root_id or run_id))
    context = {
        "run": view.public(),
        "ended": view.state.ended,
        "limits": view.state.spec.limits,
        "tree": tree if tree and tree[0]["children"] else [],
        "shares": await progress_of(app, view.state, tree, events),
        "after": view.seq,
        "types": sorted(one for one in FACT_TYPES if one),
        "earlier": after > 0,
        "error": error,
        "heard": next((one.ask for one in view.state.asks if hears(one)), ""),
        **_told(view, events, request.query_params.get("show", ""), app.now()),
    }
    return pages_of(request).page(request, "run.html", context, status=status)


def _told(view: RunView, events: list[dict[str, Any]], show: str, now: float) -> dict[str, Any]:
    """What the events of a run tell, and what goes with that."""
    state, course = view.state, course_of(events, view.id)
    shown, kinds = filtered(course, show)
    now = course.last_at if state.ended else now
    loop = loop_of(state, started_loops(events).get(view.id))
    return {
        "turns": shown.turns,
        "notes": {one.number: notes_of(one) for one in shown.turns},
        "show": show,
        "kinds": kinds,
        "loop_now": loop,
        "began_at": events[0]["ts"] if events else now,
        "last_at": now,
        "gantt": gantt(course, now),
        "columns": columns(course),
        "costs": costs(course),
        "mail": state.mail,
        "scratchpad": state.scratchpad,
        "pad_history": pad_history(course.of("scratchpad.changed")),
        "memory": course.of("memory.written"),
        "artifacts": state.artifacts,
        "remembered": holding(state),
        "artifact_turns": {
            one["data"]["handle"]: one["turn"] for one in course.of("artifact.created")
        },
        "messages": state.messages,
    }


@router.get("/runs/{run_id}/turns/{turn}")
async def show_turn(request: Request, run_id: str, turn: int) -> Response:
    """One turn: decision, raw reply, problems, prompt, payload difference, operations, who decided what."""
    app = app_of(request)
    await app.need_log(run_id)
    view = await app.get(run_id)
    record = await turn_record(app.store, run_id, turn, app.system)
    found, told = record.public(), record.told
    events = await app.store.events(run_id, limit=view.seq)
    explained = explain(events)
    context = {
        "run": view.public(),
        "turn": found,
        "decision": decision_of(found["raw"]),
        "lines": lines_of(found["raw"], found["marks"], found["problems"]),
        "parts": prompt_parts(found["prompt"], view.state.spec),
        "before": told.before if told else None,
        "after": told.payload if told else None,
        "work": told.work if told else [],
        "created": told.of("artifact.created") if told else [],
        "memory": told.of("memory.written", "memory.read") if told else [],
        "commands": told.of("command.issued") if told else [],
        "decisions": [
            one
            for chapter in explained.chapters
            if (chapter.run_id, chapter.turn) == (run_id, turn)
            for one in chapter.decisions
        ],
    }
    return pages_of(request).page(request, "turn.html", context)


@router.get("/runs/{run_id}/messages")
async def show_messages(request: Request, run_id: str) -> Response:
    """What was said in a run, in full, and where the model sees less of it."""
    app = app_of(request)
    await app.need_log(run_id)
    view = await app.get(run_id)
    total = view.state.messages
    newest = max(1, total - PAGE_MESSAGES + 1)
    first = max(1, whole(request.query_params.get("first")) or newest)
    last = first + PAGE_MESSAGES - 1
    events = await app.store.events(run_id, limit=view.seq)
    compacted = [
        one for one in events if one["type"] == "context.compacted" and one["runId"] == run_id
    ]
    context = {
        "run": view.public(),
        "messages": [
            (one, fate(one, view.state))
            for one in await app.store.transcript(run_id, first=first, last=last)
        ],
        "first": first,
        "last": last,
        "total": total,
        "step": PAGE_MESSAGES,
        "compacted": compacted,
    }
    return pages_of(request).page(request, "messages.html", context)


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
