"""OpenAI's chat completions, and every server that speaks the same: one request, one text.

Source: model access, structured output.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from loopagent.models.gathering import Gathering
from loopagent.models.http import Arrival, HttpSettings, Wire, clean_key
from loopagent.models.prices import cost_usd
from loopagent.models.values import count, dollars, is_list, joined, mapping, merged, text_in
from loopagent.ports import Finish, ModelReply, ModelRequest, SchemaSupport, Usage


if TYPE_CHECKING:
    from collections.abc import Callable

    from loopagent.core.dialect_writer import Dialect
    from loopagent.errors import ModelError
    from loopagent.ports import DeltaSink


OFFICIAL_URL = "https://api.openai.com/v1"
JsonMode = Literal["auto", "schema", "object", "off"]
"""How JSON is asked for.

`schema`: the server takes a strict JSON Schema. `object`: it knows JSON of any shape only. `off`: the prompt
alone asks. `auto`: OpenAI itself takes a schema, other servers only when one is asked for.
"""
MAX_CACHE_KEY_CHARS = 64
"""Longer keys are refused; those of deep trees differ in their end, and sharing a cache does no harm."""
_FINISH: dict[str, Finish] = {
    "stop": "stop",
    "eos": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_calls": "stop",
    "function_call": "stop",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "content_filter",
    "safety": "content_filter",
    "refusal": "refusal",
}
_BROKEN_OFF = frozenset({"error", "abort", "insufficient_system_resource"})
"""Finish reasons by which a server says that it failed while answering."""


class OpenAIModel:
    """A model behind an OpenAI-compatible `chat/completions` address.

    Args:
        name: `provider:model` as configured.
        model: The provider's name of the model.
        base_url: Address up to and including the version, for example `https://api.openai.com/v1`.
        api_key: Sent as bearer token; None for servers that want none.
        json_mode: How JSON is asked for, see `JsonMode`.
        dialect: Whose subset of JSON Schema the server takes; None takes OpenAI's own at OpenAI itself, and
            elsewhere that of engines which decode by a grammar.
        finish_required: A stream that ends without saying why counts as cut off. Turn it off only
            for servers that never say.
        settings: Timeouts and limits.

    Raises:
        ConfigError: The key cannot be sent.
    """

    def __init__(
        self,
        name: str,
        model: str,
        base_url: str = OFFICIAL_URL,
        api_key: str | None = None,
        *,
        json_mode: JsonMode = "auto",
        dialect: Dialect | None = None,
        finish_required: bool = True,
        settings: HttpSettings | None = None,
    ) -> None:
        self.name = name
        self._model = model
        host = urlsplit(base_url).hostname or ""
        self._official = f".{host}".endswith(".api.openai.com")  # regional addresses too
        self._json_mode: JsonMode = json_mode
        self.schema_support = self._support(dialect)
        self._finish_required = finish_required
        self._priced_as = f"{base_url}#{model}"
        key = clean_key(api_key, name) if api_key else ""
        headers = {"authorization": f"Bearer {key}"} if key else {}
        url = f"{base_url.rstrip('/')}/chat/completions"
        self._wire = Wire(name, url, headers=headers, secrets=(key,), settings=settings)

    async def generate(
        self, request: ModelRequest, *, on_delta: DeltaSink | None = None
    ) -> ModelReply:
        """Ask once; see `Model.generate`."""
        collector = ChatCollector(self._wire.error, finish_required=self._finish_required)
        body = self._body(request, stream=on_delta is not None)
        arrival = await self._wire.call(body, collector, on_delta)
        reply = collector.reply(arrival, self._model)
        return replace(reply, usage=self._priced(reply.usage))

    async def aclose(self) -> None:
        """Close the connections."""
        await self._wire.aclose()

    def _support(self, dialect: Dialect | None) -> SchemaSupport | None:
        if self._json_mode in ("object", "off"):
            return None
        sure = self._official or self._json_mode == "schema"
        return SchemaSupport(dialect or ("openai" if self._official else "grammar"), sure=sure)

    def _priced(self, usage: Usage) -> Usage:
        if usage.cost_usd is not None:
            return usage
        return replace(usage, cost_usd=cost_usd(self._priced_as, usage))

    def _body(self, request: ModelRequest, *, stream: bool) -> dict[str, Any]:
        messages = [{"role": one.role, "content": one.text} for one in request.messages]
        if not self._official:
            messages = merged(messages)
        body: dict[str, Any] = {
            "model": self._model,
            "messages": [{"role": "system", "content": request.system}, *messages],
        }
        if stream:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        wanted = self._response_format(request)
        if wanted is not None:
            body["response_format"] = wanted
        if request.max_output_tokens is not None:
            key = "max_completion_tokens" if self._official else "max_tokens"
            body[key] = request.max_output_tokens
        if request.temperature is not None:
            body["temperature"] = request.temperature
        if self._official and request.cache_key:
            body["prompt_cache_key"] = request.cache_key[:MAX_CACHE_KEY_CHARS]
        return body

    def _response_format(self, request: ModelRequest) -> dict[str, Any] | None:
        if self.schema_support is not None and request.schema is not None:
            schema = {"name": "reply", "strict": True, "schema": object_rooted(request.schema)}
            return {"type": "json_schema", "json_schema": schema}
        # Servers demand that the prompt speaks of JSON; a prompt that does not wants plain text.
        if self._json_mode != "off" and "json" in request.system.lower():
            return {"type": "json_object"}
        return None


def object_rooted(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema, wrapped as `{"turn": …}` unless its root is a plain object.

    Strict mode takes no `anyOf` at the root. Definitions stay at the root, where references look
    for them.
    """
    if schema.get("type") == "object" and "anyOf" not in schema:
        return schema
    inner = {key: value for key, value in schema.items() if key not in {"$defs", "$schema"}}
    wrapped: dict[str, Any] = {
        "type": "object",
        "properties": {"turn": inner},
        "required": ["turn"],
        "additionalProperties": False,
    }
    return wrapped | ({"$defs": schema["$defs"]} if "$defs" in schema else {})


