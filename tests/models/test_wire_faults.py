"""What each fault of a provider becomes: one table for all adapters, against a real server."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

import pytest

from loopagent.errors import ConfigError, ModelError
from tests.fakes.provider import FakeProvider
from tests.fakes.wire import REPLY, Said
from tests.models.wires import ADAPTERS, ANTHROPIC, FAST, OPENAI, REQUEST, Adapter, both


pytestmark = pytest.mark.anyio
each = pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda one: str(one.name))
FAULTS: list[tuple[str, str, int | None, float | None]] = [
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
]
"""Scenario of the fake provider, and the error's kind, status and wait in seconds."""
OWN_FAULTS: list[tuple[Adapter, str, str]] = [
    (OPENAI, "broken", "server"),
    (ANTHROPIC, "full", "context_window"),
]
"""The same for what only one wire format can say."""
ENDINGS: list[tuple[str, str, str, str]] = [
    ("length", "length", "length", '{"taskComplete": fal'),
    ("filter", "content_filter", "refusal", ""),
    ("refusal", "refusal", "refusal", ""),
    ("empty", "stop", "stop", ""),
]
"""Scenario, how it ends by either adapter, and the text."""
BREAKS = [
    ("cut", "connection"),
    ("eof", "truncated_stream"),
    ("sse-err", "server"),
    ("badjson", "bad_response"),
    ("stall", "timeout"),
]
"""Scenario of a stream that breaks, and the error's kind."""


@both
@each
@pytest.mark.parametrize(("scenario", "kind", "status", "wait"), FAULTS)
async def test_faults(
    provider: FakeProvider,
    adapter: Adapter,
    scenario: str,
    kind: str,
    status: int | None,
    wait: float | None,
    *,
    stream: bool,
) -> None:
    error = await adapter.fail(provider, scenario, stream=stream)
    assert (error.kind, error.status, error.retry_after_seconds) == (kind, status, wait)
    assert len(provider.bodies(scenario)) == 1, "an attempt is one request"


@both
@pytest.mark.parametrize(("adapter", "scenario", "kind"), OWN_FAULTS)
async def test_faults_of_one_wire(
    provider: FakeProvider, adapter: Adapter, scenario: str, kind: str, *, stream: bool
) -> None:
    error = await adapter.fail(provider, scenario, stream=stream)
    assert (error.kind, error.status, error.retry_after_seconds) == (kind, None, None)


@both
@each
@pytest.mark.parametrize(("scenario", "openai", "anthropic", "text"), ENDINGS)
async def test_endings(
    provider: FakeProvider,
    adapter: Adapter,
    scenario: str,
    openai: str,
    anthropic: str,
    text: str,
    *,
    stream: bool,
) -> None:
    reply, _ = await adapter.ask(provider, scenario, stream=stream)
    finish = openai if adapter is OPENAI else anthropic
    assert (reply.finish, reply.text) == (finish, text)
    assert reply.refusal == ("I cannot help with that." if scenario == "refusal" else None)


@both
@each
async def test_input_tokens_are_the_total(
    provider: FakeProvider, adapter: Adapter, *, stream: bool
) -> None:
    reply, _ = await adapter.ask(provider, "cached", stream=stream)
    assert (reply.usage.input_tokens, reply.usage.cached_tokens) == (120, 100)
    reply, _ = await adapter.ask(provider, "nulls", stream=stream)
    assert (reply.usage.input_tokens, reply.usage.cached_tokens) == (120, 0)


@both
@each
async def test_thinking_is_kept_apart(
    provider: FakeProvider, adapter: Adapter, *, stream: bool
) -> None:
    reply, pieces = await adapter.ask(provider, "reasoning", stream=stream)
    assert (reply.text, reply.reasoning) == (REPLY, "Let me think.")
    assert "think" not in "".join(pieces)


@each
async def test_a_date_to_come_back_at(provider: FakeProvider, adapter: Adapter) -> None:
    error = await adapter.fail(provider, "rl-date", stream=False)
    assert error.retry_after_seconds is not None
    assert 0 < error.retry_after_seconds <= 2


