"""Notes that agents keep: list, look at, change, delete, export; as one user sees them, unless said otherwise."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Path, Query
from fastapi.responses import StreamingResponse

from loopagent.core.notes import NoteChange, public
from loopagent.errors import RequestError
from loopagent.http.access import Who
from loopagent.http.models_memory import EditNote, NotePage, NoteView
from loopagent.http.problems import responses
from loopagent.http.routes_runs import Host
from loopagent.memory import Viewer


def viewer(
    who: Who,
    user: Annotated[
        str, Query(max_length=200, description="Whose notes; empty: of runs without a user.")
    ] = "",
    tenant: Annotated[str, Query(max_length=200, description="The user's organisation.")] = "",
    *,
    all_users: Annotated[
        bool,
        Query(alias="allUsers", description="The notes of all users; for whoever runs the agents."),
    ] = False,
) -> Viewer:
    """On whose behalf notes are looked at.

    Raises:
        RequestError: `forbidden` (403), the caller's key is of another user or tenant.
    """
    user, tenant = who.whose(user, tenant)
    if not all_users:
        return Viewer(user, tenant)
    if who.user:
        text = "This key is of one user: it shows no notes of others."
        raise RequestError("forbidden", text, status=403)
    return Viewer(None, who.tenant)


Eyes = Annotated[Viewer, Depends(viewer)]
NoteId = Annotated[str, Path(max_length=200, description="Id of a note.")]
AgentName = Annotated[str | None, Query(max_length=200, description="Only this agent's.")]
router = APIRouter(tags=["memory"])


@router.get("/memory", responses=responses(400, 401, 422, 503))
async def list_notes(
    app: Host,
    eyes: Eyes,
    *,
    agent: AgentName = None,
    status: Annotated[
        Literal["provisional", "confirmed", "pending", "superseded"] | None, Query()
    ] = None,
    run_id: Annotated[str | None, Query(alias="runId", max_length=200)] = None,
    cursor: Annotated[str | None, Query(max_length=500)] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> NotePage:
    """List notes, newest first."""
    rows, following = await app.memory.list(
        eyes, agent=agent, status=status, run_id=run_id, cursor=cursor, limit=limit
    )
    views = [NoteView.model_validate(public(one)) for one in rows]
    return NotePage(notes=views, next_cursor=following)


@router.get(
    "/memory/export",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "One note a line, as JSON.",
            "content": {"application/x-ndjson": {"schema": {"type": "string"}}},
        },
        **responses(401, 422, 503),
    },
)
async def export_notes(app: Host, eyes: Eyes, agent: AgentName = None) -> StreamingResponse:
    """Take all notes out, with their history and those that wait for a person."""

    async def lines() -> AsyncIterator[str]:
        async for one in app.memory.export(eyes, agent=agent):
            yield json.dumps(public(one), ensure_ascii=False) + "\n"

    headers = {"Content-Disposition": 'attachment; filename="notes.jsonl"'}
    return StreamingResponse(lines(), media_type="application/x-ndjson", headers=headers)


@router.get("/memory/{note_id}", responses=responses(401, 404, 422, 503))
async def show_note(app: Host, eyes: Eyes, note_id: NoteId) -> NoteView:
    """Look at one note."""
    return NoteView.model_validate(public(await app.memory.get(note_id, eyes)))


@router.patch("/memory/{note_id}", responses=responses(400, 401, 403, 404, 413, 422, 503))
async def edit_note(app: Host, who: Who, eyes: Eyes, note_id: NoteId, body: EditNote) -> NoteView:
    """Change a note, confirm it for good, or put it aside."""
    change = NoteChange(body.note, body.type, body.confirmed)
    return NoteView.model_validate(public(await app.memory.edit(note_id, change, eyes, by=who.by)))


@router.delete("/memory/{note_id}", status_code=204, responses=responses(401, 403, 404, 422, 503))
async def delete_note(app: Host, eyes: Eyes, note_id: NoteId) -> None:
    """Remove a note for good, with the earlier ones whose place it took."""
    await app.memory.delete(note_id, eyes)
