"""Whatever a server answers, an adapter gives a reply or a `ModelError`, and never shows a key."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopagent.errors import ModelError
from loopagent.models.anthropic import MessageCollector
from loopagent.models.faults import (
    MAX_EXCERPT_CHARS,
    complaint_of,
    excerpt,
    fault,
    kind_of,
    retry_after_seconds,
)
from loopagent.models.http import Arrival
from loopagent.models.openai import ChatCollector


KEYS = st.sampled_from(
    [
        "choices",
        "delta",
        "message",
        "content",
        "finish_reason",
        "usage",
        "error",
        "type",
        "code",
        "prompt_tokens",
        "refusal",
        "model",
        "id",
        "index",
        "reasoning",
        "prompt_tokens_details",
        "content_block",
        "text",
        "thinking",
        "stop_reason",
        "stop_details",
        "input_tokens",
    ]
)
WORDS = st.sampled_from(
    [
        "text",
        "message",
        "message_start",
        "content_block_delta",
        "message_delta",
        "message_stop",
        "error",
        "stop",
        "end_turn",
    ]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=25,
)
COLLECTORS = (ChatCollector, MessageCollector)


def fail(kind: Any, detail: str = "") -> ModelError:
    return fault("test:x", kind, detail)


@pytest.mark.parametrize("collector", COLLECTORS)
@given(events=st.lists(JSON, max_size=4), tail=st.text(max_size=10))
def test_any_stream(collector: Any, events: list[Any], tail: str) -> None:
    one = collector(fail, finish_required=False)
    with suppress(ModelError):
        for event in events:
            assert one.feed(json.dumps(event)) is None or isinstance(one.text, str)
        one.feed(tail)
        one.end()
    assert one.usage.input_tokens >= 0
    assert isinstance(one.reply(Arrival(None, None, 1.0), "x").text, str)


@pytest.mark.parametrize("collector", COLLECTORS)
@given(body=JSON)
def test_any_body(collector: Any, body: Any) -> None:
    one = collector(fail)
    with suppress(ModelError):
        one.whole(body)
    assert isinstance(one.reply(Arrival(None, None, 1.0), "x").text, str)


@given(
    st.integers(300, 599),
    st.binary(max_size=200) | JSON.map(lambda value: json.dumps(value).encode()),
)
def test_any_failure_has_a_kind(status: int, body: bytes) -> None:
    complaint = complaint_of(body)
    error = fault("test:x", kind_of(status, complaint), complaint.message, status=status)
    assert len(str(error)) < MAX_EXCERPT_CHARS + 100


@given(
    st.text(max_size=400), st.text(max_size=400), st.text("abcXYZ019_-", min_size=8, max_size=80)
)
def test_no_message_shows_a_key(before: str, after: str, key: str) -> None:
    assert key not in excerpt(f"{before}{key}{after}", (key,))


@pytest.mark.parametrize(
    "text",
    [
        "Incorrect API key provided: sk-proj-abcdef123456.",
        "key abcd****wxyz is wrong",
        "Authorization: Bearer eyJhbGciOi.abc-def_123",
        "AIzaSyA1234567890abcdef",
        "gsk_1234567890abcdef",
    ],
)
def test_what_looks_like_a_key_is_taken_out(text: str) -> None:
    shown = excerpt(text)
    assert "[redacted]" in shown
    assert not {"sk-proj", "wxyz", "eyJ", "AIza", "gsk_1"} & {
        part for part in ("sk-proj", "wxyz", "eyJ", "AIza", "gsk_1") if part in shown
    }


def test_a_page_is_shown_as_its_text() -> None:
    page = "<html><style>p {color: red}</style>\n<h1>Bad\tgateway</h1>" + "x" * 1000
    shown = excerpt(page)
    assert shown.startswith("(an HTML page) Bad gateway xxx")
    assert len(shown) == MAX_EXCERPT_CHARS


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "7"}, 7.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:01:00 GMT"}, 50.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:01:00 -0000"}, 50.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:01 GMT"}, 0.0),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "tomorrow"}, None),
        ({"retry-after": "Thu, 99 Jan 1970 00:00:01 GMT"}, None),
    ],
)
def test_how_long_a_server_asks_to_wait(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_seconds(headers, now=10.0) == seconds


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (
            400,
            {"error": {"message": "This model's maximum context length is 8 tokens"}},
            "context_window",
        ),
        (400, {"error": {"message": "no", "code": "context_length_exceeded"}}, "context_window"),
        (500, {"error": {"message": "the context size has been exceeded"}}, "context_window"),
        (413, {"error": {"type": "request_too_large"}}, "context_window"),
        (400, {"error": {"message": "Your credit balance is too low"}}, "quota"),
        (402, {"error": {"message": "pay"}}, "quota"),
        (403, {"detail": "forbidden"}, "auth"),
        (408, {}, "timeout"),
        (409, {}, "server"),
        (425, {}, "server"),
        (422, {"detail": [{"loc": ["body"], "msg": "field required"}]}, "bad_request"),
        (429, {"error": {"message": "context length of this key is limited"}}, "rate_limit"),
        (
            429,
            [{"error": {"message": "wait", "status": "RESOURCE_EXHAUSTED", "code": 429}}],
            "rate_limit",
        ),
        (200, {"error": {"message": "upstream", "code": 429}}, "rate_limit"),
        (200, {"error": "upstream failed"}, "server"),
        (301, "moved", "config"),
        (418, "teapot", "bad_request"),
        (
            529,
            {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}},
            "server",
        ),
    ],
)
def test_kinds(status: int, body: Any, kind: str) -> None:
    assert kind_of(status, complaint_of(json.dumps(body).encode())) == kind
