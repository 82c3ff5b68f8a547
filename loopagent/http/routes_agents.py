"""Agents, and whether the process is well."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Literal, cast

from fastapi import APIRouter, Path
from pydantic import Field, JsonValue

from loopagent.agent import Agent
from loopagent.app import App
from loopagent.errors import RequestError
from loopagent.http.body import Body, View
from loopagent.http.models import AgentDetail, AgentList, AgentSummary, SkillSummary
from loopagent.http.problems import responses
from loopagent.http.routes_runs import Host, Key


router = APIRouter(tags=["agents"])
health = APIRouter(tags=["health"])
AgentName = Annotated[str, Path(max_length=200)]


class Health(View):
    """Whether the process can work."""

    status: Literal["ok", "closing"]


@router.get("/agents", responses=responses(401, 503))
async def list_agents(app: Host) -> AgentList:
    """List the agents that may be run."""
    return AgentList(agents=[_summary(app, one) for _, one in sorted(app.agents.items())])


@router.get("/agents/{name}", responses=responses(401, 404, 422, 503))
async def show_agent(app: Host, name: AgentName) -> AgentDetail:
    """Look at an agent: input and payload schemas, actions, limits."""
    agent = app.agents.get(name)
    if agent is None:
        raise RequestError("unknown_agent", f"There is no agent {name!r}.", status=404)
    spec = agent.spec
    return AgentDetail(
        **_summary(app, agent).model_dump(by_alias=False),
        input_schema=spec.parameters,
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


class NewDryRun(Body):
    """An agent to try out on replies that somebody wrote."""

    message: str = Field(min_length=1, max_length=100_000)
    """The task."""
    payload: JsonValue = None
    """Working data to start with; null takes the agent's."""
    plan_mode: bool | None = None
    """Whether a person must approve a plan first; null: as the agent says."""
    replies: list[str] = Field(min_length=1, max_length=200)
    """What the model says, in order: each the text of a reply."""
    results: dict[str, JsonValue] = Field(default={}, max_length=200)
    """What actions bring, by their names; calls of others bring a stand-in."""
    approve: bool = False
    """Say yes to whatever a person is asked."""


class DryRun(View):
    """What came of it."""

    status: Literal["running", "completed", "failed", "cancelled", "waiting", "refused"]
    """As of a run; `waiting` for a person, `refused` when it could not begin."""
    problems: list[str]
    """What could not be."""
    run: dict[str, Any] | None
    """The run at its end, as it would be read."""
    events: list[dict[str, Any]]


@router.post("/agents/{name}/dry-run", responses=responses(400, 401, 404, 413, 415, 422, 503))
async def try_agent(app: Host, name: AgentName, body: NewDryRun, key: Key = None) -> DryRun:
    """Try an agent out: no model is asked, no action runs, nothing is kept."""
    del key  # honoured before the route, for every POST
    from loopagent.testing.dry_run import dry_run  # noqa: PLC0415 - few servers are asked for it

    if name not in app.agents:
        raise RequestError("unknown_agent", f"There is no agent {name!r}.", status=404)
    asked = body.model_dump(by_alias=False)
    played, problems = await asyncio.to_thread(dry_run, app.agents, name, **asked)
    if played is None:
        return DryRun(status="refused", problems=problems, run=None, events=[])
    status = cast("Any", played.status)
    return DryRun(status=status, problems=problems, run=played.run, events=played.events)


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
