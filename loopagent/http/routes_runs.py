"""Runs: start, list, look at, follow, talk to, stop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response
from fastapi.responses import StreamingResponse

from loopagent.access import Caller
from loopagent.app import App
from loopagent.attachments import Attachment
from loopagent.clients import fingerprint
from loopagent.core.loop_view import LoopState
from loopagent.http.access import Who
from loopagent.http.middleware import BEGUN
from loopagent.http.models import (
    CancelRun,
    NewMessage,
    NewMode,
    NewRun,
    RunDetail,
    RunNode,
    RunPage,
    RunSummary,
    listed,
)
from loopagent.http.models_events import EventPage, EventView
from loopagent.http.problems import responses
from loopagent.http.sse import HEADERS, position, stream
from loopagent.http.still import Follows
from loopagent.http.uploads import UploadRoute, form, uploaded
from loopagent.runview import RunView
from loopagent.tree import nested


MAX_WAIT_SECONDS = 300
MAX_PAGE = 200
MAX_EVENTS = 1_000


def host(request: Request) -> App:
    """The app that this API serves."""
    app: App = request.app.state.app
    return app


Host = Annotated[App, Depends(host)]
RunId = Annotated[str, Path(max_length=200, description="Id of a run.")]
Wait = Annotated[
    float | None,
    Query(
        ge=0,
        le=MAX_WAIT_SECONDS,
        description="Seconds to wait for the run to end or to ask somebody.",
    ),
]
Key = Annotated[str | None, Header(alias="Idempotency-Key", max_length=255)]
Session = Annotated[
    str,
    Header(
        alias="Client-Session",
        min_length=16,
        max_length=200,
        description="A secret of the client's own. A run started with it takes answers of client tools only with it.",
    ),
]
router = APIRouter(tags=["runs"])
starting = APIRouter(tags=["runs"], route_class=UploadRoute)


@starting.post(
    "/runs",
    status_code=201,
    responses=responses(400, 401, 404, 409, 413, 415, 422, 503),
    openapi_extra=form("agent", "message"),
)
async def create_run(
    app: Host,
    who: Who,
    request: Request,
    body: NewRun,
    response: Response,
    *,
    wait: Wait = None,
    key: Key = None,
    session: Session = "",
) -> RunDetail:
    """Start a run; files come as base64, or in a form as `attachments`."""
    del key  # honoured before the route, for every POST
    view = await _start(app, who, body, session, uploaded(request))
    if wait:
        view = await app.wait(view.id, timeout_seconds=wait)
    response.headers["Location"] = f"/api/v1/runs/{view.id}"
    return run_detail(view)


@starting.post(
    "/runs/stream",
    openapi_extra=form("agent", "message"),
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "The run's events.",
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
        },
        **responses(400, 401, 404, 409, 413, 415, 422, 503),
    },
)
async def create_and_stream(
    app: Host,
    who: Who,
    request: Request,
    body: NewRun,
    *,
    still: Follows,
    key: Key = None,
    session: Session = "",
) -> StreamingResponse:
    """Start a run and follow it, from its beginning also when asked again; files as for `POST /runs`."""
    del key  # looked at before the route
    begun: str | None = request.scope.get(BEGUN)
    if begun is None:
        view = await _start(app, who, body, session, uploaded(request))
    else:
        view = await app.get(begun)
    again = {} if begun is None else {"Idempotency-Replayed": "true"}
    headers = {**HEADERS, "Location": f"/api/v1/runs/{view.id}", **again}
    return StreamingResponse(
        stream(app, view.id, 0, still), media_type="text/event-stream", headers=headers
    )


@router.get("/runs", responses=responses(400, 401, 422, 503))
async def list_runs(
    app: Host,
    who: Who,
    *,
    agent: Annotated[str | None, Query(max_length=200)] = None,
    status: Annotated[
        Literal["running", "completed", "failed", "cancelled"] | None, Query()
    ] = None,
    children: Annotated[bool, Query(description="Runs of sub-agents as well.")] = False,
    cursor: Annotated[str | None, Query(max_length=500)] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = 50,
) -> RunPage:
    """List runs, newest first."""
    rows, following = await app.runs(
        agent=agent,
        status=status,
        children=children,
        tenant=who.tenant,
        cursor=cursor,
        limit=limit,
    )
    return RunPage(runs=[RunSummary(**listed(one)) for one in rows], next_cursor=following)


@router.get("/runs/{run_id}", responses=responses(401, 404, 422, 503))
async def show_run(app: Host, run_id: RunId, wait: Wait = None) -> RunDetail:
    """Look at a run; with `wait`, once it has ended or asks somebody."""
    view = await app.wait(run_id, timeout_seconds=wait) if wait else await app.get(run_id)
    return run_detail(view)


@router.delete("/runs/{run_id}", status_code=204, responses=responses(401, 404, 409, 422, 503))
async def delete_run(app: Host, run_id: RunId) -> None:
    """Remove an ended run with everything that belongs to it."""
    await app.delete(run_id)


@router.get("/runs/{run_id}/state", responses=responses(401, 404, 422, 503))
async def run_state(app: Host, run_id: RunId) -> LoopState:
    """What a run is doing, and what may be done about it."""
    return run_detail(await app.get(run_id)).state


@router.get("/runs/{run_id}/tree", responses=responses(401, 404, 422, 503))
async def run_tree(app: Host, run_id: RunId) -> RunNode:
    """A run with everything below it."""
    return RunNode.model_validate(nested(await app.tree(run_id))[0])


@router.get(
    "/runs/{run_id}/events",
    response_model_exclude_none=True,  # as in the stream: what an event has not is left out
    responses=responses(401, 404, 410, 422, 503),
)
async def list_events(
    app: Host,
    run_id: RunId,
    after: Annotated[int, Query(ge=0, le=2**53)] = 0,
    limit: Annotated[int, Query(ge=1, le=MAX_EVENTS)] = 100,
) -> EventPage:
    """Read a run's events in order."""
    view = await app.get(run_id)
    if after < view.seq:
        await app.need_log(run_id)
    events = [
        EventView.model_validate(one)
        for one in await app.store.events(run_id, after=after, limit=limit)
    ]
    return EventPage(events=events, next_after=events[-1].seq if events else min(after, view.seq))


