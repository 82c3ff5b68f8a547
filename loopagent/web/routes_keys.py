"""API keys and who is signed in: make a key, which is shown once; end keys and sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from loopagent.access import SCOPES, hashed
from loopagent.callers import session_of
from loopagent.errors import RequestError
from loopagent.keys import shown_id
from loopagent.web.posts import fields_of, one
from loopagent.web.shared import app_of, caller_of, pages_of


if TYPE_CHECKING:
    from collections.abc import Mapping

    from loopagent.web.posts import Fields

MAX_SESSIONS = 200
"""How many the page shows, the latest ones; the API lists all."""
USUAL = ("runs", "requests.answer")
MEANINGS = {
    "runs": "start runs, steer them, read and remove them",
    "requests.answer": "read runs and requests, decide and answer",
    "actions.write": "make actions from OpenAPI documents and curl commands",
    "admin": "all of that, and this page",
}
router = APIRouter(include_in_schema=False)


@router.get("/keys")
async def list_keys(request: Request) -> Response:
    """Keys and sessions that the caller reaches."""
    return await _keys_page(request)


@router.post("/keys")
async def create_key(request: Request) -> Response:
    """Make a key; its text stands on the page that answers, and nowhere else."""
    sent = await fields_of(request)
    try:
        text, row = await app_of(request).keys.create_by(
            caller_of(request),
            one(sent, "name").strip(),
            tenant=one(sent, "tenant").strip(),
            all_tenants=one(sent, "all_tenants") == "yes",
            user=one(sent, "user").strip(),
            scopes=sent.get("scope", []),
        )
    except RequestError as error:
        return await _keys_page(request, error=error, sent=sent)
    return await _keys_page(request, made={"text": text, "name": row.name})


@router.post("/keys/{key_id}")
async def revoke_key(request: Request, key_id: str) -> Response:
    """End a key for good."""
    await fields_of(request)
    try:
        await app_of(request).keys.revoke(key_id, by=caller_of(request).by)
    except RequestError as error:
        return await _keys_page(request, error=error)
    return RedirectResponse("/keys", 303)


@router.post("/sessions/{session_id}")
async def end_session(request: Request, session_id: str) -> Response:
    """Sign somebody out."""
    await fields_of(request)
    who = caller_of(request)
    try:
        await app_of(request).keys.end_session(session_id, who.tenant, by=who.by)
    except RequestError as error:
        return await _keys_page(request, error=error)
    return RedirectResponse("/keys", 303)


async def _keys_page(
    request: Request,
    *,
    error: RequestError | None = None,
    made: Mapping[str, str] | None = None,
    sent: Fields | None = None,
) -> Response:
    keys, tenant = app_of(request).keys, caller_of(request).tenant
    rows = await keys.list(tenant)
    names = {row.id: row.user or row.name for row in rows}
    own = hashed(session_of(dict(request.headers)))
    sessions = [
        {
            "id": shown_id(row),
            "row": row,
            "name": row.person.name or row.person.subject if row.person else names.get(row.key_id),
            "is_own": row.hash == own,
        }
        for row in list(await keys.sessions(tenant))[-MAX_SESSIONS:]
    ]
    context: dict[str, Any] = {
        "rows": rows[::-1],
        "sessions": sessions[::-1],
        "meanings": MEANINGS,
        "scopes": SCOPES,
        "sent": sent or {"scope": list(USUAL)},
        "error": error,
        "made": made,
        "max_sessions": MAX_SESSIONS,
    }
    status = 200 if error is None else error.status
    return pages_of(request).page(request, "keys.html", context, status=status)
