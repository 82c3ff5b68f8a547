"""The library as its documentation shows it."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest
from pydantic import BaseModel
from starlette.applications import Starlette
from starlette.routing import Mount

import loopagent
from loopagent import Agent, App, ConfigError, RequestError, action
from loopagent.models.scripted import ScriptedModel
from tests.fakes.provider import FakeProvider


class Trip(BaseModel):
    city: str | None = None
    stops: list[str] = []


@action(effects="read")
async def search(query: str, limit: int = 5) -> list[str]:
    """Search points of interest."""
    return [f"{query} {number}" for number in range(1, limit + 1)]


CALL = {
    "type": "Actions",
    "actions": [{"name": "search", "params": {"query": "Porto", "limit": 2}}],
}
SCRIPT: list[Any] = [
    {"taskComplete": False, "nextStep": CALL},
    {
        "taskComplete": True,
        "message": "Two stops.",
        "payloadChangeRequest": {"updateElements": {"city": "Porto", "stops": ["Porto 1"]}},
    },
]


def test_the_public_names() -> None:
    assert loopagent.__all__ == [
        "ActionContext",
        "ActionError",
        "ActionRetry",
        "Agent",
        "App",
        "Ask",
        "Asking",
        "Attachment",
        "Button",
        "ClientToolSpec",
        "ConfigError",
        "HookAnswer",
        "HookCall",
        "LoopAgentError",
        "LoopFold",
        "LoopState",
        "RequestError",
        "Result",
        "ToolAnswer",
        "TriggerSpec",
        "action",
        "add_context",
        "after_action",
        "after_run",
        "before_action",
        "before_run",
        "before_turn",
        "change_params",
        "deny",
        "loop_state",
        "replace_result",
        "stop",
    ]


def test_run_sync_gives_a_typed_result() -> None:
    planner = Agent("planner", model=ScriptedModel(SCRIPT), payload=Trip, actions=[search])
    result = planner.run_sync("A day in Porto")
    assert (result.status, result.message) == ("completed", "Two stops.")
    assert result.payload == Trip(city="Porto", stops=["Porto 1"])


@pytest.mark.anyio
async def test_run_sync_refuses_inside_a_loop() -> None:
    with pytest.raises(RuntimeError, match=r"await agent\.run"):
        Agent("planner", model=ScriptedModel(SCRIPT)).run_sync("x")


@pytest.mark.anyio
async def test_events_of_a_stream_and_of_an_app(tmp_path: Any) -> None:
    planner = Agent("planner", model=ScriptedModel(SCRIPT), payload=Trip, actions=[search])
    streamed = [event["type"] async for event in planner.stream("A day in Porto")]
    assert "run.completed" in streamed
    async with App(agents=[planner], store=f"sqlite:///{tmp_path}/runs.db") as app:
        run = await app.start("planner", "A day in Porto", payload={"city": "Lisbon"})
        types = [event["type"] async for event in app.events(run.id) if "seq" in event]
        assert types[-1] == "run.completed"
        with pytest.raises(RequestError, match="fit the agent's schema"):
            await app.start("planner", "A day in Porto", payload={"stops": 5})


@pytest.mark.anyio
async def test_a_whole_agent_against_a_real_server_that_plays_the_provider() -> None:
    with FakeProvider() as provider:
        provider.say(429, SCRIPT[0], "no JSON at all", SCRIPT[1])
        agent = Agent("planner", model=f"{provider.url}#script", payload=Trip, actions=[search])
        result = await agent.run("A day in Porto")
        assert (result.status, result.payload.city) == ("completed", "Porto")
        assert result.usage["modelCalls"] == 3


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"limits": {"maxTurn": 1}}, "agent 'x': limits.maxTurn: unknown key"),
        (
            {"limits": {"maxTurns": 0}},
            "agent 'x': limits.maxTurns: expected a number of at least 1",
        ),
        ({"actions": [search, len]}, "actions[1]: len is no action; decorate the function with"),
    ],
)
def test_a_definition_that_cannot_work_is_refused_in_one_line(
    options: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        Agent("x", **options)
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["", "Clerk", "a clerk", "a--b", "-a", "a.b", "../a", "x" * 101])
def test_an_agent_is_called_as_its_documentation_says(name: str) -> None:
    with pytest.raises(ConfigError, match="lower case letters"):
        Agent(name)


def test_an_agent_cannot_give_itself_work() -> None:
    with pytest.raises(ConfigError, match="cannot give itself work"):
        Agent("lead", agents=[Agent("lead")])
    lead = Agent("lead")
    with pytest.raises(ConfigError, match="cannot give itself work"):
        lead.employ([lead.sub()])


@pytest.mark.anyio
async def test_an_app_is_mounted_in_another_application_that_opens_it() -> None:
    agents = [Agent("planner", model=ScriptedModel(list(SCRIPT)), actions=[search])]
    async with App(agents=agents, env={"LOOPAGENT_API_TOKEN": "a-long-token"}) as app:
        outer = Starlette(routes=[Mount("/", app.asgi)])
        transport = httpx2.ASGITransport(app=outer)
        async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
            assert (await client.get("/api/v1/agents")).status_code == 401
            client.headers["authorization"] = "Bearer a-long-token"
            body = {"agent": "planner", "message": "A day in Porto"}
            made = await client.post("/api/v1/runs?wait=60", json=body)
            assert made.json()["status"] == "completed"
            assert "planner" in (await client.get("/agents")).text
    assert app.asgi is app.asgi


@pytest.mark.anyio
async def test_a_server_that_tells_of_its_start_opens_and_closes_the_app() -> None:
    app = App(agents=[Agent("planner", model=ScriptedModel(list(SCRIPT)))])
    heard: list[str] = []
    told = iter(["lifespan.startup", "lifespan.shutdown"])

    async def receive() -> dict[str, str]:
        heard.append(f"opened: {app.opened}")
        return {"type": next(told)}

    async def send(message: dict[str, str]) -> None:
        heard.append(message["type"])

    await app.asgi({"type": "lifespan", "asgi": {"version": "3.0"}, "state": {}}, receive, send)
    assert heard == [
        "opened: False",
        "lifespan.startup.complete",
        "opened: True",
        "lifespan.shutdown.complete",
    ]
    assert (app.opened, app.closing) == (False, True)
