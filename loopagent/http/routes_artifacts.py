"""Artifacts of a run: listed, and handed out as the bytes they are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Path, Request, Response
from pydantic import Field

from loopagent.callers import check_run
from loopagent.core.state import Artifact
from loopagent.errors import RequestError
from loopagent.giving import give_files
from loopagent.http.access import Who
from loopagent.http.attachment_models import NewFiles
from loopagent.http.body import View
from loopagent.http.problems import responses
from loopagent.http.routes_runs import Host, Key, RunId
from loopagent.http.uploads import UploadRoute, form, uploaded


router = APIRouter(tags=["artifacts"])
giving = APIRouter(tags=["artifacts"], route_class=UploadRoute)
Handle = Annotated[
    str, Path(max_length=100, description="Letters, such as A, or SHA-256 of the content.")
]
SAFE = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "sandbox; default-src 'none'",
    "Cache-Control": "private, no-store",
}
"""Files come from models, actions and people: a browser must store them, never show or run them."""


class ArtifactView(View):
    """A stored text or file of a run."""

    handle: str
    """The letters by which the model knows it."""
    artifact_id: str
    """SHA-256 of its content."""
    name: str
    """File name; empty for a result."""
    version: int = Field(ge=1)
    """Which one of its name."""
    kind: str
    """Which tools fit it: `text`, `json`, `csv`, `tables`, `pdf`, `docx`, `xlsx`, `image`, `binary`."""
    media_type: str
    """Its type; empty for a result."""
    size: int = Field(ge=0)
    """Bytes of a file, characters of a result."""


class ArtifactList(View):
    """The artifacts of a run."""

    artifacts: list[ArtifactView]


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
    listed = [
        ArtifactView(
            handle=one.handle,
            artifact_id=one.artifact_id,
            name=one.name,
            version=one.version,
            kind=one.kind,
            media_type=one.media_type,
            size=one.chars,
        )
        for one in artifacts
    ]
    return ArtifactList(artifacts=listed)


@router.get(
    "/runs/{run_id}/artifacts/{handle}",
    response_class=Response,
    responses={
        200: {
            "description": "Its bytes.",
            "content": {"application/octet-stream": {"schema": {"type": "string"}}},
        },
        **responses(401, 404, 422, 503),
    },
)
async def show_artifact(app: Host, run_id: RunId, handle: Handle) -> Response:
    """Fetch a stored result or file, by its letters or by its hash."""
    view = await app.get(run_id)
    known = next((one for one in view.state.artifacts if one.handle == handle.upper()), None)
    stored = await app.store.artifact(run_id, known.artifact_id if known else handle)
    if stored is None:
        text = f"Run {run_id!r} has no artifact {handle!r}."
        raise RequestError("unknown_artifact", text, status=404)
    name = (known.name if known else "") or f"{run_id}-{handle}"
    disposition = f"attachment; filename*=UTF-8''{quote(name, safe='')}"
    headers = {**SAFE, "Content-Disposition": disposition}
    return Response(stored.content, media_type=stored.media_type, headers=headers)
