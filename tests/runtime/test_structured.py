"""Replies held to a JSON Schema, whole runs against a server that plays the provider."""

from __future__ import annotations

import json
from typing import Any

import pytest

from loopagent import Agent, App, ConfigError, action
from loopagent.core.agent_spec import AgentSpec
from loopagent.core.dialects import Dialect
from loopagent.core.reply_schema import reply_schema
from loopagent.models.anthropic import AnthropicModel
from loopagent.models.openai import OpenAIModel
from loopagent.ports import SchemaSupport
from loopagent.project import load_project
from loopagent.runtime.attempts import RetryPolicy
from loopagent.runtime.structured import REFUSED, structured_mode
from tests.decoding import accepts, text_of
from tests.fakes.provider import FakeProvider


pytestmark = pytest.mark.anyio
Json = dict[str, Any]


@action(effects="read")
async def search(query: str, limit: int = 5, fields: dict[str, Any] | None = None) -> list[str]:
    """Search points of interest."""
    return [f"{query} {number} {sorted(fields or {})}" for number in range(limit)]


@action(effects="irreversible", approval="never")
async def wipe() -> None:
    """Forget everything."""


STEP: Json = {
    "reasoning": "look first",
    "taskComplete": False,
    "nextStep": {
        "type": "Actions",
        "actions": [
            {"name": "search", "params": {"query": "Porto", "limit": 2, "fields": {"a": 1}}}
        ],
    },
}
DONE: Json = {
    "reasoning": "enough",
    "taskComplete": True,
    "message": "Two stops.",
    "payloadChangeRequest": {"newElements": {"city": "Porto", "stops": [1, None]}},
}
WIRES: list[tuple[Dialect, str]] = [
    ("openai", "openai:script"),
    ("anthropic", "anthropic:script"),
    ("grammar", "URL#script"),
]


def app_for(provider: FakeProvider, model: str, **more: Any) -> tuple[App, Agent[Any]]:
    agent = Agent("planner", model=model.replace("URL", provider.url), actions=[search, wipe])
    env = {
        "OPENAI_API_KEY": "k",
        "OPENAI_BASE_URL": provider.url,
        "ANTHROPIC_API_KEY": "k",
        "ANTHROPIC_BASE_URL": provider.root,
    }
    retry = RetryPolicy(max_tries=1)
    return App(agents=[agent], env=env | more.pop("env", {}), retry=retry, **more), agent


def sent_schema(body: Json) -> Json | None:
    if "output_config" in body:
        return dict(body["output_config"]["format"]["schema"])
    wanted = body.get("response_format") or {}
    return dict(wanted["json_schema"]["schema"]) if wanted.get("type") == "json_schema" else None


def written(reply: Json, dialect: Dialect, spec: AgentSpec) -> str:
    """The reply as the schema wants it; the wire wraps a schema that has no object at its root."""
    text = text_of(reply, dialect, reply_schema(spec, dialect))
    return json.dumps({"turn": json.loads(text)}) if dialect == "grammar" else text


async def run(app: App) -> tuple[str, list[Json]]:
    view = await app.start("planner", "A day in Porto")
    view = await app.wait(view.id, timeout_seconds=20)
    return view.state.status, [one async for one in app.events(view.id, live=False)]


@pytest.mark.parametrize(("dialect", "model"), WIRES)
async def test_a_run_whose_replies_are_held_to_the_schema(dialect: Dialect, model: str) -> None:
    with FakeProvider() as provider:
        app, agent = app_for(provider, model, structured="on")
        texts = [written(one, dialect, agent.spec) for one in (STEP, DONE)]
        provider.say(*texts)
        async with app:
            status, events = await run(app)
        schemas = [sent_schema(one) for one in provider.bodies("script")]
    assert status == "completed"
    assert schemas[0] is not None
    assert json.dumps(schemas[0]) == json.dumps(schemas[1])  # the prompt cache goes by its bytes
    for text in texts:
        assert accepts(schemas[0], text), text
    received = [one["data"] for one in events if one["type"] == "reply.received"]
    assert [one["warnings"] for one in received] == [[], []]
    calls = [one["data"] for one in events if one["type"] == "action.completed"]
    assert calls[0]["result"] == ["Porto 0 ['a']", "Porto 1 ['a']"]
    assert not [one for one in events if one["type"] == "model.retry"]


async def test_the_same_text_is_tolerated_with_a_warning_when_no_schema_was_sent() -> None:
    with FakeProvider() as provider:
        app, agent = app_for(provider, "URL#script")
        provider.say(*(written(one, "openai", agent.spec) for one in (STEP, DONE)))
        async with app:
            status, events = await run(app)
        bodies = provider.bodies("script")
    assert status == "completed"
    assert [one["response_format"] for one in bodies] == [{"type": "json_object"}] * 2
    received = [one["data"] for one in events if one["type"] == "reply.received"]
    assert all(one["warnings"] for one in received)


