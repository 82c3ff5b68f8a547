"""Requests to people: the inbox, and answering."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query, Request

from loopagent.access import Caller
from loopagent.errors import RequestError
from loopagent.http.access import Who
from loopagent.http.models import Decision, RequestDetail, RequestPage, RunDetail, listed
from loopagent.http.problems import responses
from loopagent.http.routes_runs import Host, Key, run_detail
from loopagent.ports import RequestRow
from loopagent.request_view import may_answer, preview_of
from loopagent.web.shared import access_of


RequestId = Annotated[str, Path(max_length=300, description="Id of a request.")]
router = APIRouter(tags=["requests"])


def detail(row: RequestRow, who: Caller) -> RequestDetail:
    """A request as a caller sees it."""
    return RequestDetail(**listed(row), may_answer=may_answer(row, who))


@router.get("/requests", responses=responses(400, 401, 422, 503))
async def list_requests(
    app: Host,
    who: Who,
    *,
    status: Annotated[Literal["open", "resolved", "cancelled", "expired", "all"], Query()] = "open",
    run_id: Annotated[str | None, Query(alias="runId", max_length=200)] = None,
    newest: Annotated[bool, Query(description="Newest first.")] = False,
    cursor: Annotated[str | None, Query(max_length=500)] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> RequestPage:
    """List requests, oldest first unless asked otherwise."""
    wanted = None if status == "all" else status
    rows, following = await app.requests(
        status=wanted,
        run_id=run_id,
        tenant=who.tenant,
        newest=newest,
        cursor=cursor,
        limit=limit,
    )
    return RequestPage(requests=[detail(one, who) for one in rows], next_cursor=following)


@router.get("/requests/{request_id}", responses=responses(401, 404, 422, 503))
async def show_request(app: Host, who: Who, request_id: RequestId) -> RequestDetail:
    """Look at one request."""
    found = await app.inbox.row(request_id)
    shown = detail(found, who)
    return shown.model_copy(update={"preview": await preview_of(app, found)})


@router.post(
    "/requests/{request_id}/answer",
    responses=responses(400, 401, 403, 404, 409, 410, 413, 422, 503),
)
async def answer_request(
    app: Host,
    who: Who,
    request: Request,
    request_id: RequestId,
    body: Decision,
    *,
    key: Key = None,
) -> RunDetail:
    """Decide or answer; the first answer wins, a later one gets 409 with what was decided.

    An answer to what has changed since is 409 `stale`, with the request as it is now under `current`.
    """
    del key  # honoured before the route, for every POST
    try:
        view = await app.answer(
            request_id,
            decision=body.decision,
            values=body.values,
            edited=body.edited,
            feedback=body.feedback,
            revision=body.revision,
            content_hash=body.content_hash,
            remember=body.remember or "",
            by=who.by,
            who=who,
            unless_held=access_of(request).settings.exclusive_claims,
        )
    except RequestError as error:
        if error.code == "stale":
            now = await show_request(app, who, request_id)
            error.kept = now.model_dump(mode="json", by_alias=True)
        raise
    return run_detail(view)
