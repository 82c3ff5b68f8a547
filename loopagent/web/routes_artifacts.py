"""Artifacts: those of all runs in a list, and one of them looked into."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from loopagent.artifact_port import ArtifactFilter, ArtifactRow
from loopagent.viewing import known
from loopagent.web.artifact_view import VIEWS, shown
from loopagent.web.shared import app_of, caller_of, pages_of, whole


PAGE_ROWS = 50
LOOKED_UP = 1_000
"""Entries of a run among which the one is looked for that tells where an artifact comes from."""
router = APIRouter(include_in_schema=False)


@router.get("/artifacts")
async def list_artifacts(request: Request) -> Response:
    """Artifacts of all runs, newest first; filters are in the address."""
    asked = request.query_params
    wanted = ArtifactFilter(
        tenant=caller_of(request).tenant,
        run_id=asked.get("run") or None,
        kind=asked.get("kind") or None,
        name=asked.get("name") or None,
        min_size=whole(asked.get("min")),
        max_size=whole(asked.get("max")),
    )
    rows, following = await app_of(request).artifacts(
        wanted, cursor=asked.get("cursor"), limit=PAGE_ROWS
    )
    context = {"rows": rows, "following": following, "asked": dict(asked), "kinds": sorted(VIEWS)}
    return pages_of(request).page(request, "artifacts.html", context)


@router.get("/runs/{run_id}/artifacts/{handle}")
async def show_artifact(request: Request, run_id: str, handle: str) -> Response:
    """One artifact: what is in it, where it comes from, its versions."""
    app = app_of(request)
    view = await app.get(run_id)
    one = known(view.state, handle)
    listed = list(view.state.artifacts)
    context = {
        "run": view.public(),
        "artifact": one,
        "shown": await shown(app, run_id, listed, one, request.query_params),
        "origin": await _origin(request, run_id, one.handle),
        "versions": [it for it in listed if it.name and it.name == one.name],
        "asked": dict(request.query_params),
    }
    return pages_of(request).page(request, "artifact.html", context)


async def _origin(request: Request, run_id: str, handle: str) -> ArtifactRow | None:
    """How the run got to know it."""
    rows, _ = await app_of(request).artifacts(ArtifactFilter(run_id=run_id), limit=LOOKED_UP)
    return next((one for one in rows if one.handle == handle), None)
