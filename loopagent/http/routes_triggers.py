"""Triggers: list, call, fire, and what was delivered to them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response

from loopagent.access import Caller
from loopagent.errors import RequestError
from loopagent.http.access import Who
from loopagent.http.models_triggers import (
    DeliveryPage,
    DeliveryView,
    FireTrigger,
    TriggerList,
    TriggerSummary,
)
from loopagent.http.problems import responses
from loopagent.http.routes_runs import Host, Key
from loopagent.trigger_port import Delivery, DeliveryStatus
from loopagent.triggers.incoming import Call
from loopagent.web.posts import check_origin


TriggerName = Annotated[str, Path(max_length=200, description="Name of a trigger.")]
ACCEPTED = 202
ANY_BODY = {
    "requestBody": {
        "description": "Whatever the sender sends: JSON, a form, or text.",
        "content": {"*/*": {"schema": {}}},
    }
}
router = APIRouter(tags=["triggers"])


@router.get("/triggers", responses=responses(401, 503))
async def list_triggers(app: Host, who: Who) -> TriggerList:
    """List the triggers, with when they fire next."""
    views = [one for one in await app.triggers.views() if who.reaches(one.spec.tenant)]
    return TriggerList(triggers=[TriggerSummary.model_validate(one.public()) for one in views])


@router.get("/triggers/{name}", responses=responses(401, 404, 422, 503))
async def show_trigger(app: Host, name: TriggerName) -> TriggerSummary:
    """Look at a trigger."""
    return TriggerSummary.model_validate((await app.triggers.get(name)).public())


@router.post(
    "/triggers/{name}",
    status_code=ACCEPTED,
    openapi_extra=ANY_BODY,
    responses={
        200: {
            "model": DeliveryView,
            "description": "It starts no run; `status` and `reason` say why.",
        },
        **responses(400, 401, 404, 413, 422, 429, 503),
    },
)
async def call_trigger(
    app: Host, who: Who, request: Request, response: Response, name: TriggerName
) -> DeliveryView:
    """Call a webhook: 202 when a run starts or will start, 200 when the event starts none, 429 when too many wait.

    Who may call is up to the trigger: the server's token, a token of its own, or a signature.
    """
    spec = app.triggers.spec(name)
    headers = {key.lower(): value for key, value in request.headers.items()}
    if spec.webhook is not None and spec.webhook.auth.type == "server":
        _check_caller(request, who, spec.tenant)
    most = spec.webhook.max_body_bytes if spec.webhook is not None else 0
    body = await _body(request, most)
    done = await app.triggers.deliver(name, Call(headers, dict(request.query_params), body))
    return _answered(done, response)


def _check_caller(request: Request, who: Caller, tenant: str) -> None:
    if "authorization" not in request.headers:
        check_origin(
            request
        )  # whom the browser's session stands for, or a server that lets everybody in
    if not (who.may("runs") and who.reaches(tenant)):
        text = "Send an API key of the trigger's tenant, or the server's token, as `Authorization: Bearer …`."
        raise RequestError("unauthorized", text, status=401)


async def _body(request: Request, most: int) -> bytes:
    """The body, read no further than one byte over what is allowed."""
    found = bytearray()
    async for piece in request.stream():
        found += piece
        if len(found) > most:
            break
    return bytes(found[: most + 1])


@router.post(
    "/triggers/{name}/fire",
    status_code=ACCEPTED,
    responses={
        200: {
            "model": DeliveryView,
            "description": "It starts no run; `status` and `reason` say why.",
        },
        **responses(400, 401, 404, 413, 422, 429, 503),
    },
)
async def fire_trigger(
    app: Host, response: Response, name: TriggerName, body: FireTrigger, key: Key = None
) -> DeliveryView:
    """Fire a trigger by hand, whether it is enabled or not."""
    del key  # honoured before the route, for every POST
    done = await app.triggers.fire(name, body.body, event_id=body.event_id)
    return _answered(done, response)


@router.get("/triggers/{name}/deliveries", responses=responses(400, 401, 404, 422, 503))
async def list_deliveries(
    app: Host,
    name: TriggerName,
    *,
    status: Annotated[DeliveryStatus | None, Query(description="Only of this status.")] = None,
    cursor: Annotated[str | None, Query(max_length=500)] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> DeliveryPage:
    """List what was delivered to a trigger, newest first, with what became of it and why."""
    rows, following = await app.triggers.deliveries(name, status=status, cursor=cursor, limit=limit)
    return DeliveryPage(deliveries=[_view(one) for one in rows], next_cursor=following)


def _answered(done: Delivery, response: Response) -> DeliveryView:
    """The delivery, as an answer that tells the sender whether to try again.

    Raises:
        RequestError: `too_many_waiting` (429).
    """
    if done.status == "busy":
        text = f"The trigger is busy: {done.reason}. Send the event again later."
        raise RequestError("too_many_waiting", text, status=429, retryable=True)
    started = done.status in ("fired", "starting", "held", "waiting")
    response.status_code = ACCEPTED if started else 200
    if done.run_id:
        response.headers["Location"] = f"/api/v1/runs/{done.run_id}"
    return _view(done)


def _view(one: Delivery) -> DeliveryView:
    return DeliveryView(
        id=one.id,
        trigger=one.trigger,
        event_id=one.event_id,
        source=one.source,
        at=one.at,
        updated_at=one.updated_at,
        status=one.status,
        reason=one.reason,
        run_id=one.run_id or None,
        bytes=one.bytes,
    )
