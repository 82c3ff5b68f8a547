"""Approvals that a person gave in advance: which hold in a run, and asking again."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import JsonValue

from loopagent.core.plan_reads import holding
from loopagent.http.access import Who
from loopagent.http.body import View
from loopagent.http.models import RunDetail
from loopagent.http.problems import responses
from loopagent.http.routes_runs import Host, RunId, run_detail


ApprovalId = Annotated[str, Path(max_length=300, description="Id of the approval.")]
router = APIRouter(tags=["requests"])


class Approval(View):
    """The very same call needs no approval any more, or under a plan no call of an action that reads."""

    id: str
    agent: str
    action: str
    params: dict[str, JsonValue]
    scope: str
    """`run`, or `session`: in the conversation of the run as well."""
    by: str
    """Who said so."""
    at: float
    """When, in seconds since the epoch."""
    plan: int | None
    """For all calls of the action, whatever their parameters, while this revision of the plan is the approved one."""


class Approvals(View):
    """The approvals that hold in a run."""

    approvals: list[Approval]


@router.get("/runs/{run_id}/approvals", responses=responses(401, 404, 422, 503))
async def list_approvals(app: Host, run_id: RunId) -> Approvals:
    """List the calls that need no approval in a run any more, in the order they were approved."""
    state = (await app.get(run_id)).state
    return Approvals(approvals=[Approval(**one.public()) for one in holding(state)])


@router.delete(
    "/runs/{run_id}/approvals/{approval_id}", responses=responses(401, 403, 404, 409, 422, 503)
)
async def revoke_approval(app: Host, who: Who, run_id: RunId, approval_id: ApprovalId) -> RunDetail:
    """Ask again about such a call; one that holds in a conversation is forgotten in all of its runs."""
    return run_detail(await app.revoke_approval(run_id, approval_id, by=who.by))