@each
@pytest.mark.parametrize("scenario", ["auth", "echo"])
async def test_no_key_in_any_message(
    provider: FakeProvider, adapter: Adapter, scenario: str
) -> None:
    error = await adapter.fail(provider, scenario, stream=False)
    assert "sk-test" not in str(error)
    assert "[redacted]" in str(error)


@each
async def test_a_page_instead_of_an_api_is_told_as_such(
    provider: FakeProvider, adapter: Adapter
) -> None:
    error = await adapter.fail(provider, "html", stream=True)
    assert "(an HTML page) Sign in Welcome" in str(error)


@each
@pytest.mark.parametrize(("scenario", "kind"), BREAKS)
async def test_a_stream_that_breaks_keeps_what_had_arrived(
    provider: FakeProvider, adapter: Adapter, scenario: str, kind: str
) -> None:
    error = await adapter.fail(provider, scenario, stream=True)
    assert error.kind == kind
    assert error.partial
    assert REPLY.startswith(error.partial)
    if adapter is ANTHROPIC:  # it tells the input tokens first
        assert error.usage["input_tokens"] == 120


async def test_a_broken_stream_keeps_the_usage_it_reported(provider: FakeProvider) -> None:
    error = await OPENAI.fail(provider, "nochoices", stream=True)
    assert error.usage["input_tokens"] == 120


@each
async def test_a_reset_in_the_middle(provider: FakeProvider, adapter: Adapter) -> None:
    error = await adapter.fail(provider, "rst", stream=True, raw=True)
    assert error.kind == "connection"
    assert error.partial
    assert REPLY.startswith(error.partial)


@both
@each
async def test_a_reset_before_any_answer(
    provider: FakeProvider, adapter: Adapter, *, stream: bool
) -> None:
    error = await adapter.fail(provider, "rst0", stream=stream, raw=True)
    assert (error.kind, error.partial) == ("connection", "")


@each
async def test_nobody_listens_at_the_address(provider: FakeProvider, adapter: Adapter) -> None:
    model = adapter.open("x", "http://127.0.0.1:1", settings=FAST)
    with pytest.raises(ModelError) as caught:
        await model.generate(REQUEST)
    assert caught.value.kind == "connection"
    assert provider.seen == []


@each
async def test_no_end_mark_is_no_trouble(provider: FakeProvider, adapter: Adapter) -> None:
    reply, _ = await adapter.ask(provider, "nodone", stream=True)
    assert (reply.text, reply.finish, reply.usage.output_tokens) == (REPLY, "stop", 30)


@each
async def test_a_complete_reply_does_not_wait_for_a_server_that_dawdles(
    provider: FakeProvider, adapter: Adapter
) -> None:
    reply, _ = await adapter.ask(provider, "late-end", stream=True)
    assert (reply.text, reply.finish) == (REPLY, "stop")
    # Chat completions tell the tokens last, and they are not waited for.
    assert reply.usage.output_tokens == (0 if adapter is OPENAI else 30)


@each
async def test_a_server_that_never_says_why_it_ended_can_be_tolerated(
    provider: FakeProvider, adapter: Adapter
) -> None:
    provider.say(Said(finish=""), Said(finish=""))
    error = await adapter.fail(provider, "script", stream=True)
    assert error.kind == "truncated_stream"
    reply, _ = await adapter.ask(provider, "script", stream=True, finish_required=False)
    assert (reply.text, reply.finish) == (REPLY, "unknown")
    error = await adapter.fail(provider, "eof", stream=True, finish_required=False)
    assert error.kind == "truncated_stream", "neither reason nor end mark"


@both
@each
async def test_a_server_that_hangs(
    provider: FakeProvider, adapter: Adapter, *, stream: bool
) -> None:
    error = await adapter.fail(provider, "hang", stream=stream)
    assert error.kind == "timeout"