def test_the_schema_holds_what_the_agent_may_use() -> None:
    spec = Agent("planner", model="openai:x", actions=[search, wipe]).spec
    text = json.dumps(reply_schema(spec, "grammar"))
    assert '"search"' in text
    assert '"wipe"' not in text
    assert "responseForm" in text
    assert "memoryWrites" not in text
    alone = spec.model_copy(update={"autonomy": "autonomous"})
    text = json.dumps(reply_schema(alone, "grammar"))
    assert '"Chat"' not in text
    assert "responseForm" not in text


@pytest.mark.parametrize(("dialect", "model"), WIRES)
async def test_a_provider_that_refuses_the_schema_is_asked_without_it_from_then_on(
    dialect: Dialect, model: str, caplog: pytest.LogCaptureFixture
) -> None:
    del dialect
    with FakeProvider() as provider:
        app, agent = app_for(provider, model, structured="on")
        provider.say(400, STEP, DONE, DONE)
        async with app:
            status, events = await run(app)
            again, _ = await run(app)
        schemas = [sent_schema(one) is not None for one in provider.bodies("script")]
    assert (status, again) == ("completed", "completed")
    assert schemas == [True, False, False, False]
    (notice,) = [one["data"] for one in events if one["type"] == "model.retry"]
    assert notice["kind"] == REFUSED
    assert notice["nextModel"] == agent.spec.model
    assert "without a JSON Schema" in notice["message"]
    assert "schema.refused" in caplog.text


async def test_a_request_that_is_bad_without_a_schema_too_says_nothing_about_schemas() -> None:
    with FakeProvider() as provider:
        app, _ = app_for(provider, "URL#script", structured="on")
        provider.say(400, 400, DONE)
        async with app:
            status, events = await run(app)
            again, _ = await run(app)
        schemas = [sent_schema(one) is not None for one in provider.bodies("script")]
    assert (status, again) == ("failed", "completed")
    assert schemas == [True, False, True]
    assert "bad_request" in events[-1]["data"]["message"]


async def test_any_other_failure_is_not_asked_again_without_the_schema() -> None:
    with FakeProvider() as provider:
        app, _ = app_for(provider, "URL#script", structured="on")
        provider.say(401)
        async with app:
            status, _ = await run(app)
        assert len(provider.bodies("script")) == 1
    assert status == "failed"


@pytest.mark.parametrize(
    ("more", "held"),
    [
        ({"structured": "off", "env": {"LOOPAGENT_MODEL_JSON_MODE": "schema"}}, False),
        ({"env": {"LOOPAGENT_MODEL_JSON_MODE": "schema"}}, True),
        ({"env": {"LOOPAGENT_STRUCTURED": "on"}}, True),
        ({"structured": "on", "env": {"LOOPAGENT_MODEL_JSON_MODE": "object"}}, False),
        ({}, False),
    ],
)
async def test_when_a_schema_is_sent(more: Json, held: bool) -> None:
    with FakeProvider() as provider:
        app, _ = app_for(provider, "URL#script", **more)
        provider.say(DONE)
        async with app:
            await run(app)
        assert (sent_schema(provider.bodies("script")[0]) is not None) is held


async def test_what_the_adapters_say_they_take() -> None:
    url = "http://127.0.0.1:1/v1"
    known: list[tuple[Any, SchemaSupport | None]] = [
        (OpenAIModel("a:b", "b"), SchemaSupport("openai")),
        (OpenAIModel("a:b", "b", url), SchemaSupport("grammar", sure=False)),
        (OpenAIModel("a:b", "b", url, dialect="openai"), SchemaSupport("openai", sure=False)),
        (OpenAIModel("a:b", "b", url, json_mode="schema"), SchemaSupport("grammar")),
        (OpenAIModel("a:b", "b", json_mode="off"), None),
        (AnthropicModel("a:b", "b", "k"), SchemaSupport("anthropic")),
        (AnthropicModel("a:b", "b", "k", url), SchemaSupport("anthropic", sure=False)),
    ]
    for model, wanted in known:
        assert model.schema_support == wanted
        await model.aclose()


def test_the_mode_is_a_setting(tmp_path: Any) -> None:
    (tmp_path / "loopagent.toml").write_text('structured = "off"\n')
    assert load_project(tmp_path, env={}).settings.structured == "off"
    assert load_project(tmp_path, env={"LOOPAGENT_STRUCTURED": "on"}).settings.structured == "on"
    (tmp_path / "loopagent.toml").write_text('structured = "maybe"\n')
    with pytest.raises(ConfigError) as raised:
        load_project(tmp_path, env={})
    assert "structured" in str(raised.value.problems[0])
    assert structured_mode({"LOOPAGENT_STRUCTURED": " ON "}) == "on"
    with pytest.raises(ConfigError, match="one of auto, on, off"):
        structured_mode({"LOOPAGENT_STRUCTURED": "maybe"})
