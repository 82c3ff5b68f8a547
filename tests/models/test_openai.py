"""Chat completions against a real server: what goes over the wire, and what each fault becomes."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopagent.errors import ModelError
from loopagent.models.http import SseReader
from loopagent.models.openai import ChatCollector, OpenAIModel, object_rooted, usage_of
from loopagent.ports import ChatMessage, ModelRequest
from tests.fakes.provider import FakeProvider
from tests.fakes.wire import REPLY, Said
from tests.models.wires import KEY, OPENAI, both


pytestmark = pytest.mark.anyio
REQUEST = ModelRequest(
    system="Answer in JSON.",
    messages=[ChatMessage("user", "Ahoj"), ChatMessage("user", "state")],
    cache_key="run-1",
)


@both
async def test_a_reply(provider: FakeProvider, *, stream: bool) -> None:
    reply, pieces = await OPENAI.ask(provider, "ok", stream=stream)
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
    await OPENAI.ask(provider, "ok", stream=stream, request=request)
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
    await OPENAI.ask(provider, "ok", stream=False, api_key=None)
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
    reply, pieces = await OPENAI.ask(provider, "reasoning", stream=stream)
    assert (reply.text, reply.reasoning) == (REPLY, "Let me think.")
    assert reply.usage.reasoning_tokens == 12
    assert "think" not in "".join(pieces)


async def test_a_complete_reply_does_not_wait_for_a_server_that_dawdles(
    provider: FakeProvider,
) -> None:
    reply, _ = await OPENAI.ask(provider, "late-end", stream=True)
    assert (reply.text, reply.finish, reply.usage.input_tokens) == (REPLY, "stop", 0)


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