class ChatCollector(Gathering):
    """Gathers one chat completion, streamed or whole; see `Gathering`."""

    def __init__(self, fail: Callable[..., ModelError], *, finish_required: bool = True) -> None:
        super().__init__(fail, finish_required=finish_required)
        self._refusal: list[str] = []
        self._answered = False
        self.usage = Usage()

    def feed(self, data: str) -> str | None:
        """Take one event of the stream; see `Collector.feed`."""
        if data.strip() == "[DONE]":
            self._done = True
            return None
        return self._absorb(self._event(data), "delta")

    def whole(self, body: Any) -> None:
        """Take an answer that came in one piece."""
        self._absorb(self._checked(body), "message")
        if not self._answered:
            raise self._fail("bad_response", "the answer holds no choices")

    def end(self) -> None:
        """Complain about a stream that stopped early."""
        if self._done and not self._answered:
            raise self._fail("bad_response", "the answer holds no choices")
        self._refuse_early_end()

    def reply(self, arrival: Arrival, model: str) -> ModelReply:
        """The finished reply; `model` names it when the server did not."""
        finish: Finish = _FINISH.get(self._finish or "", "unknown")
        refusal = joined(self._refusal) or None
        return ModelReply(
            text=self.text,
            finish="refusal" if refusal and finish in {"stop", "unknown"} else finish,
            refusal=refusal,
            reasoning=joined(self._reasoning) or None,
            usage=self.usage,
            model=self._model or model,
            request_id=arrival.request_id or self._id,
            first_token_ms=arrival.first_token_ms,
            total_ms=arrival.total_ms,
        )

    def _absorb(self, body: dict[str, Any], key: Literal["delta", "message"]) -> str | None:
        if body.get("usage"):
            self.usage = usage_of(mapping(body["usage"]))
        self._model = self._model or str(body.get("model") or "")
        self._id = self._id or (str(body["id"]) if body.get("id") else None)
        choices = body.get("choices")
        first = mapping(choices[0]) if is_list(choices) and choices else {}
        return self._choice(first, key) if first else None

    def _choice(self, choice: dict[str, Any], key: str) -> str | None:
        self._answered = True
        message = mapping(choice.get(key))
        text = text_in(message.get("content"))
        reasoning = text_in(message.get("reasoning_content") or message.get("reasoning"))
        refusal = text_in(message.get("refusal"))
        for piece, kept in (
            (text, self._parts),
            (reasoning, self._reasoning),
            (refusal, self._refusal),
        ):
            if piece:
                kept.append(piece)
        finish = choice.get("finish_reason")
        if finish in _BROKEN_OFF:
            raise self._fail("server", f"it broke off with finish_reason {finish}")
        if isinstance(finish, str) and finish:
            self._finish = finish
        return text if text or reasoning or refusal else None


def usage_of(usage: dict[str, Any]) -> Usage:
    """Tokens from a `usage` object; detail objects may be null or missing."""
    given = mapping(usage.get("prompt_tokens_details"))
    made = mapping(usage.get("completion_tokens_details"))
    return Usage(
        input_tokens=count(usage.get("prompt_tokens")),
        cached_tokens=count(given.get("cached_tokens"))
        or count(usage.get("prompt_cache_hit_tokens")),
        output_tokens=count(usage.get("completion_tokens")),
        reasoning_tokens=count(made.get("reasoning_tokens")),
        cost_usd=dollars(usage.get("cost")),
    )
