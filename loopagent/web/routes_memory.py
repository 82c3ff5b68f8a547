"""The notes that agents keep: where each comes from, and putting them right."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from loopagent.core.notes import NoteChange
from loopagent.errors import RequestError
from loopagent.memory import Viewer
from loopagent.web.posts import fields_of, one
from loopagent.web.shared import app_of, caller_of, pages_of


PAGE_ROWS = 100
STATUSES = ("provisional", "confirmed", "retired")
router = APIRouter(include_in_schema=False)


@router.get("/memory")
async def list_notes(request: Request) -> Response:
    """Notes, newest first; filters are in the address."""
    return await _notes_page(request)


async def _notes_page(request: Request, error: RequestError | None = None) -> Response:
    asked = request.query_params
    status = asked.get("status")
    notes, following = await app_of(request).memory.list(
        _viewer(request),
        agent=asked.get("agent") or None,
        status=status if status in STATUSES else None,  # type: ignore[arg-type]
        run_id=asked.get("run") or None,
        cursor=asked.get("cursor"),
        limit=PAGE_ROWS,
    )
    context = {
        "notes": notes,
        "following": following,
        "asked": dict(asked),
        "statuses": STATUSES,
        "agents": sorted(app_of(request).agents),
        "error": error,
    }
    return pages_of(request).page(
        request, "memory.html", context, status=200 if error is None else error.status
    )


def _viewer(request: Request) -> Viewer:
    """A key of one user shows this user's notes, any other those of all users of its tenant."""
    who = caller_of(request)
    return Viewer(who.user or None, who.tenant)


@router.post("/memory/{note_id}")
async def change_note(request: Request, note_id: str) -> Response:
    """Change a note's text, confirm it, or delete it."""
    sent = await fields_of(request)
    memory, do = app_of(request).memory, one(sent, "do")
    eyes, by = _viewer(request), caller_of(request).by
    try:
        if do == "delete":
            await memory.delete(note_id, eyes)
        elif do == "confirm":
            await memory.edit(note_id, NoteChange(confirmed=True), eyes, by=by)
        else:
            await memory.edit(note_id, NoteChange(text=one(sent, "text")), eyes, by=by)
    except RequestError as error:
        return await _notes_page(request, error)
    return RedirectResponse("/memory", 303)
