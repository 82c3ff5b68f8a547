"""Notifications: what was told to whom, sending again, and receivers that are disabled."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from loopagent.callers import check_run
from loopagent.errors import RequestError
from loopagent.notifications.receivers import shown_target
from loopagent.web.posts import fields_of
from loopagent.web.shared import app_of, caller_of, pages_of


PAGE_ROWS = 100
STATUSES = ("waiting", "sending", "sent", "failed")
router = APIRouter(include_in_schema=False)


@router.get("/notifications")
async def list_notifications(request: Request) -> Response:
    """Notifications, newest first; filters are in the address."""
    return await _page(request)


@router.post("/notifications/{notice_id}")
async def replay(request: Request, notice_id: str) -> Response:
    """Send one again."""
    await fields_of(request)
    try:
        await app_of(request).notifications.replay(notice_id)
    except RequestError as error:
        return await _page(request, error)
    return RedirectResponse("/notifications", 303)


@router.post("/notifications/receivers/{receiver_id}")
async def enable(request: Request, receiver_id: str) -> Response:
    """Tell a receiver again that was disabled."""
    await fields_of(request)
    try:
        await app_of(request).notifications.receivers.enable(receiver_id)
    except RequestError as error:
        return await _page(request, error)
    return RedirectResponse("/notifications", 303)


async def _page(request: Request, error: RequestError | None = None) -> Response:
    told, who, asked = app_of(request).notifications, caller_of(request), request.query_params
    status, run_id = asked.get("status"), asked.get("run") or None
    if run_id is not None:
        await check_run(app_of(request), who, run_id)
    rows, following = await told.list(
        run_id=run_id,
        status=status if status in STATUSES else None,
        tenant=who.tenant,
        cursor=asked.get("cursor"),
        limit=PAGE_ROWS,
    )
    context = {
        "rows": [(row, shown_target(row.target)) for row in rows],
        "following": following,
        "receivers": await told.receivers.list() if who.is_operator else None,
        "asked": dict(asked),
        "statuses": STATUSES,
        "error": error,
    }
    shown = 200 if error is None else error.status
    return pages_of(request).page(request, "notifications.html", context, status=shown)
