"""Chat completions against a real server: what goes over the wire, and what each fault becomes."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopagent.errors import ConfigError, ModelError
from loopagent.models.http import HttpSettings, SseReader
from loopagent.models.openai import ChatCollector, OpenAIModel, object_rooted, usage_of
from loopagent.ports import ChatMessage, ModelReply, ModelRequest
from tests.fakes.provider import FakeProvider
from tests.fakes.wire import REPLY, Said


pytestmark = pytest.mark.anyio
KEY = "plain-secret-42"
FAST = HttpSettings(idle_seconds=0.4, first_token_seconds=0.6, wait_seconds=0.4, drain_seconds=0.2)
REQUEST = ModelRequest(
    system="Answer in JSON.",
    messages=[ChatMessage("user", "Ahoj"), ChatMessage("user", "state")],
    cache_key="run-1",
)
both = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])


async def ask(
    provider: FakeProvider,
    scenario: str,
    *,
    stream: bool,
    request: ModelRequest = REQUEST,
    raw: bool = False,
    **options: Any,
) -> tuple[ModelReply, list[str]]:
    """One attempt, and the pieces that the listener got."""
    options = {"api_key": KEY, "settings": FAST, **options}
    url = provider.raw_url if raw else provider.url
    model = OpenAIModel(f"test:{scenario}", scenario, url, **options)
    pieces: list[str] = []
    try:
        reply = await model.generate(request, on_delta=pieces.append if stream else None)
    finally:
        await model.aclose()
    return reply, pieces


async def fail(provider: FakeProvider, scenario: str, *, stream: bool, **more: Any) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await ask(provider, scenario, stream=stream, **more)
    assert KEY not in str(caught.value)
    return caught.value


@both
async def test_a_reply(provider: FakeProvider, *, stream: bool) -> None:
    reply, pieces = await ask(provider, "ok", stream=stream)
    assert (reply.text, reply.finish, reply.model) == (REPLY, "stop", "ok")
    assert "".join(pieces) == (REPLY if stream else "")
    assert len(pieces) == (len(Said().pieces) if stream else 0)
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (120, 30)
    assert reply.request_id == "req-7"
    assert reply.total_ms > 0
    assert (reply.first_token_ms is not None) == stream


@both
async def test_what_is_sent(provider: FakeProvider, *, stream: bool) -> None:
    request = replace(REQUEST, max_output_tokens=500, temperature=0.5)
    await ask(provider, "ok", stream=stream, request=request)
    streaming = {"stream": True, "stream_options": {"include_usage": True}}
    assert provider.bodies("ok") == [
        {
            "model": "ok",
            "messages": [
                {"role": "system", "content": "Answer in JSON."},
                {"role": "user", "content": "Ahoj\n\nstate"},
            ],
            "response_format": {"type": "json_object"},
            "max_tokens": 500,
            "temperature": 0.5,
            **(streaming if stream else {}),
        }
    ]
    assert provider.seen[0].headers["authorization"] == f"Bearer {KEY}"


async def test_without_a_key_none_is_sent(provider: FakeProvider) -> None:
    await ask(provider, "ok", stream=False, api_key=None)
    assert "authorization" not in provider.seen[0].headers


def test_at_openai_itself_the_body_is_openai_s_own() -> None:
    model = OpenAIModel("openai:gpt", "gpt", api_key=KEY)
    schema = {"$defs": {"A": {"type": "null"}}, "anyOf": [{"$ref": "#/$defs/A"}]}
    request = replace(REQUEST, schema=schema, max_output_tokens=9)
    body = model._body(request, stream=False)
    assert body["max_completion_tokens"] == 9
    assert "max_tokens" not in body
    assert body["prompt_cache_key"] == "run-1"
    assert [one["content"] for one in body["messages"]] == ["Answer in JSON.", "Ahoj", "state"]
    assert body["response_format"] == {
        "type": "json_schema",
        "json_schema": {
            "name": "reply",
            "strict": True,
            "schema": {
                "type": "object",
                "properties": {"turn": {"anyOf": [{"$ref": "#/$defs/A"}]}},
                "required": ["turn"],
                "additionalProperties": False,
                "$defs": {"A": {"type": "null"}},
            },
        },
    }


def test_a_schema_with_an_object_at_its_root_is_left_alone() -> None:
    schema = {"type": "object", "properties": {}, "additionalProperties": False}
    assert object_rooted(schema) is schema


@pytest.mark.parametrize(
    ("json_mode", "schema", "system", "wanted"),
    [
        ("auto", None, "Reply in JSON", "json_object"),
        ("auto", {"type": "object"}, "Reply in JSON", "json_schema"),
        ("auto", None, "Summarise", None),
        ("schema", {"type": "object"}, "Reply in JSON", "json_schema"),
        ("schema", None, "Reply in JSON", "json_object"),
        ("object", {"type": "object"}, "Reply in JSON", "json_object"),
        ("off", {"type": "object"}, "Reply in JSON", None),
    ],
)
def test_how_json_is_asked_for(
    json_mode: Any, schema: dict[str, Any] | None, system: str, wanted: str | None
) -> None:
    model = OpenAIModel("x:y", "y", "http://127.0.0.1:1/v1", json_mode=json_mode)
    body = model._body(replace(REQUEST, schema=schema, system=system), stream=False)
    assert body.get("response_format", {}).get("type") == wanted


@both
async def test_reasoning_is_kept_apart(provider: FakeProvider, *, stream: bool) -> None:
    reply, pieces = await ask(provider, "reasoning", stream=stream)
    assert (reply.text, reply.reasoning) == (REPLY, "Let me think.")
    assert reply.usage.reasoning_tokens == 12
    assert "think" not in "".join(pieces)


@both
async def test_cached_tokens(provider: FakeProvider, *, stream: bool) -> None:
    reply, _ = await ask(provider, "cached", stream=stream)
    assert (reply.usage.input_tokens, reply.usage.cached_tokens) == (120, 100)


@both
async def test_null_details_are_no_trouble(provider: FakeProvider, *, stream: bool) -> None:
    reply, _ = await ask(provider, "nulls", stream=stream)
    assert (reply.usage.input_tokens, reply.usage.cached_tokens) == (120, 0)


@both
@pytest.mark.parametrize(
    ("scenario", "finish", "text"),
    [
        ("length", "length", '{"taskComplete": fal'),
        ("filter", "content_filter", ""),
        ("refusal", "refusal", ""),
        ("empty", "stop", ""),
    ],
)
async def test_endings(
    provider: FakeProvider, scenario: str, finish: str, text: str, *, stream: bool
) -> None:
    reply, _ = await ask(provider, scenario, stream=stream)
    assert (reply.finish, reply.text) == (finish, text)
    assert reply.refusal == ("I cannot help with that." if scenario == "refusal" else None)


@both
@pytest.mark.parametrize(
    ("scenario", "kind", "status", "wait"),
    [
        ("rl-forever", "rate_limit", 429, 1.0),
        ("rl-long", "rate_limit", 429, 120.0),
        ("rl-ms", "rate_limit", 429, 1.5),
        ("rl-quota", "quota", 429, None),
        ("e500", "server", 500, None),
        ("e529", "server", 529, None),
        ("auth", "auth", 401, None),
        ("echo", "bad_request", 400, None),
        ("e400", "bad_request", 400, None),
        ("ctx", "context_window", 400, None),
        ("filter-400", "content_filter", 400, None),
        ("gone", "not_found", 404, None),
        ("moved", "config", 307, None),
        ("html", "bad_response", None, None),
        ("error-in-ok", "server", None, None),
        ("badjson", "bad_response", None, None),
        ("nochoices", "bad_response", None, None),
        ("broken", "server", None, None),
    ],
)
async def test_faults(
    provider: FakeProvider,
    scenario: str,
    kind: str,
    status: int | None,
    wait: float | None,
    *,
    stream: bool,
) -> None:
    error = await fail(provider, scenario, stream=stream)
    assert (error.kind, error.status, error.retry_after_seconds) == (kind, status, wait)
    assert len(provider.bodies(scenario)) == 1, "an attempt is one request"


async def test_a_date_to_come_back_at(provider: FakeProvider) -> None:
    error = await fail(provider, "rl-date", stream=False)
    assert error.retry_after_seconds is not None
    assert 0 < error.retry_after_seconds <= 2


@pytest.mark.parametrize("scenario", ["auth", "echo"])
async def test_no_key_in_any_message(provider: FakeProvider, scenario: str) -> None:
    error = await fail(provider, scenario, stream=False)
    assert "sk-test" not in str(error)
    assert "[redacted]" in str(error)


async def test_a_page_instead_of_an_api_is_told_as_such(provider: FakeProvider) -> None:
    error = await fail(provider, "html", stream=True)
    assert "(an HTML page) Sign in Welcome" in str(error)


@pytest.mark.parametrize(
    ("scenario", "kind"),
    [
        ("cut", "connection"),
        ("eof", "truncated_stream"),
        ("sse-err", "server"),
        ("badjson", "bad_response"),
        ("stall", "timeout"),
    ],
)
async def test_a_stream_that_breaks_keeps_what_had_arrived(
    provider: FakeProvider, scenario: str, kind: str
) -> None:
    error = await fail(provider, scenario, stream=True)
    assert error.kind == kind
    assert error.partial
    assert REPLY.startswith(error.partial)


async def test_a_reset_in_the_middle(provider: FakeProvider) -> None:
    error = await fail(provider, "rst", stream=True, raw=True)
    assert error.kind == "connection"
    assert REPLY.startswith(error.partial)
    assert error.partial


@both
async def test_a_reset_before_any_answer(provider: FakeProvider, *, stream: bool) -> None:
    error = await fail(provider, "rst0", stream=stream, raw=True)
    assert (error.kind, error.partial) == ("connection", "")


async def test_nobody_listens_at_the_address(provider: FakeProvider) -> None:
    model = OpenAIModel("test:x", "x", "http://127.0.0.1:1/v1", KEY, settings=FAST)
    with pytest.raises(ModelError) as caught:
        await model.generate(REQUEST)
    assert caught.value.kind == "connection"
    assert provider.seen == []


async def test_a_broken_stream_keeps_the_usage_it_reported(provider: FakeProvider) -> None:
    error = await fail(provider, "nochoices", stream=True)
    assert error.usage["input_tokens"] == 120


async def test_no_end_mark_is_no_trouble(provider: FakeProvider) -> None:
    reply, _ = await ask(provider, "nodone", stream=True)
    assert (reply.text, reply.usage.output_tokens) == (REPLY, 30)


async def test_a_complete_reply_does_not_wait_for_a_server_that_dawdles(
    provider: FakeProvider,
) -> None:
    reply, _ = await ask(provider, "late-end", stream=True)
    assert (reply.text, reply.finish, reply.usage.input_tokens) == (REPLY, "stop", 0)


async def test_a_server_that_never_says_why_it_ended_can_be_tolerated(
    provider: FakeProvider,
) -> None:
    provider.say(Said(finish=""), Said(finish=""))
    error = await fail(provider, "script", stream=True)
    assert error.kind == "truncated_stream"
    reply, _ = await ask(provider, "script", stream=True, finish_required=False)
    assert (reply.text, reply.finish) == (REPLY, "unknown")
    error = await fail(provider, "eof", stream=True, finish_required=False)
    assert error.kind == "truncated_stream", "neither reason nor end mark"


@both
async def test_a_server_that_hangs(provider: FakeProvider, *, stream: bool) -> None:
    error = await fail(provider, "hang", stream=stream)
    assert error.kind == "timeout"


async def test_keep_alives_do_not_keep_a_silent_model_alive(provider: FakeProvider) -> None:
    error = await fail(provider, "keepalive", stream=True)
    assert error.kind == "timeout"
    assert "0.6 s" in str(error)


async def test_a_slow_stream_is_no_fault(provider: FakeProvider) -> None:
    started = time.monotonic()
    reply, pieces = await ask(provider, "slow", stream=True)
    assert "".join(pieces) == reply.text == REPLY
    assert reply.first_token_ms is not None
    assert reply.first_token_ms < 1000 * (time.monotonic() - started) / 2, (
        "pieces come as they arrive"
    )


async def test_a_slow_whole_reply_is_no_fault(provider: FakeProvider) -> None:
    reply, _ = await ask(provider, "slow-whole", stream=False)
    assert reply.text == REPLY


async def test_a_server_that_ignores_the_wish_for_a_stream(provider: FakeProvider) -> None:
    reply, pieces = await ask(provider, "no-stream", stream=True)
    assert (reply.text, pieces) == (REPLY, [REPLY])


@both
async def test_a_reply_too_large(provider: FakeProvider, *, stream: bool) -> None:
    small = replace(FAST, max_reply_bytes=100 if not stream else 50_000)
    error = await fail(provider, "flood" if stream else "ok", stream=stream, settings=small)
    assert error.kind == "bad_response"
    assert "longer than" in str(error)


async def test_cancelling_hangs_up(provider: FakeProvider) -> None:
    arrived = asyncio.Event()
    model = OpenAIModel("test:stall", "stall", provider.url, KEY)
    task = asyncio.ensure_future(model.generate(REQUEST, on_delta=lambda _: arrived.set()))
    await asyncio.wait_for(arrived.wait(), 3)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(provider.wait_for_disconnect, "stall")
    await model.aclose()


async def test_a_sink_may_be_asynchronous(provider: FakeProvider) -> None:
    pieces: list[str] = []

    async def sink(text: str) -> None:
        await asyncio.sleep(0)
        pieces.append(text)

    model = OpenAIModel("test:ok", "ok", provider.url)
    await model.generate(REQUEST, on_delta=sink)
    await model.aclose()
    assert "".join(pieces) == REPLY


async def test_halves_of_a_character_are_put_together(provider: FakeProvider) -> None:
    text = "0123456\ud83d" + "\ude00 ž end"
    provider.say(Said(text), Said(text))
    reply, pieces = await ask(provider, "script", stream=True)
    assert reply.text == "".join(pieces) == "0123456😀 ž end"
    assert all(piece.isprintable() for piece in pieces)
    assert (await ask(provider, "script", stream=False))[0].text == reply.text


async def test_a_failure_whose_body_breaks_off_keeps_its_status(provider: FakeProvider) -> None:
    error = await fail(provider, "cut-500", stream=False)
    assert (error.kind, error.status) == ("server", 500)


def test_a_gateway_that_tells_the_cost() -> None:
    assert usage_of({"prompt_tokens": 5, "cost": 0.25}).cost_usd == 0.25
    assert usage_of({"prompt_tokens": 5, "cost": 10**400}).cost_usd is None
    assert usage_of({"prompt_cache_hit_tokens": 3}).cached_tokens == 3


def test_content_in_typed_parts() -> None:
    parts = [{"type": "thinking", "text": "hm"}, {"type": "text", "text": "a"}, "?"]
    collector = ChatCollector(lambda kind, _="": ModelError(kind, ""))
    collector.whole(
        {"choices": [{"message": {"content": [*parts, {"type": "text", "text": "b"}]}}]}
    )
    assert collector.text == "ab"


async def test_connections_are_kept(provider: FakeProvider) -> None:
    model = OpenAIModel("test:ok", "ok", provider.url, KEY)
    replies = await asyncio.gather(*(model.generate(REQUEST) for _ in range(20)))
    assert {one.text for one in replies} == {REPLY}
    await model.aclose()
    assert (await model.generate(REQUEST)).text == REPLY, "it opens again when it is needed again"
    await model.aclose()


@pytest.mark.parametrize("key", ["two words", "line\nbreak", "ключ"])
def test_a_key_that_cannot_be_sent_is_not_shown(key: str) -> None:
    with pytest.raises(ConfigError, match="openai:x") as caught:
        OpenAIModel("openai:x", "x", api_key=key)
    assert key not in str(caught.value)


EVENTS = ['{"a": "ž😀"}', "one\ntwo", "[DONE]", "", " padded"]
STREAM = "\ufeff: comment\r\n\r\nevent: x\n" + "".join(
    "".join(f"data: {line}\n" for line in event.split("\n")) + "\n" for event in EVENTS
)


@given(st.lists(st.integers(0, len(STREAM.encode())), max_size=30), st.booleans())
def test_events_come_whole_however_the_bytes_are_cut(cuts: list[int], crlf: bool) -> None:
    text = STREAM.replace("\r\n", "\n")
    content = (text.replace("\n", "\r\n") if crlf else text).encode()
    edges = [0, *sorted(min(one, len(content)) for one in cuts), len(content)]
    reader = SseReader()
    found = [data for start, end in pairwise(edges) for data in reader.feed(content[start:end])]
    assert found + reader.end() == EVENTS


def test_a_last_event_without_its_blank_line_counts() -> None:
    reader = SseReader()
    assert reader.feed(b"data: one\n\ndata: two") == ["one"]
    assert reader.end() == ["two"]
    assert reader.end() == []
