"""The Messages API against a real server: what goes over the wire, and what each fault becomes."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopagent.errors import ConfigError, ModelError
from loopagent.models.anthropic import AnthropicModel, conversation
from loopagent.models.http import HttpSettings
from loopagent.ports import ChatMessage, ModelReply, ModelRequest
from tests.fakes.provider import FakeProvider
from tests.fakes.wire import REPLY, Said


pytestmark = pytest.mark.anyio
KEY = "plain-secret-42"
MARK = {"type": "ephemeral"}
FAST = HttpSettings(idle_seconds=0.4, first_token_seconds=0.6, wait_seconds=0.4, drain_seconds=0.2)
REQUEST = ModelRequest(
    system="Answer in JSON.",
    messages=[
        ChatMessage("user", "Ahoj"),
        ChatMessage("assistant", "{}"),
        ChatMessage("user", "result"),
        ChatMessage("user", "state"),
    ],
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
    root = provider.raw_root if raw else provider.root
    model = AnthropicModel(f"test:{scenario}", scenario, KEY, root, **{"settings": FAST, **options})
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
    assert pieces == (Said().pieces if stream else [])
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (120, 30)
    assert reply.request_id == "req-7"
    assert (reply.first_token_ms is not None) == stream


@both
async def test_what_is_sent(provider: FakeProvider, *, stream: bool) -> None:
    schema = {"type": "object", "additionalProperties": False}
    request = replace(REQUEST, schema=schema, temperature=0.5, cache_key="run-1")
    await ask(provider, "ok", stream=stream, request=request)
    assert provider.bodies("ok") == [
        {
            "model": "ok",
            "max_tokens": 8192,
            "system": [{"type": "text", "text": "Answer in JSON.", "cache_control": MARK}],
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "Ahoj"}]},
                {"role": "assistant", "content": [{"type": "text", "text": "{}"}]},
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "result", "cache_control": MARK},
                        {"type": "text", "text": "state"},
                    ],
                },
            ],
            "temperature": 0.5,
            "output_config": {"format": {"type": "json_schema", "schema": schema}},
            **({"stream": True} if stream else {}),
        }
    ]
    headers = provider.seen[0].headers
    assert (headers["x-api-key"], headers["anthropic-version"]) == (KEY, "2023-06-01")
    assert "authorization" not in headers


async def test_what_is_not_asked_for_is_not_sent(provider: FakeProvider) -> None:
    request = replace(REQUEST, system=" ", max_output_tokens=77)
    await ask(provider, "ok", stream=False, request=request)
    body = provider.bodies("ok")[0]
    assert sorted(body) == ["max_tokens", "messages", "model"]
    assert body["max_tokens"] == 77


async def test_an_address_with_the_version_in_it(provider: FakeProvider) -> None:
    model = AnthropicModel("test:ok", "ok", KEY, f"{provider.root}/v1/")
    assert (await model.generate(REQUEST)).text == REPLY
    await model.aclose()


MESSAGES = st.lists(
    st.builds(
        ChatMessage, st.sampled_from(["user", "assistant"]), st.sampled_from(["", " \n", "a", "b"])
    )
)


@given(MESSAGES)
def test_any_conversation_is_fit_to_send(messages: list[ChatMessage]) -> None:
    turns = conversation(messages)
    roles = [turn["role"] for turn in turns]
    assert roles[0] == "user"
    assert all(one != other for one, other in pairwise(roles))
    blocks = [block for turn in turns for block in turn["content"]]
    said = [one.text for one in messages if one.text.strip()]
    assert [block["text"] for block in blocks][len(blocks) - len(said) :] == said
    marked = [number for number, block in enumerate(blocks) if "cache_control" in block]
    assert marked == ([len(blocks) - 2] if len(blocks) > 1 else [])


@both
async def test_thinking_is_kept_apart(provider: FakeProvider, *, stream: bool) -> None:
    reply, pieces = await ask(provider, "reasoning", stream=stream)
    assert (reply.text, reply.reasoning) == (REPLY, "Let me think.")
    assert "think" not in "".join(pieces)


@both
async def test_input_tokens_are_the_total(provider: FakeProvider, *, stream: bool) -> None:
    reply, _ = await ask(provider, "cached", stream=stream)
    assert (reply.usage.input_tokens, reply.usage.cached_tokens) == (120, 100)
    reply, _ = await ask(provider, "nulls", stream=stream)
    assert (reply.usage.input_tokens, reply.usage.cached_tokens) == (120, 0)


@both
@pytest.mark.parametrize(
    ("scenario", "finish", "text"),
    [
        ("length", "length", '{"taskComplete": fal'),
        ("refusal", "refusal", ""),
        ("filter", "refusal", ""),
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
        ("rl-quota", "quota", 429, None),
        ("e500", "server", 500, None),
        ("e529", "server", 529, None),
        ("auth", "auth", 401, None),
        ("e400", "bad_request", 400, None),
        ("ctx", "context_window", 400, None),
        ("gone", "not_found", 404, None),
        ("html", "bad_response", None, None),
        ("error-in-ok", "server", None, None),
        ("badjson", "bad_response", None, None),
        ("nochoices", "bad_response", None, None),
        ("full", "context_window", None, None),
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
async def test_a_stream_that_breaks_keeps_text_and_usage(
    provider: FakeProvider, scenario: str, kind: str
) -> None:
    error = await fail(provider, scenario, stream=True)
    assert error.kind == kind
    assert error.partial
    assert REPLY.startswith(error.partial)
    assert error.usage["input_tokens"] == 120


async def test_a_reset_in_the_middle(provider: FakeProvider) -> None:
    error = await fail(provider, "rst", stream=True, raw=True)
    assert error.kind == "connection"
    assert error.partial


@pytest.mark.parametrize("scenario", ["nodone", "late-end"])
async def test_a_stop_reason_is_end_enough(provider: FakeProvider, scenario: str) -> None:
    reply, _ = await ask(provider, scenario, stream=True)
    assert (reply.text, reply.finish, reply.usage.output_tokens) == (REPLY, "stop", 30)


async def test_a_stream_without_stop_reason_can_be_tolerated(provider: FakeProvider) -> None:
    provider.say(Said(finish=""), Said(finish=""))
    error = await fail(provider, "script", stream=True)
    assert error.kind == "truncated_stream"
    reply, _ = await ask(provider, "script", stream=True, finish_required=False)
    assert (reply.text, reply.finish) == (REPLY, "unknown")


async def test_keep_alives_do_not_keep_a_silent_model_alive(provider: FakeProvider) -> None:
    error = await fail(provider, "keepalive", stream=True)
    assert error.kind == "timeout"


async def test_cancelling_hangs_up(provider: FakeProvider) -> None:
    arrived = asyncio.Event()
    model = AnthropicModel("test:stall", "stall", KEY, provider.root)
    task = asyncio.ensure_future(model.generate(REQUEST, on_delta=lambda _: arrived.set()))
    await asyncio.wait_for(arrived.wait(), 3)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(provider.wait_for_disconnect, "stall")
    await model.aclose()


def test_a_key_that_cannot_be_sent_is_not_shown() -> None:
    with pytest.raises(ConfigError, match="anthropic:x") as caught:
        AnthropicModel("anthropic:x", "x", "two words")
    assert "two words" not in str(caught.value)