@each
async def test_keep_alives_do_not_keep_a_silent_model_alive(
    provider: FakeProvider, adapter: Adapter
) -> None:
    error = await adapter.fail(provider, "keepalive", stream=True)
    assert error.kind == "timeout"
    assert "0.6 s" in str(error)


@each
async def test_a_slow_stream_is_no_fault(provider: FakeProvider, adapter: Adapter) -> None:
    started = time.monotonic()
    reply, pieces = await adapter.ask(provider, "slow", stream=True)
    assert "".join(pieces) == reply.text == REPLY
    assert reply.first_token_ms is not None
    assert reply.first_token_ms < 1000 * (time.monotonic() - started) / 2, (
        "pieces come as they arrive"
    )


@each
async def test_a_slow_whole_reply_is_no_fault(provider: FakeProvider, adapter: Adapter) -> None:
    reply, _ = await adapter.ask(provider, "slow-whole", stream=False)
    assert reply.text == REPLY


@each
async def test_a_server_that_ignores_the_wish_for_a_stream(
    provider: FakeProvider, adapter: Adapter
) -> None:
    reply, pieces = await adapter.ask(provider, "no-stream", stream=True)
    assert (reply.text, pieces) == (REPLY, [REPLY])


@both
@each
async def test_a_reply_too_large(provider: FakeProvider, adapter: Adapter, *, stream: bool) -> None:
    small = replace(FAST, max_reply_bytes=100 if not stream else 50_000)
    scenario = "flood" if stream else "ok"
    error = await adapter.fail(provider, scenario, stream=stream, settings=small)
    assert error.kind == "bad_response"
    assert "longer than" in str(error)


@each
async def test_cancelling_hangs_up(provider: FakeProvider, adapter: Adapter) -> None:
    arrived = asyncio.Event()
    model = adapter.open("stall", provider.root)
    task = asyncio.ensure_future(model.generate(REQUEST, on_delta=lambda _: arrived.set()))
    await asyncio.wait_for(arrived.wait(), 3)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(provider.wait_for_disconnect, "stall")
    await model.aclose()


@each
async def test_a_sink_may_be_asynchronous(provider: FakeProvider, adapter: Adapter) -> None:
    pieces: list[str] = []

    async def sink(text: str) -> None:
        await asyncio.sleep(0)
        pieces.append(text)

    model = adapter.open("ok", provider.root)
    await model.generate(REQUEST, on_delta=sink)
    await model.aclose()
    assert "".join(pieces) == REPLY


@each
async def test_halves_of_a_character_are_put_together(
    provider: FakeProvider, adapter: Adapter
) -> None:
    text = "0123456\ud83d" + "\ude00 ž end"
    provider.say(Said(text), Said(text))
    reply, pieces = await adapter.ask(provider, "script", stream=True)
    assert reply.text == "".join(pieces) == "0123456😀 ž end"
    assert all(piece.isprintable() for piece in pieces)
    assert (await adapter.ask(provider, "script", stream=False))[0].text == reply.text


@each
async def test_a_failure_whose_body_breaks_off_keeps_its_status(
    provider: FakeProvider, adapter: Adapter
) -> None:
    error = await adapter.fail(provider, "cut-500", stream=False)
    assert (error.kind, error.status) == ("server", 500)


@each
async def test_connections_are_kept(provider: FakeProvider, adapter: Adapter) -> None:
    model = adapter.open("ok", provider.root)
    replies = await asyncio.gather(*(model.generate(REQUEST) for _ in range(20)))
    assert {one.text for one in replies} == {REPLY}
    await model.aclose()
    assert (await model.generate(REQUEST)).text == REPLY, "it opens again when it is needed again"
    await model.aclose()


@each
@pytest.mark.parametrize("key", ["two words", "line\nbreak", "ключ"])
def test_a_key_that_cannot_be_sent_is_not_shown(adapter: Adapter, key: str) -> None:
    with pytest.raises(ConfigError, match="test:x") as caught:
        adapter.open("x", "http://127.0.0.1:1", api_key=key)
    assert key not in str(caught.value)
