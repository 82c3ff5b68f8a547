"""Artifacts of runs: listed, looked into, and handed out as the bytes they are."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Annotated, Any, Literal, cast
from urllib.parse import quote

from fastapi import APIRouter, Path, Query, Request, Response

from loopagent.artifact_port import ArtifactFilter
from loopagent.callers import check_run
from loopagent.core.state import Artifact
from loopagent.errors import RequestError
from loopagent.giving import give_files
from loopagent.http.access import Who
from loopagent.http.artifact_models import (
    ArtifactList,
    ArtifactPage,
    Look,
    TextChanges,
    artifact_entry,
    artifact_view,
)
from loopagent.http.attachment_models import NewFiles
from loopagent.http.problems import responses
from loopagent.http.routes_runs import Host, Key, RunId
from loopagent.http.uploads import UploadRoute, form, uploaded
from loopagent.ports import StoredArtifact
from loopagent.viewing import changes_of, look_into


router = APIRouter(tags=["artifacts"])
giving = APIRouter(tags=["artifacts"], route_class=UploadRoute)
Handle = Annotated[
    str, Path(max_length=100, description="Letters, such as A, or SHA-256 of the content.")
]
ArtifactKind = Literal["text", "json", "csv", "tables", "pdf", "docx", "xlsx", "image", "binary"]
MAX_SIZE = 10**15
MAX_TRIED = 20
"""Runs that are asked for a content: those whose results are not kept any more have it no longer."""
Size = Annotated[
    int | None,
    Query(alias="minSize", ge=0, le=MAX_SIZE, description="Bytes of a file, characters of a text."),
]
BYTES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Its bytes.",
        "content": {"application/octet-stream": {"schema": {"type": "string"}}},
    },
    **responses(401, 404, 422, 503),
}
SAFE = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "sandbox; default-src 'none'",
    "Cache-Control": "private, no-store",
}
"""Files come from models, actions and people: a browser must store them, never show or run them."""


@router.get("/runs/{run_id}/artifacts", responses=responses(401, 404, 422, 503))
async def list_artifacts(app: Host, run_id: RunId) -> ArtifactList:
    """List the stored results and files of a run, in the order in which it got to know them."""
    return _listed((await app.get(run_id)).state.artifacts)


@giving.post(
    "/artifacts",
    status_code=201,
    responses=responses(400, 401, 404, 409, 413, 415, 422, 429, 503),
    openapi_extra=form("runId"),
)
async def add_artifacts(
    app: Host, who: Who, request: Request, body: NewFiles, response: Response, *, key: Key = None
) -> ArtifactList:
    """Give files to a run that has not ended, as base64 or in a form; the model is told with its next prompt."""
    del key  # honoured before the route, for every POST
    files = [*(one.opened(at) for at, one in enumerate(body.attachments)), *uploaded(request)]
    await check_run(app, who, body.run_id)
    known = await give_files(app, body.run_id, files, by=who.by)
    response.headers["Location"] = f"/api/v1/runs/{body.run_id}/artifacts"
    return _listed(known)


def _listed(artifacts: Iterable[Artifact]) -> ArtifactList:
    return ArtifactList(artifacts=[artifact_view(one) for one in artifacts])


@router.get("/artifacts", responses=responses(400, 401, 422, 503))
async def find_artifacts(
    app: Host,
    who: Who,
    *,
    run_id: Annotated[str | None, Query(alias="runId", max_length=200)] = None,
    kind: Annotated[ArtifactKind | None, Query(description="Which tools fit it.")] = None,
    name: Annotated[
        str | None, Query(max_length=200, description="Part of a file name, whatever the case.")
    ] = None,
    min_size: Size = None,
    max_size: Annotated[int | None, Query(alias="maxSize", ge=0, le=MAX_SIZE)] = None,
    cursor: Annotated[str | None, Query(max_length=500)] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> ArtifactPage:
    """List the stored results and files of all runs, newest first."""
    wanted = ArtifactFilter(who.tenant, run_id, kind, name, min_size, max_size)
    rows, following = await app.artifacts(wanted, cursor=cursor, limit=limit)
    return ArtifactPage(artifacts=[artifact_entry(one) for one in rows], next_cursor=following)


@router.get("/runs/{run_id}/artifacts/{handle}/look", responses=responses(400, 401, 404, 422, 503))
async def look(
    app: Host,
    run_id: RunId,
    handle: Handle,
    tool: Annotated[str, Query(max_length=100, description="Such as `get_lines`.")],
    params: Annotated[
        str, Query(max_length=10_000, description="Its parameters, a JSON object.")
    ] = "{}",
) -> Look:
    """Look into an artifact with one of the tools that a model has for its kind; large ones come in pages."""
    try:
        given = json.loads(params)
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict):
        raise RequestError("bad_params", "`params` must be a JSON object.", status=422)
    result = await look_into(app, run_id, handle, tool, cast("dict[str, Any]", given))
    return Look(tool=tool, result=result)


@router.get(
    "/runs/{run_id}/artifacts/{handle}/changes/{before}", responses=responses(401, 404, 422, 503)
)
async def show_changes(app: Host, run_id: RunId, handle: Handle, before: Handle) -> TextChanges:
    """Compare a text with another one of the run, such as its version before."""
    return TextChanges.model_validate(await changes_of(app, run_id, before, handle))


@router.get(
    "/runs/{run_id}/artifacts/{handle}",
    response_class=Response,
    responses=BYTES,
)
async def show_artifact(app: Host, run_id: RunId, handle: Handle) -> Response:
    """Fetch a stored result or file, by its letters or by its hash."""
    view = await app.get(run_id)
    known = next((one for one in view.state.artifacts if one.handle == handle.upper()), None)
    stored = await app.store.artifact(run_id, known.artifact_id if known else handle)
    if stored is None:
        text = f"Run {run_id!r} has no artifact {handle!r}."
        raise RequestError("unknown_artifact", text, status=404)
    return _handed_out(stored, (known.name if known else "") or f"{run_id}-{handle}")


@router.get("/artifacts/{artifact_id}", response_class=Response, responses=BYTES)
async def show_content(
    app: Host,
    who: Who,
    artifact_id: Annotated[str, Path(max_length=100, description="SHA-256 of the content.")],
) -> Response:
    """Fetch a stored result or file by its hash alone, whatever run knows it."""
    wanted = ArtifactFilter(tenant=who.tenant, artifact_id=artifact_id.lower())
    rows, _ = await app.store.artifacts(wanted, limit=MAX_TRIED)
    for one in rows:
        stored = await app.store.artifact(one.run_id, one.artifact_id)
        if stored is not None:
            return _handed_out(stored, one.name or artifact_id)
    raise RequestError("unknown_artifact", f"There is no artifact {artifact_id!r}.", status=404)


def _handed_out(stored: StoredArtifact, name: str) -> Response:
    disposition = f"attachment; filename*=UTF-8''{quote(name, safe='')}"
    headers = {**SAFE, "Content-Disposition": disposition}
    return Response(stored.content, media_type=stored.media_type, headers=headers)
