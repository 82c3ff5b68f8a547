"""API keys and sessions: make, list, end. A key of a tenant sees and makes those of its tenant."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Response

from loopagent.http.access import Who
from loopagent.http.models_keys import (
    CreatedKey,
    KeyDetail,
    KeyList,
    NewKey,
    SessionDetail,
    SessionList,
)
from loopagent.http.problems import responses
from loopagent.http.routes_runs import Host, Key
from loopagent.key_port import KeyRow, SessionRow
from loopagent.keys import shown_id


KeyId = Annotated[str, Path(max_length=100, description="Id of a key.")]
SessionId = Annotated[str, Path(max_length=100, description="Id of a session.")]
NO_CONTENT = 204
router = APIRouter(tags=["access"])


@router.get("/keys", responses=responses(401, 503))
async def list_keys(app: Host, who: Who) -> KeyList:
    """List keys, those that were revoked as well."""
    return KeyList(keys=[KeyDetail(**described(one)) for one in await app.keys.list(who.tenant)])


@router.post("/keys", status_code=201, responses=responses(400, 401, 413, 422, 503))
async def create_key(app: Host, who: Who, body: NewKey, key: Key = None) -> CreatedKey:
    """Make a key. Its text is in this answer only, which no `Idempotency-Key` brings back."""
    del key  # looked at before the route; an answer with a key is not kept
    text, row = await app.keys.create_by(
        who,
        body.name,
        tenant=body.tenant,
        all_tenants=body.all_tenants,
        user=body.user,
        scopes=body.scopes,
    )
    return CreatedKey(**described(row), key=text)


@router.delete("/keys/{key_id}", status_code=NO_CONTENT, responses=responses(401, 404, 422, 503))
async def revoke_key(app: Host, who: Who, key_id: KeyId) -> Response:
    """End a key for good, with the sessions that began with it."""
    await app.keys.revoke(key_id, by=who.by)
    return Response(status_code=NO_CONTENT)


@router.get("/sessions", responses=responses(401, 503))
async def list_sessions(app: Host, who: Who) -> SessionList:
    """List who is signed in to the pages."""
    names = {one.id: one.user or one.name for one in await app.keys.list(who.tenant)}
    found = await app.keys.sessions(who.tenant)
    return SessionList(sessions=[_session(one, names) for one in found])


@router.delete(
    "/sessions/{session_id}", status_code=NO_CONTENT, responses=responses(401, 404, 422, 503)
)
async def end_session(app: Host, who: Who, session_id: SessionId) -> Response:
    """Sign somebody out."""
    await app.keys.end_session(session_id, who.tenant, by=who.by)
    return Response(status_code=NO_CONTENT)


def described(row: KeyRow) -> dict[str, Any]:
    """A key without its hash."""
    names = [one for one in KeyDetail.model_fields if one != "scopes"]
    return {**{one: getattr(row, one) for one in names}, "scopes": list(row.scopes)}


def _session(row: SessionRow, names: dict[str, str]) -> SessionDetail:
    person = row.person
    return SessionDetail(
        id=shown_id(row),
        key_id=row.key_id if row.key_id in names else None,
        provider=person.provider if person else None,
        subject=person.subject if person else None,
        name=person.name if person else names.get(row.key_id, ""),
        tenant=row.tenant,
        created_at=row.created_at,
        expires_at=row.expires_at,
    )
