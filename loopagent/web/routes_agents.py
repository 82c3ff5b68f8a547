"""The agents: what each is and may do, the exact prompt it gets, and a run of it from here."""

from __future__ import annotations

import json
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from loopagent import resources
from loopagent.agent import Agent
from loopagent.core.prompt import system_parts
from loopagent.errors import RequestError
from loopagent.web.posts import Fields, fields_of, one
from loopagent.web.shared import app_of, caller_of, pages_of


router = APIRouter(include_in_schema=False)


@router.get("/agents")
async def list_agents(request: Request) -> Response:
    """All agents that may be run."""
    agents = [agent for _, agent in sorted(app_of(request).agents.items())]
    return pages_of(request).page(request, "agents.html", {"agents": agents})


@router.get("/agents/{name}")
async def show_agent(request: Request, name: str) -> Response:
    """One agent, with a form to start it."""
    return _agent_page(request, _agent(request, name))


def _agent(request: Request, name: str) -> Agent[Any]:
    agent = app_of(request).agents.get(name)
    if agent is None:
        raise RequestError("unknown_agent", f"There is no agent {name!r}.", status=404)
    return agent


def _agent_page(
    request: Request,
    agent: Agent[Any],
    sent: Fields | None = None,
    error: RequestError | None = None,
) -> Response:
    spec = agent.spec
    context = {
        "agent": agent,
        "spec": spec,
        "parts": system_parts(resources.prompt("system.md.j2"), spec),
        "initial": spec.payload.initial if spec.payload.initial is not None else {},
        "limits": spec.limits.model_dump(mode="json", by_alias=True, exclude_none=True),
        "message": one(sent or {}, "message"),
        "payload": one(sent or {}, "payload"),
        "planning": one(sent or {}, "planMode") == "yes" or spec.plan_mode == "required",
        "error": error,
    }
    return pages_of(request).page(
        request, "agent.html", context, status=200 if error is None else error.status
    )


@router.post("/agents/{name}")
async def start_run(request: Request, name: str) -> Response:
    """Start a run and go to its page."""
    agent, sent = _agent(request, name), await fields_of(request)
    who = caller_of(request)
    user, tenant = who.whose("", "")
    try:
        view = await app_of(request).start(
            name,
            one(sent, "message"),
            payload=_payload(one(sent, "payload")),
            plan_mode=True if one(sent, "planMode") == "yes" else None,
            user=user,
            tenant=tenant,
            by=who.by,
        )
    except RequestError as error:
        return _agent_page(request, agent, sent, error)
    return RedirectResponse(f"/runs/{view.id}", 303)


def _payload(text: str) -> Any:
    if not text.strip():
        return None
    try:
        return json.loads(text)
    except ValueError as error:
        message = f"The payload is not JSON: {error}."
        raise RequestError("bad_json", message, status=422) from error
