"""Anthropic's native Messages API: one request, one text, with a growing cached prefix."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from loopagent.models.gathering import Gathering
from loopagent.models.http import Arrival, HttpSettings, Wire, clean_key
from loopagent.models.prices import cost_usd
from loopagent.models.values import count, is_list, joined, mapping
from loopagent.ports import ChatMessage, Finish, ModelReply, ModelRequest, SchemaSupport, Usage


if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from loopagent.errors import ModelError
    from loopagent.ports import DeltaSink


OFFICIAL_URL = "https://api.anthropic.com"
API_VERSION = "2023-06-01"
MAX_TOKENS = 8192
"""Default cap on the tokens of a reply; the API wants one in every request."""
_EPHEMERAL = {"type": "ephemeral"}
_OPENING = "(The conversation goes on.)"
_FINISH: dict[str, Finish] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "stop",
    "max_tokens": "length",
    "refusal": "refusal",
}
_CONTEXT_FULL = "model_context_window_exceeded"


class AnthropicModel:
    """A model behind Anthropic's Messages API.

    Args:
        name: `provider:model` as configured.
        model: Anthropic's name of the model.
        api_key: Sent as `x-api-key`.
        base_url: Address of the server; a trailing `/v1` is tolerated.
        max_tokens: Cap on a reply when the request has none.
        finish_required: A stream that ends without a stop reason counts as cut off.
        settings: Timeouts and limits.

    Raises:
        ConfigError: The key cannot be sent.
    """

    def __init__(
        self,
        name: str,
        model: str,
        api_key: str,
        base_url: str = OFFICIAL_URL,
        *,
        max_tokens: int = MAX_TOKENS,
        finish_required: bool = True,
        settings: HttpSettings | None = None,
    ) -> None:
        self.name = name
        self._model = model
        self._max_tokens = max_tokens
        self._finish_required = finish_required
        key = clean_key(api_key, name)
        headers = {"x-api-key": key, "anthropic-version": API_VERSION}
        base = base_url.rstrip("/").removesuffix("/v1")
        self._priced_as = f"{base}#{model}"
        self.schema_support = SchemaSupport("anthropic", sure=base == OFFICIAL_URL)
        self._wire = Wire(
            name, f"{base}/v1/messages", headers=headers, secrets=(key,), settings=settings
        )

    async def generate(
        self, request: ModelRequest, *, on_delta: DeltaSink | None = None
    ) -> ModelReply:
        """Ask once; see `Model.generate`."""
        collector = MessageCollector(self._wire.error, finish_required=self._finish_required)
        body = self._body(request, stream=on_delta is not None)
        arrival = await self._wire.call(body, collector, on_delta)
        reply = collector.reply(arrival, self._model)
        cost = cost_usd(
            self._priced_as, reply.usage, cache_write_tokens=collector.cache_write_tokens
        )
        return replace(reply, usage=replace(reply.usage, cost_usd=cost))

    async def aclose(self) -> None:
        """Close the connections."""
        await self._wire.aclose()

    def _body(self, request: ModelRequest, *, stream: bool) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self._model,
            "max_tokens": request.max_output_tokens or self._max_tokens,
            "messages": conversation(request.messages),
        }
        if request.system.strip():
            body["system"] = [{"type": "text", "text": request.system, "cache_control": _EPHEMERAL}]
        if stream:
            body["stream"] = True
        if request.temperature is not None:
            body["temperature"] = request.temperature
        if request.schema is not None:
            body["output_config"] = {"format": {"type": "json_schema", "schema": request.schema}}
        return body


def conversation(messages: Sequence[ChatMessage]) -> list[dict[str, Any]]:
    """Messages as the API wants them: alternating roles, a person first, no blank text.

    Each message stays a block of its own, and the last but one carries the cache mark: everything
    up to it will be there again next time, while the last message is made anew for each request.
    """
    said = [one for one in messages if one.text.strip()]
    if not said or said[0].role != "user":
        said.insert(0, ChatMessage("user", _OPENING))
    turns: list[dict[str, Any]] = []
    for number, one in enumerate(said):
        block: dict[str, Any] = {"type": "text", "text": one.text}
        if number == len(said) - 2:
            block["cache_control"] = _EPHEMERAL
        if not turns or turns[-1]["role"] != one.role:
            turns.append({"role": one.role, "content": []})
        turns[-1]["content"].append(block)
    return turns


class MessageCollector(Gathering):
    """Gathers one message, streamed or whole; see `Gathering`."""

    reason_field = "stop_reason"

    def __init__(self, fail: Callable[..., ModelError], *, finish_required: bool = True) -> None:
        super().__init__(fail, finish_required=finish_required)
        self._tokens: dict[str, Any] = {}
        self._explanation: str | None = None
        self._begun = False
        self._handlers: dict[str, Callable[[dict[str, Any]], str | None]] = {
            "message_start": self._start,
            "content_block_start": self._block,
            "content_block_delta": self._delta,
            "message_delta": self._stop,
            "message_stop": self._close,
        }

    @property
    def cache_write_tokens(self) -> int:
        """The part of the input tokens that was written to the prompt cache."""
        return count(self._tokens.get("cache_creation_input_tokens"))

    @property
    def usage(self) -> Usage:
        """Tokens so far; `input_tokens` is the total, what the cache gave or took included."""
        cached = count(self._tokens.get("cache_read_input_tokens"))
        details = mapping(self._tokens.get("output_tokens_details"))
        return Usage(
            input_tokens=count(self._tokens.get("input_tokens")) + cached + self.cache_write_tokens,
            cached_tokens=cached,
            output_tokens=count(self._tokens.get("output_tokens")),
            reasoning_tokens=count(details.get("thinking_tokens")),
        )

    def feed(self, data: str) -> str | None:
        """Take one event of the stream; see `Collector.feed`. Unknown events are ignored, as the API asks."""
        body = self._event(data)
        handler = self._handlers.get(str(body.get("type")))
        return handler(body) if handler else None

    def whole(self, body: Any) -> None:
        """Take an answer that came in one piece."""
        message = self._checked(body)
        blocks = message.get("content")
        if not is_list(blocks):
            raise self._fail("bad_response", "the answer holds no content")
        self._start({"message": message})
        for block in blocks:
            self._piece(mapping(block))
        self._stop({"delta": message})
        self._reject_full_context()

    def end(self) -> None:
        """Complain about a stream that stopped early."""
        if self._done and not self._begun:
            raise self._fail("bad_response", "the answer holds no message")
        self._refuse_early_end()
        self._reject_full_context()

    def reply(self, arrival: Arrival, model: str) -> ModelReply:
        """The finished reply; `model` names it when the server did not."""
        return ModelReply(
            text=self.text,
            finish=_FINISH.get(self._finish or "", "unknown"),
            refusal=self._explanation if self._finish == "refusal" else None,
            reasoning=joined(self._reasoning) or None,
            usage=self.usage,
            model=self._model or model,
            request_id=arrival.request_id or self._id,
            first_token_ms=arrival.first_token_ms,
            total_ms=arrival.total_ms,
        )

    def _reject_full_context(self) -> None:
        if self._finish == _CONTEXT_FULL:
            raise self._fail("context_window", "the reply ran into the end of the context window")

    def _start(self, event: dict[str, Any]) -> None:
        message = mapping(event.get("message"))
        self._begun = True
        self._model = str(message.get("model") or "")
        self._id = str(message["id"]) if message.get("id") else None
        self._count(message.get("usage"))

    def _block(self, event: dict[str, Any]) -> str | None:
        return self._piece(mapping(event.get("content_block")))

    def _delta(self, event: dict[str, Any]) -> str | None:
        return self._piece(mapping(event.get("delta")))

    def _piece(self, piece: dict[str, Any]) -> str | None:
        text = piece.get("text")
        thinking = piece.get("thinking")
        if isinstance(thinking, str) and thinking:
            self._reasoning.append(thinking)
            return ""
        if isinstance(text, str) and text:
            self._parts.append(text)
            return text
        return None

    def _stop(self, event: dict[str, Any]) -> None:
        delta = mapping(event.get("delta"))
        reason = delta.get("stop_reason")
        if isinstance(reason, str) and reason:
            self._finish = reason
        explanation = mapping(delta.get("stop_details")).get("explanation")
        if isinstance(explanation, str) and explanation:
            self._explanation = explanation
        self._count(event.get("usage"))

    def _close(self, event: dict[str, Any]) -> None:
        del event
        self._done = True

    def _count(self, usage: Any) -> None:
        self._tokens |= {key: value for key, value in mapping(usage).items() if value is not None}
