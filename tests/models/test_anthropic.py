"""The Messages API against a real server: what goes over the wire, and what each fault becomes."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopagent.models.anthropic import AnthropicModel, conversation
from loopagent.ports import ChatMessage, ModelRequest
from tests.fakes.provider import FakeProvider
from tests.fakes.wire import REPLY, Said
from tests.models.wires import ANTHROPIC, KEY, both


pytestmark = pytest.mark.anyio
MARK = {"type": "ephemeral"}
REQUEST = ModelRequest(
    system="Answer in JSON.",
    messages=[
        ChatMessage("user", "Ahoj"),
        ChatMessage("assistant", "{}"),
        ChatMessage("user", "result"),
        ChatMessage("user", "state"),
    ],
)


@both
async def test_a_reply(provider: FakeProvider, *, stream: bool) -> None:
    reply, pieces = await ANTHROPIC.ask(provider, "ok", stream=stream)
    assert (reply.text, reply.finish, reply.model) == (REPLY, "stop", "ok")
    assert pieces == (Said().pieces if stream else [])
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (120, 30)
    assert reply.request_id == "req-7"
    assert (reply.first_token_ms is not None) == stream


@both
async def test_what_is_sent(provider: FakeProvider, *, stream: bool) -> None:
    schema = {"type": "object", "additionalProperties": False}
    request = replace(REQUEST, schema=schema, temperature=0.5, cache_key="run-1")
    await ANTHROPIC.ask(provider, "ok", stream=stream, request=request)
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
    await ANTHROPIC.ask(provider, "ok", stream=False, request=request)
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
