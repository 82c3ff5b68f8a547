"""The agents: what each is and may do, the exact prompt it gets, and a run of it from here."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from loopagent import resources
from loopagent.agent import Agent
from loopagent.core.prompt import system_parts
from loopagent.errors import RequestError
from loopagent.runtime.course import course_of
from loopagent.web.posts import Fields, fields_of, one
from loopagent.web.run_view import notes_of
from loopagent.web.shared import app_of, caller_of, pages_of, tenant_of


if TYPE_CHECKING:
    from loopagent.testing.expectations import Played

MAX_REPLIES = 200

router = APIRouter(include_in_schema=False)


@router.get("/agents")
async def list_agents(request: Request) -> Response:
    """All agents that may be run."""
    agents = [agent for _, agent in sorted(app_of(request).agents.items())]
    return pages_of(request).page(request, "agents.html", {"agents": agents})


@router.get("/agents/{name}")
async def show_agent(request: Request, name: str) -> Response:
    """One agent, with a form to start it."""
    return await _agent_page(request, _agent(request, name))


def _agent(request: Request, name: str) -> Agent[Any]:
    agent = app_of(request).agents.get(name)
    if agent is None:
        raise RequestError("unknown_agent", f"There is no agent {name!r}.", status=404)
    return agent


async def _agent_page(
    request: Request,
    agent: Agent[Any],
    sent: Fields | None = None,
    error: RequestError | None = None,
    tried: dict[str, Any] | None = None,
) -> Response:
    library = app_of(request).library
    spec = await library.definitions.granted(agent.spec, tenant_of(request))
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
        "replies": one(sent or {}, "replies"),
        "results": one(sent or {}, "results"),
        "approve": one(sent or {}, "approve") == "yes",
        "tried": tried,
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
            payload=_json(one(sent, "payload"), "The payload is"),
            plan_mode=True if one(sent, "planMode") == "yes" else None,
            user=user,
            tenant=tenant,
            by=who.by,
        )
    except RequestError as error:
        return await _agent_page(request, agent, sent, error)
    return RedirectResponse(f"/runs/{view.id}", 303)


@router.post("/agents/{name}/dry-run")
async def try_agent(request: Request, name: str) -> Response:
    """Play a run on pasted replies and show what comes of it; nothing is kept."""
    from loopagent.testing.dry_run import dry_run, replies_in  # noqa: PLC0415 - seldom asked for

    agent, sent = _agent(request, name), await fields_of(request)
    try:
        replies = replies_in(one(sent, "replies"))
        if not replies or len(replies) > MAX_REPLIES:
            text = f"Give 1 to {MAX_REPLIES} replies to play."
            raise RequestError("no_replies", text, status=422)  # noqa: TRY301
        results = _json(one(sent, "results"), "The results are") or {}
        if not isinstance(results, dict):
            text = "The results are no JSON object."
            raise RequestError("bad_json", text, status=422)  # noqa: TRY301
        played, problems = await asyncio.to_thread(
            dry_run,
            app_of(request).agents,
            name,
            message=one(sent, "message"),
            payload=_json(one(sent, "payload"), "The payload is"),
            plan_mode=True if one(sent, "planMode") == "yes" else None,
            replies=replies,
            results=results,
            approve=one(sent, "approve") == "yes",
        )
    except RequestError as error:
        return await _agent_page(request, agent, sent, error)
    return await _agent_page(request, agent, sent, tried=_tried(played, problems))


def _tried(played: Played | None, problems: list[str]) -> dict[str, Any]:
    if played is None:
        return {"status": "refused", "problems": problems}
    turns = course_of(played.events, str(played.run["id"])).turns
    return {
        "status": played.status,
        "problems": problems,
        "run": played.run,
        "turns": turns,
        "notes": {turn.number: notes_of(turn) for turn in turns},
    }


def _json(text: str, what: str) -> Any:
    if not text.strip():
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        message = f"{what} not JSON: {error}."
        raise RequestError("bad_json", message, status=422) from error
