"""Work with requests beside deciding them: take care of one, put it off, keep views, approve alike ones."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request

from loopagent.errors import RequestError
from loopagent.http.access import Who
from loopagent.http.models import RequestDetail
from loopagent.http.models_inbox import (
    ApproveAlike,
    ApprovedAll,
    ApprovedOne,
    Assign,
    InboxSummary,
    KeepView,
    Snooze,
    Snoozed,
    SnoozedPage,
    Take,
    ViewDetail,
    ViewPage,
)
from loopagent.http.problems import responses
from loopagent.http.routes_requests import RequestId, detail
from loopagent.http.routes_runs import Host, Key
from loopagent.inbox import MAX_NAME_CHARS, Seen
from loopagent.web.shared import access_of


ViewName = Annotated[str, Path(max_length=MAX_NAME_CHARS, description="What the caller calls it.")]
HELD = responses(400, 401, 404, 409, 410, 413, 422, 503)
router = APIRouter(tags=["requests"])


@router.post("/requests/{request_id}/claim", responses=HELD)
async def claim_request(
    app: Host, who: Who, request_id: RequestId, body: Take, key: Key = None
) -> RequestDetail:
    """Take care of a request, so that others see it; 409 where somebody else does, unless it is taken over."""
    del key  # honoured before the route, for every POST
    row = await app.inbox.claim(request_id, by=who.by, take_over=body.take_over)
    return detail(row, who)


@router.post("/requests/{request_id}/release", responses=HELD)
async def release_request(
    app: Host, who: Who, request_id: RequestId, body: Take, key: Key = None
) -> RequestDetail:
    """Take care of a request no more."""
    del key
    row = await app.inbox.release(request_id, by=who.by, take_over=body.take_over)
    return detail(row, who)


@router.post("/requests/{request_id}/assign", responses=HELD)
async def assign_request(
    app: Host, who: Who, request_id: RequestId, body: Assign, key: Key = None
) -> RequestDetail:
    """Have somebody take care of a request."""
    del key
    row = await app.inbox.assign(request_id, body.to, by=who.by, take_over=body.take_over)
    return detail(row, who)


@router.post("/requests/{request_id}/snooze", responses=responses(400, 401, 404, 413, 422, 503))
async def snooze_request(
    app: Host, who: Who, request_id: RequestId, body: Snooze, key: Key = None
) -> Snoozed:
    """Put a request off for the caller alone; it comes back by itself."""
    del key
    until = await app.inbox.snooze(who.person, request_id, body.until)
    return Snoozed(request_id=request_id, until=until)


@router.delete(
    "/requests/{request_id}/snooze", status_code=204, responses=responses(401, 404, 422, 503)
)
async def wake_request(app: Host, who: Who, request_id: RequestId) -> None:
    """Have a request back that was put off."""
    if not await app.inbox.wake(who.person, request_id):
        text = f"Request {request_id!r} is not put off."
        raise RequestError("not_snoozed", text, status=404)


@router.post("/requests/approve", responses=responses(400, 401, 404, 413, 422, 503))
async def approve_alike(
    app: Host, who: Who, request: Request, body: ApproveAlike, key: Key = None
) -> ApprovedAll:
    """Approve several calls of one action that only reads, each exactly as it was shown; never plans or writes."""
    del key
    for one in body.requests:
        await app.inbox.row(one.request_id, who)
    done = await app.inbox.approve_alike(
        [Seen(one.request_id, one.revision, one.content_hash) for one in body.requests],
        by=who.by,
        who=who,
        unless_held=access_of(request).settings.exclusive_claims,
    )
    return ApprovedAll(requests=[_told(one.request_id, one.error) for one in done])


@router.get("/inbox", responses=responses(401, 503))
async def show_inbox(app: Host, who: Who) -> InboxSummary:
    """Tell how much waits, without saying what."""
    return InboxSummary(open=await app.store.open_requests(who.tenant))


@router.get("/inbox/snoozed", responses=responses(401, 503))
async def list_snoozed(app: Host, who: Who) -> SnoozedPage:
    """List what the caller has put off."""
    found = await app.inbox.snoozed(who.person)
    return SnoozedPage(snoozed=[Snoozed(request_id=one, until=at) for one, at in found.items()])


@router.get("/inbox/views", responses=responses(401, 503))
async def list_views(app: Host, who: Who) -> ViewPage:
    """List the views that the caller keeps."""
    found = await app.inbox.views(who.person)
    return ViewPage(views=[ViewDetail(name=name, query=query) for name, query in found.items()])


@router.put("/inbox/views/{name}", responses=responses(400, 401, 409, 413, 422, 503))
async def keep_view(app: Host, who: Who, name: ViewName, body: KeepView) -> ViewDetail:
    """Keep a view of the inbox under a name, in place of the one of that name."""
    kept = await app.inbox.keep_view(who.person, name, body.query)
    return ViewDetail(name=name, query=kept)


@router.delete("/inbox/views/{name}", status_code=204, responses=responses(401, 404, 422, 503))
async def drop_view(app: Host, who: Who, name: ViewName) -> None:
    """Remove a view."""
    if not await app.inbox.drop_view(who.person, name):
        raise RequestError("unknown_view", f"There is no view {name!r}.", status=404)


def _told(request_id: str, error: RequestError | None) -> ApprovedOne:
    if error is None:
        return ApprovedOne(request_id=request_id, status="approved")
    return ApprovedOne(request_id=request_id, status="refused", code=error.code, detail=str(error))
