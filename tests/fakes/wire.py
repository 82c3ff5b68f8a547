"""What the fake provider says, in the two wire formats it speaks."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, ClassVar


REPLY = '{"taskComplete": true, "message": "Olá from the fake provider: everything is done."}'


@dataclass(frozen=True)
class Said:
    """A reply of the fake model, before it is put into a wire format."""

    text: str = REPLY
    finish: str = "stop"
    refusal: str = ""
    reasoning: str = ""
    input_tokens: int = 120
    cached_tokens: int = 0
    written_tokens: int = 0
    output_tokens: int = 30
    reasoning_tokens: int = 0
    null_details: bool = False
    held_before: tuple[str, ...] = ()
    """Texts before which a stream waits until the server is told to go on."""

    @property
    def pieces(self) -> list[str]:
        """The text in small pieces, cut without regard for words."""
        return [piece for part in self.parts for piece in _cut(part)]

    @property
    def parts(self) -> list[str]:
        """The text, cut where a stream waits."""
        places = sorted(self.text.index(one) for one in self.held_before)
        ends = [*places, len(self.text)]
        return [self.text[start:end] for start, end in zip([0, *places], ends, strict=True)]

    @property
    def held_at(self) -> set[int]:
        """Before which pieces a stream waits."""
        counts = [len(_cut(part)) for part in self.parts]
        return {sum(counts[:number]) for number in range(1, len(counts))}


def _cut(text: str) -> list[str]:
    return [text[at : at + 8] for at in range(0, len(text), 8)]


def sse(data: Any, event: str = "") -> bytes:
    """One server-sent event."""
    text = data if isinstance(data, str) else json.dumps(data)
    head = f"event: {event}\n" if event else ""
    return f"{head}data: {text}\n\n".encode()


class ChatFormat:
    """OpenAI's chat completions."""

    @staticmethod
    def usage(said: Said) -> dict[str, Any]:
        given: Any = {"cached_tokens": said.cached_tokens}
        made: Any = {"reasoning_tokens": said.reasoning_tokens}
        return {
            "prompt_tokens": said.input_tokens,
            "completion_tokens": said.output_tokens,
            "total_tokens": said.input_tokens + said.output_tokens,
            "prompt_tokens_details": None if said.null_details else given,
            "completion_tokens_details": None if said.null_details else made,
        }

    def whole(self, said: Said, model: str) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": said.text}
        if said.refusal:
            message |= {"refusal": said.refusal, "content": None}
        if said.reasoning:
            message["reasoning_content"] = said.reasoning
        choice = {"index": 0, "message": message, "finish_reason": said.finish}
        return {"id": "chat-1", "model": model, "choices": [choice], "usage": self.usage(said)}

    def start(self, said: Said, model: str) -> list[bytes]:
        del said
        return [self._chunk(model, {"role": "assistant", "content": ""})]

    def body(self, said: Said, model: str) -> list[bytes]:
        events = (
            [self._chunk(model, {"reasoning_content": said.reasoning})] if said.reasoning else []
        )
        if said.refusal:
            return [*events, self._chunk(model, {"refusal": said.refusal})]
        return events + [self._chunk(model, {"content": piece}) for piece in said.pieces]

    def end(self, said: Said, model: str) -> list[bytes]:
        usage = {"id": "chat-1", "model": model, "choices": [], "usage": self.usage(said)}
        return [self._chunk(model, {}, said.finish), sse(usage)]

    def mark(self) -> list[bytes]:
        return [sse("[DONE]")]

    def empty(self, said: Said, model: str) -> dict[str, Any]:
        return {"id": "chat-1", "model": model, "choices": [], "usage": self.usage(said)}

    def error(self, status: int, message: str, code: str) -> dict[str, Any]:
        del status
        return {"error": {"message": message, "type": code, "code": code, "param": None}}

    @staticmethod
    def _chunk(model: str, delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return sse({"id": "chat-1", "model": model, "choices": [choice]})


class MessagesFormat:
    """Anthropic's Messages API."""

    STOPS: ClassVar = {"stop": "end_turn", "length": "max_tokens", "content_filter": "refusal"}
    CODES: ClassVar = {
        "rate_limit_exceeded": "rate_limit_error",
        "insufficient_quota": "billing_error",
        "server_error": "overloaded_error",
        "invalid_api_key": "authentication_error",
        "context_length_exceeded": "invalid_request_error",
    }

    def _stop(self, said: Said) -> dict[str, Any]:
        reason = "refusal" if said.refusal else self.STOPS.get(said.finish, said.finish)
        details = {"type": "refusal", "explanation": said.refusal} if said.refusal else None
        return {"stop_reason": reason, "stop_sequence": None, "stop_details": details}

    @staticmethod
    def _usage(said: Said) -> dict[str, Any]:
        fresh = said.input_tokens - said.cached_tokens - said.written_tokens
        return {
            "input_tokens": fresh,
            "cache_creation_input_tokens": None if said.null_details else said.written_tokens,
            "cache_read_input_tokens": None if said.null_details else said.cached_tokens,
            "output_tokens": 1,
        }

    def whole(self, said: Said, model: str) -> dict[str, Any]:
        thinking = [{"type": "thinking", "thinking": said.reasoning, "signature": "s"}]
        text = [{"type": "text", "text": said.text}]
        return {
            "id": "msg-1",
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": (thinking if said.reasoning else []) + ([] if said.refusal else text),
            "usage": self._usage(said) | {"output_tokens": said.output_tokens},
            **self._stop(said),
        }

    def start(self, said: Said, model: str) -> list[bytes]:
        message = {"id": "msg-1", "type": "message", "model": model, "content": []}
        started = {"type": "message_start", "message": message | {"usage": self._usage(said)}}
        return [sse(started, "message_start"), sse({"type": "ping"}, "ping")]

    def body(self, said: Said, model: str) -> list[bytes]:
        del model
        events: list[bytes] = []
        if said.reasoning:
            events += self._block(0, "thinking", [said.reasoning])
        pieces = [] if said.refusal else said.pieces
        return events + self._block(len(events) and 1, "text", pieces)

    def end(self, said: Said, model: str) -> list[bytes]:
        del model
        usage = {"output_tokens": said.output_tokens}
        event = {"type": "message_delta", "delta": self._stop(said), "usage": usage}
        return [sse(event, "message_delta")]

    def mark(self) -> list[bytes]:
        return [sse({"type": "message_stop"}, "message_stop")]

    def empty(self, said: Said, model: str) -> dict[str, Any]:
        return {"id": "msg-1", "type": "message", "model": model, "usage": self._usage(said)}

    def error(self, status: int, message: str, code: str) -> dict[str, Any]:
        del status
        kind = self.CODES.get(code, code)
        return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req-1"}

    @staticmethod
    def _block(index: int, kind: str, pieces: list[str]) -> list[bytes]:
        first = {"type": "content_block_start", "index": index}
        last = {"type": "content_block_stop", "index": index}
        deltas = [
            {
                "type": "content_block_delta",
                "index": index,
                "delta": {"type": f"{kind}_delta", kind: piece},
            }
            for piece in pieces
        ]
        return [
            sse(event, str(event["type"]))
            for event in [{**first, "content_block": {"type": kind, kind: ""}}, *deltas, last]
        ]


Format = ChatFormat | MessagesFormat
FORMATS: dict[str, Format] = {
    "/v1/chat/completions": ChatFormat(),
    "/v1/messages": MessagesFormat(),
}
