"""Client tools: the calls that wait for the client, and its answers."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path

from loopagent.clients import ToolAnswer, fingerprint
from loopagent.http.models import ClientCall, ClientCalls, ClientToolAnswer, RunDetail
from loopagent.http.problems import responses
from loopagent.http.routes_runs import Host, Key, RunId, Session, run_detail


CallId = Annotated[str, Path(max_length=200, description="Id of a call, as in its event.")]
router = APIRouter(tags=["client tools"])


@router.get("/runs/{run_id}/client-tools", responses=responses(401, 404, 422, 503))
async def open_calls(app: Host, run_id: RunId) -> ClientCalls:
    """List the calls that wait for the client."""
    view = await app.get(run_id)
    return ClientCalls(calls=[ClientCall.model_validate(one) for one in view.client_calls])


@router.post(
    "/runs/{run_id}/client-tools/{call_id}",
    responses=responses(400, 401, 403, 404, 409, 410, 413, 422, 503),
)
async def answer_call(
    app: Host,
    run_id: RunId,
    call_id: CallId,
    body: ClientToolAnswer,
    key: Key = None,
    *,
    session: Session = "",
) -> RunDetail:
    """Give a result or an error; the first answer counts, a second gets 409, a late one 410."""
    del key  # honoured before the route, for every POST
    answer = ToolAnswer(
        success=body.success,
        result=body.result,
        error=body.error,
        media=tuple(one.model_dump(by_alias=True, exclude_none=True) for one in body.media),
        client=fingerprint(session),
    )
    return run_detail(await app.answer_call(run_id, call_id, answer))
