"""Runs as a whole: pause, resume, raise limits, fork."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Response

from loopagent.http.access import Who
from loopagent.http.models import RunDetail
from loopagent.http.models_control import Comparison, ForkRun, PauseRun, RaiseLimits
from loopagent.http.problems import responses
from loopagent.http.routes_runs import Host, Key, RunId, run_detail


router = APIRouter(tags=["runs"])


@router.post("/runs/{run_id}/pause", responses=responses(400, 401, 404, 409, 413, 422, 503))
async def pause_run(
    app: Host, who: Who, run_id: RunId, body: PauseRun | None = None, key: Key = None
) -> RunDetail:
    """Let a run stand still, with those below it, until it is resumed; what is under way ends and is kept."""
    del key  # honoured before the route, for every POST
    reason = body.reason if body is not None else ""
    return run_detail(await app.pause(run_id, reason=reason, by=who.by))


@router.post("/runs/{run_id}/resume", responses=responses(400, 401, 404, 409, 413, 422, 503))
async def resume_run(app: Host, who: Who, run_id: RunId, key: Key = None) -> RunDetail:
    """Let a run go on that is paused, that a failing model ended, or that was left in the middle."""
    del key  # honoured before the route, for every POST
    return run_detail(await app.resume(run_id, by=who.by))


@router.post("/runs/{run_id}/limits", responses=responses(400, 401, 404, 409, 413, 422, 503))
async def raise_limits(
    app: Host, who: Who, run_id: RunId, body: RaiseLimits, key: Key = None
) -> RunDetail:
    """Let a run, with those below it, spend more; one that ended at a limit goes on."""
    del key  # honoured before the route, for every POST
    wanted = body.model_dump(exclude_unset=True)
    return run_detail(await app.raise_limits(run_id, wanted, by=who.by))


@router.post(
    "/runs/{run_id}/fork",
    status_code=201,
    responses=responses(400, 401, 404, 409, 410, 413, 422, 503),
)
async def fork_run(
    app: Host,
    who: Who,
    run_id: RunId,
    response: Response,
    body: ForkRun | None = None,
    *,
    key: Key = None,
) -> RunDetail:
    """Start a copy of a run as it was before one of its turns; the run itself is not changed."""
    del key  # honoured before the route, for every POST
    how = body or ForkRun()
    view = await app.fork(
        run_id,
        turn=how.turn,
        message=how.message,
        payload=how.payload,
        limits=how.limits.model_dump(exclude_unset=True) if how.limits else None,
        metadata=how.metadata,
        by=who.by,
    )
    response.headers["Location"] = f"/api/v1/runs/{view.id}"
    return run_detail(view)


@router.get("/runs/{run_id}/compare/{other_id}", responses=responses(401, 404, 410, 422, 503))
async def compare_runs(
    app: Host,
    run_id: RunId,
    other_id: Annotated[str, Path(max_length=200, description="Id of the other run.")],
) -> Comparison:
    """Two runs side by side, turn by turn: what was decided, done and spent."""
    return Comparison.model_validate(await app.compare(run_id, other_id))