@router.get(
    "/runs/{run_id}/stream",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "The run's events.",
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
        },
        204: {"description": "The run has ended, and the position is behind its last event."},
        **responses(400, 401, 404, 422, 503),
    },
)
async def follow_run(
    app: Host,
    still: Follows,
    run_id: RunId,
    after: Annotated[int | None, Query(ge=0, le=2**53)] = None,
    last_event_id: Annotated[str | None, Header(alias="Last-Event-ID", max_length=100)] = None,
) -> Response:
    """Follow a run: stored events after the position, then live ones, until the run ends."""
    start = position(last_event_id, after)
    if await app.told_all(run_id, start):
        return Response(status_code=204)
    return StreamingResponse(
        stream(app, run_id, start, still), media_type="text/event-stream", headers=HEADERS
    )


@router.post(
    "/runs/{run_id}/messages",
    status_code=202,
    responses=responses(400, 401, 404, 409, 413, 422, 429, 503),
)
async def post_message(
    app: Host, who: Who, run_id: RunId, body: NewMessage, key: Key = None
) -> RunDetail:
    """Say something to a run: it answers an open question, else it waits for a turn boundary."""
    del key  # honoured before the route, for every POST
    return run_detail(await app.post(run_id, body.text, delivery=body.delivery, by=who.by))


@router.post("/runs/{run_id}/mode", responses=responses(400, 401, 404, 409, 413, 422, 503))
async def change_mode(
    app: Host, who: Who, run_id: RunId, body: NewMode, key: Key = None
) -> RunDetail:
    """Switch a run between planning and acting; a reply that is arriving is given up."""
    del key  # honoured before the route, for every POST
    return run_detail(await app.set_mode(run_id, body.mode, by=who.by))


@router.post("/runs/{run_id}/cancel", responses=responses(400, 401, 404, 413, 422, 503))
async def cancel_run(
    app: Host, who: Who, run_id: RunId, body: CancelRun | None = None, key: Key = None
) -> RunDetail:
    """Stop a run and everything it is doing."""
    del key  # honoured before the route, for every POST
    reason = body.reason if body is not None else ""
    return run_detail(await app.cancel(run_id, reason=reason, by=who.by))


async def _start(
    app: App, who: Caller, body: NewRun, session: str, files: Sequence[Attachment]
) -> RunView:
    user, tenant = who.whose(body.user, body.tenant)
    app.check_model(body.model, who)
    return await app.start(
        body.agent,
        body.message,
        payload=body.payload,
        model=body.model,
        limits=body.limits,
        plan_mode=body.plan_mode,
        conversation=body.conversation_id,
        user=user,
        tenant=tenant,
        on_busy=body.on_busy,
        metadata=body.metadata,
        webhook=body.webhook,
        client_tools=body.client_tools,
        client=fingerprint(session),
        attachments=[*(one.opened(at) for at, one in enumerate(body.attachments)), *files],
    )


def run_detail(view: RunView) -> RunDetail:
    """A run as it goes over the wire."""
    public: dict[str, Any] = view.public()
    return RunDetail.model_validate(public)
