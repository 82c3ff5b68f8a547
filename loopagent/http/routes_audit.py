"""Who decided what: requests that people, policies and clients settled, the latest first."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from loopagent.audit_port import Wanted
from loopagent.http.access import Who
from loopagent.http.body import View
from loopagent.http.models import RequestDetail, listed
from loopagent.http.problems import responses
from loopagent.http.routes_runs import Host


Word = Annotated[str | None, Query(max_length=200)]
router = APIRouter(tags=["requests"])


class AuditPage(View):
    """A page of decisions; `resolution` of each says who, what and why, `resolvedAt` when."""

    decisions: list[RequestDetail]
    next_cursor: str | None = None


@router.get("/audit", responses=responses(400, 401, 422, 503))
async def list_decisions(
    app: Host,
    who: Who,
    *,
    by: Annotated[str | None, Query(max_length=200, description="A part of who decided.")] = None,
    kind: Word = None,
    decision: Word = None,
    agent: Word = None,
    run_id: Annotated[str | None, Query(alias="runId", max_length=200)] = None,
    cursor: Annotated[str | None, Query(max_length=500)] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> AuditPage:
    """List who decided what, the latest decision first."""
    wanted = Wanted(by or None, kind, decision, agent, run_id, who.tenant)
    rows, following = await app.store.decided(wanted, cursor=cursor, limit=limit)
    return AuditPage(
        decisions=[RequestDetail(**listed(one)) for one in rows], next_cursor=following
    )
