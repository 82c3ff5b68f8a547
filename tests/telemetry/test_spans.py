"""Runs as traces: which spans there are, what they say, what they keep to themselves, and what is linked to what."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from ipaddress import ip_network
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes as theirs
from opentelemetry.semconv._incubating.metrics import gen_ai_metrics as measures
from opentelemetry.semconv.attributes import error_attributes
from opentelemetry.semconv.schemas import Schemas
from opentelemetry.trace import StatusCode

from loopagent import ActionError, Agent, App, action
from loopagent.egress import EgressPolicy
from loopagent.egress.client import Bounds, GuardedClient, opened
from loopagent.models.scripted import ScriptedModel
from loopagent.ports import Store
from loopagent.stores import MemoryStore
from loopagent.telemetry import Telemetry, names
from loopagent.tracecontext import trace_headers
from tests.fakes.web import Got, Reply, Web


pytestmark = pytest.mark.anyio
SEEN: list[dict[str, str]] = []
SECRET = "very-secret-value-1"


@action(effects="read")
async def look(item: str) -> str:
    """Look at an item."""
    SEEN.append(trace_headers())
    return f"seen {item}"


@action(effects="read")
async def broken() -> str:
    """Fail."""
    raise ActionError("no such thing as PRIVATE", code="not_found")


def _call(name: str, **params: Any) -> dict[str, Any]:
    return {"taskComplete": False, "nextStep": {"type": "Actions", "actions": [{"name": name, "params": params}]}}  # fmt: skip


def _sub(agent: str) -> dict[str, Any]:
    work = {"name": agent, "message": "PRIVATE work"}
    return {"taskComplete": False, "nextStep": {"type": "Sub-Agent", "subAgents": [work]}}


DONE = {"taskComplete": True, "message": "PRIVATE done."}
ASK = {"taskComplete": False, "nextStep": {"type": "Chat", "message": "PRIVATE which?"}}
LOOKED = [_call("look", item=f"PRIVATE {SECRET}"), _call("broken"), DONE]


class Recorder:
    """What was told, in memory."""

    def __init__(self, *, content: bool = False) -> None:
        self.spans = InMemorySpanExporter()
        tracers = TracerProvider()
        tracers.add_span_processor(SimpleSpanProcessor(self.spans))
        self.tracers = tracers
        self.reader = InMemoryMetricReader()
        self.telemetry = Telemetry(
            metrics=False,
            tracer_provider=tracers,
            meter_provider=MeterProvider([self.reader]),
            content=content,
        )

    def found(self, name: str) -> list[ReadableSpan]:
        return [one for one in self.spans.get_finished_spans() if one.name == name]

    def one(self, name: str) -> ReadableSpan:
        (span,) = self.found(name)
        return span

    def metrics(self) -> dict[str, list[Any]]:
        data = self.reader.get_metrics_data()
        return {
            metric.name: list(metric.data.data_points)
            for resource in (data.resource_metrics if data else ())
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }


@asynccontextmanager
async def recording(
    recorder: Recorder, *replies: dict[str, Any], store: Store | None = None, **more: Any
) -> AsyncIterator[App]:
    model = ScriptedModel(list(replies))
    helper = Agent("helper", model=ScriptedModel([DONE]))
    agent = Agent("clerk", model=model, actions=[look, broken], agents=[helper])
    env = {"SOME_API_KEY": SECRET}
    agents = [agent]
    async with App(
        agents=agents, store=store or MemoryStore(), telemetry=recorder.telemetry, env=env, **more
    ) as app:
        yield app


def _inside(inner: ReadableSpan, outer: ReadableSpan) -> bool:
    assert inner.parent is not None
    same = (inner.parent.span_id, inner.context.trace_id)
    return same == (outer.context.span_id, outer.context.trace_id)


async def test_the_spans_of_a_run() -> None:
    recorder = Recorder()
    SEEN.clear()
    async with recording(recorder, *LOOKED) as app:
        run = await app.start("clerk", "PRIVATE task", conversation="talk-1")
        await app.wait(run.id)
    root = recorder.one("invoke_agent clerk")
    assert root.parent is None
    assert dict(root.attributes or {}) == {
        names.OPERATION_NAME: "invoke_agent",
        names.AGENT_NAME: "clerk",
        names.CONVERSATION_ID: "talk-1",
        names.RUN_ID: run.id,
        names.ROOT_RUN_ID: run.id,
        names.RUN_STATUS: "completed",
    }
    turns = [recorder.one(f"turn {number}") for number in (1, 2, 3)]
    assert all(_inside(one, root) for one in turns)
    outcomes = [(one.attributes or {})[names.TURN_OUTCOME] for one in turns]
    assert outcomes == ["step", "step", "complete"]
    tool = recorder.one("execute_tool look")
    assert _inside(tool, turns[0])
    about = dict(tool.attributes or {})
    assert about[names.TOOL_NAME] == "look"
    assert about[names.TOOL_CALL_ID] == "1:action.0"
    (carried,) = SEEN
    place = f"00-{tool.context.trace_id:032x}-{tool.context.span_id:016x}-"
    assert carried["traceparent"].startswith(place)
    failed = recorder.one("execute_tool broken")
    assert failed.status.status_code is StatusCode.ERROR
    assert (failed.status.description, (failed.attributes or {})[names.ERROR_TYPE]) == (
        None,
        "not_found",
    )
    chats = [one for one in recorder.spans.get_finished_spans() if one.name.startswith("chat ")]
    assert len(chats) == 3
    assert [_inside(chat, turn) for chat, turn in zip(chats, turns, strict=True)] == [True] * 3
    asked = dict(chats[0].attributes or {})
    assert asked[names.OPERATION_NAME] == "chat"
    assert asked[names.RESPONSE_FINISH_REASONS] == ("stop",)
    assert names.USAGE_INPUT_TOKENS in asked


async def test_a_sub_agent_is_a_span_inside() -> None:
    recorder = Recorder()
    async with recording(recorder, _sub("helper"), DONE) as app:
        run = await app.start("clerk", "Go.")
        await app.wait(run.id)
    child, parent = recorder.one("invoke_agent helper"), recorder.found("turn 1")[-1]
    assert child.context.trace_id == recorder.one("invoke_agent clerk").context.trace_id
    assert any(_inside(child, one) for one in (*recorder.found("turn 1"), parent))
    assert (child.attributes or {})[names.ROOT_RUN_ID] == run.id


async def test_nothing_is_open_while_a_run_waits_and_a_resumed_one_links_back() -> None:
    store, first, second = MemoryStore(), Recorder(), Recorder()
    async with recording(first, ASK, store=store) as app:
        run = await app.start("clerk", "Go.")
        await app.wait(run.id)
        begun = first.one("invoke_agent clerk")  # ended, though the run has not
        assert [one.name for one in begun.events][-1] == names.WAITING
        assert first.one("turn 1").end_time is not None
        (request,) = (await app.requests())[0]
    async with recording(second, ASK, DONE, store=store) as app:
        await app.answer(
            request.id, decision="answer", values={"answer": "This."}, feedback="This."
        )
        await app.wait(run.id)
    resumed = second.found("invoke_agent clerk")[0]
    assert resumed.context.trace_id != begun.context.trace_id
    assert [one.context.span_id for one in resumed.links] == [begun.context.span_id]
    assert (resumed.attributes or {})[names.RUN_STATUS] == "completed"
    assert names.RESUMED in [one.name for one in resumed.events]


async def test_a_run_belongs_to_the_trace_of_its_caller() -> None:
    recorder = Recorder()
    async with recording(recorder, DONE) as app:
        with recorder.tracers.get_tracer("host").start_as_current_span("request"):
            run = await app.start("clerk", "Go.")
            await app.wait(run.id)
    assert _inside(recorder.one("invoke_agent clerk"), recorder.one("request"))


async def test_a_run_that_was_not_created_leaves_no_span_open() -> None:
    recorder = Recorder()
    async with recording(recorder, ASK) as app:
        await app.start("clerk", "Go.", conversation="c")
        with pytest.raises(Exception, match="conversation"):
            await app.start("clerk", "Go.", conversation="c")
        assert app.telemetry.tracing is not None
    assert len(recorder.found("invoke_agent clerk")) == 2


def _told(recorder: Recorder) -> str:
    spans = recorder.spans.get_finished_spans()
    said = [one.to_json() for one in spans]
    return "".join(said) + str(recorder.metrics())


async def test_no_content_and_no_secret_leaves_unless_asked_for() -> None:
    quiet, open_hearted = Recorder(), Recorder(content=True)
    for recorder in (quiet, open_hearted):
        async with recording(recorder, *LOOKED) as app:
            run = await app.start("clerk", f"PRIVATE task {SECRET}", payload={"x": "PRIVATE"})
            await app.wait(run.id)
        assert SECRET not in _told(recorder)
    assert "PRIVATE" not in _told(quiet)
    for name in names.CONTENT:
        assert name not in _told(quiet)
        assert name in _told(open_hearted)
    tool = open_hearted.one("execute_tool look").attributes or {}
    assert tool[names.TOOL_CALL_ARGUMENTS] == '{"item": "PRIVATE [redacted]"}'
    assert tool[names.TOOL_CALL_RESULT] == "seen PRIVATE [redacted]"


async def test_metrics_for_a_meter() -> None:
    recorder = Recorder()
    async with recording(recorder, *LOOKED) as app:
        run = await app.start("clerk", "Go.")
        await app.wait(run.id)
    found = recorder.metrics()
    turns = {one.attributes[names.TURN_OUTCOME]: one.value for one in found[names.TURNS]}
    assert turns == {"step": 2, "complete": 1}
    (ended,) = found[names.RUNS_ENDED]
    assert dict(ended.attributes) == {names.AGENT_NAME: "clerk", names.RUN_STATUS: "completed"}
    assert sum(one.count for one in found[names.CLIENT_OPERATION_DURATION]) == 3
    kinds = {one.attributes[names.TOKEN_TYPE] for one in found[names.CLIENT_TOKEN_USAGE]}
    assert kinds == {"input", "output"}
    effects = {(one.attributes[names.EFFECT_KIND], one.attributes[names.OUTCOME]): one.value for one in found[names.EFFECTS]}  # fmt: skip
    assert effects[("run_action", "ok")] == 1
    assert effects[("run_action", "failed")] == 1


async def test_a_failed_model_call() -> None:
    recorder = Recorder()
    reply = {"error": {"status": 401, "message": "PRIVATE key"}}
    async with recording(recorder, reply) as app:
        run = await app.start("clerk", "Go.")
        await app.wait(run.id)
    chat = next(one for one in recorder.spans.get_finished_spans() if one.name.startswith("chat "))
    assert (chat.attributes or {})[names.ERROR_TYPE] == "auth"
    assert chat.status.description is None
    root = recorder.one("invoke_agent clerk")
    assert (root.status.status_code, (root.attributes or {})[names.ERROR_TYPE]) == (
        StatusCode.ERROR,
        "model",
    )
    (ended,) = recorder.metrics()[names.RUNS_ENDED]
    assert ended.attributes[names.ERROR_TYPE] == "model"
    assert "PRIVATE" not in _told(recorder)


async def test_calls_over_http_carry_the_trace_on() -> None:
    got: list[Got] = []

    def answer(request: Got) -> Reply:
        got.append(request)
        return Reply(body=b"")

    tracer = TracerProvider().get_tracer("host")
    with Web(answer) as web:
        policy = EgressPolicy(("127.0.0.1",), (web.port,), (ip_network("127.0.0.0/8"),))
        bounds = Bounds(connect_seconds=10, total_seconds=20, max_bytes=1_000)
        url = f"http://127.0.0.1:{web.port}/"
        async with opened(GuardedClient(policy)) as client:
            await client.fetch("GET", url, bounds=bounds)
            with tracer.start_as_current_span("outside") as span:
                await client.fetch("GET", url, bounds=bounds)
                own = [("traceparent", "own")]
                await client.fetch("GET", url, headers=own, bounds=bounds)
    place = span.get_span_context()
    sent = [one.headers.get("traceparent", "") for one in got]
    assert sent[0::2] == ["", "own"]
    assert sent[1].startswith(f"00-{place.trace_id:032x}-{place.span_id:016x}-0")


async def test_a_host_that_set_nothing_up_is_told_nothing() -> None:
    async with App(agents=[Agent("clerk", model=ScriptedModel([DONE]))], env={}) as app:
        assert isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)
        assert not app.telemetry.watches
        assert app.bus.taps == []
        run = await app.start("clerk", "Go.")
        view = await app.wait(run.id)
        assert view.state.trace == ""


def test_the_names_are_those_of_the_conventions() -> None:
    ours = {
        one for one in vars(names).values() if isinstance(one, str) and one.startswith("gen_ai.")
    }
    known = {
        one
        for module in (theirs, measures)
        for one in vars(module).values()
        if isinstance(one, str)
    }
    assert ours - known == set()
    assert error_attributes.ERROR_TYPE == names.ERROR_TYPE
    assert Schemas.V1_44_0.value == names.SCHEMA_URL
    operations = {one.value for one in theirs.GenAiOperationNameValues}
    assert {names.CHAT, names.INVOKE_AGENT, names.EXECUTE_TOOL} <= operations
