"""Notifications: what was sent to whom, what failed, and sending it again."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query

from loopagent.callers import check_run
from loopagent.http.access import Who
from loopagent.http.models_notifications import (
    NotificationPage,
    NotificationView,
    ReceiverDetail,
    ReceiverList,
)
from loopagent.http.problems import responses
from loopagent.http.routes_runs import Host, Key
from loopagent.notification_port import Notice, NoticeStatus
from loopagent.notifications.receivers import ReceiverView
from loopagent.notifications.service import public


NoticeId = Annotated[str, Path(max_length=200, description="Id of a notification.")]
ReceiverId = Annotated[str, Path(max_length=200, description="Id of a receiver.")]
router = APIRouter(tags=["notifications"])


@router.get("/notifications", responses=responses(400, 401, 422, 503))
async def list_notifications(
    app: Host,
    who: Who,
    *,
    run_id: Annotated[str | None, Query(alias="runId", max_length=200)] = None,
    status: Annotated[NoticeStatus | None, Query(description="Only of this status.")] = None,
    cursor: Annotated[str | None, Query(max_length=500)] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> NotificationPage:
    """List notifications, newest first, with their latest attempts; for the key of a tenant those of its runs."""
    if run_id is not None:
        await check_run(app, who, run_id)
    rows, following = await app.notifications.list(
        run_id=run_id, status=status, tenant=who.tenant, cursor=cursor, limit=limit
    )
    return NotificationPage(notifications=[_view(one) for one in rows], next_cursor=following)


@router.get("/notifications/receivers", responses=responses(401, 503))
async def list_receivers(app: Host) -> ReceiverList:
    """List who is told, and who fails or is disabled because of that."""
    found = await app.notifications.receivers.list()
    return ReceiverList(receivers=[_receiver(one) for one in found])


@router.post(
    "/notifications/receivers/{receiver_id}/enable",
    responses=responses(400, 401, 404, 409, 413, 422, 503),
)
async def enable_receiver(app: Host, receiver_id: ReceiverId, key: Key = None) -> ReceiverDetail:
    """Tell a receiver again that was disabled; what failed meanwhile is sent when it is replayed."""
    del key  # honoured before the route, for every POST
    return _receiver(await app.notifications.receivers.enable(receiver_id))


@router.get("/notifications/{notice_id}", responses=responses(401, 404, 422, 503))
async def show_notification(app: Host, notice_id: NoticeId) -> NotificationView:
    """Look at a notification."""
    return _view(await app.notifications.get(notice_id))


@router.post(
    "/notifications/{notice_id}/replay",
    status_code=202,
    responses=responses(400, 401, 404, 409, 413, 422, 503),
)
async def replay_notification(app: Host, notice_id: NoticeId, key: Key = None) -> NotificationView:
    """Send a notification again, under its id, whether it got through or not."""
    del key  # honoured before the route, for every POST
    return _view(await app.notifications.replay(notice_id))


def _receiver(one: ReceiverView) -> ReceiverDetail:
    return ReceiverDetail.model_validate(one.public())


def _view(one: Notice) -> NotificationView:
    return NotificationView.model_validate(public(one))
