"""Agents, and whether the process is well."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path

from loopagent.agent import Agent
from loopagent.app import App
from loopagent.errors import RequestError
from loopagent.http.body import View
from loopagent.http.models import AgentDetail, AgentList, AgentSummary, SkillSummary
from loopagent.http.problems import responses
from loopagent.http.routes_runs import Host


router = APIRouter(tags=["agents"])
health = APIRouter(tags=["health"])


class Health(View):
    """Whether the process can work."""

    status: Literal["ok", "closing"]


@router.get("/agents", responses=responses(401, 503))
async def list_agents(app: Host) -> AgentList:
    """List the agents that may be run."""
    return AgentList(agents=[_summary(app, one) for _, one in sorted(app.agents.items())])


@router.get("/agents/{name}", responses=responses(401, 404, 422, 503))
async def show_agent(app: Host, name: Annotated[str, Path(max_length=200)]) -> AgentDetail:
    """Look at an agent: payload schema, actions, limits."""
    agent = app.agents.get(name)
    if agent is None:
        raise RequestError("unknown_agent", f"There is no agent {name!r}.", status=404)
    spec = agent.spec
    return AgentDetail(
        **_summary(app, agent).model_dump(by_alias=False),
        payload_schema=spec.payload.schema_,
        actions=[one.model_dump(mode="json", by_alias=True) for one in spec.actions],
        client_tools=[one.model_dump(mode="json", by_alias=True) for one in spec.client_tools],
        skills=[
            SkillSummary(
                name=one.name,
                description=one.description,
                by_model=spec.skills.refusal(one, by_model=True) is None,
            )
            for one in spec.skills.usable
        ],
        limits=spec.limits.model_dump(mode="json", by_alias=True),
        autonomy=spec.autonomy,
    )


@health.get("/healthz")
async def alive() -> Health:
    """Whether the process runs."""
    return Health(status="ok")


@health.get("/readyz", responses=responses(503))
async def ready(app: Host) -> Health:
    """Whether the process can take work: the store answers and it is not shutting down."""
    await app.store.runs(limit=1)
    if app.closing:
        raise RequestError(
            "shutting_down", "The server is shutting down.", status=503, retryable=True
        )
    return Health(status="ok")


def _summary(app: App, agent: Agent[Any]) -> AgentSummary:
    model = app.model_of(agent)
    return AgentSummary(name=agent.name, description=agent.spec.description, model=model)
