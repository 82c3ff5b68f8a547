"""A real HTTP server that plays a model provider, on a free port of the loopback, in a thread of its own.

It speaks OpenAI's chat completions (`url`) and Anthropic's Messages API (`root`). What it does is chosen by the
model's name, see `SCENARIOS`; the model `script` answers with what was queued by `say`. A second port (`raw_url`,
`raw_root`) resets connections: `rst` in the middle of a stream, `rst0` before any answer.

```python
with FakeProvider() as provider:
    provider.say({"taskComplete": True, "message": "Done."})
    ...  # run an agent with model f"{provider.url}#script"
    assert provider.bodies("script")[0]["messages"]
```
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import threading
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from email.utils import formatdate
from types import TracebackType
from typing import Any, Self

import uvicorn

from tests.fakes.wire import FORMATS, Format, Said, sse


STALL_SECONDS = 30.0
"""How long a scenario that hangs does so; it ends at once when the server closes."""
Send = Callable[[dict[str, Any]], Awaitable[None]]
Receive = Callable[[], Awaitable[dict[str, Any]]]


@dataclass(frozen=True)
class Seen:
    """One request as it came in."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def model(self) -> str:
        return str(self.body.get("model"))


class FakeProvider:
    """The server; a context manager that starts and stops it."""

    def __init__(self) -> None:
        self.seen: list[Seen] = []
        self.disconnects: Counter[str] = Counter()
        """How often a client left before its answer was complete, by model."""
        self.root = self.url = self.raw_root = self.raw_url = ""
        self._script: deque[Said | int] = deque()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="fake-provider")

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(10), "the fake provider did not start"
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._stop)
        self._thread.join(10)
        assert not self._thread.is_alive(), "the fake provider did not stop"

    def say(self, *replies: str | dict[str, Any] | Said | int) -> None:
        """Queue answers of the model `script`: texts, objects, `Said`, or HTTP statuses to fail with."""
        for reply in replies:
            if isinstance(reply, dict):
                reply = json.dumps(reply, ensure_ascii=False)  # noqa: PLW2901 - an object is its text
            self._script.append(Said(reply) if isinstance(reply, str) else reply)

    def go_on(self) -> None:
        """Let a stream that waits before a text (`Said.held_before`) go on, now or when it comes there."""
        self._loop.call_soon_threadsafe(self._gate.release)

    def reset(self) -> None:
        """Forget everything that was seen and queued."""
        self.seen.clear()
        self.disconnects.clear()
        self._script.clear()

    def bodies(self, model: str) -> list[dict[str, Any]]:
        """The request bodies that named a model, oldest first."""
        return [one.body for one in self.seen if one.model == model]

    def wait_for_disconnect(self, model: str, seconds: float = 3.0) -> bool:
        """Whether the server notices within some seconds that a client left."""
        due = time.monotonic() + seconds
        while time.monotonic() < due and not self.disconnects[model]:
            time.sleep(0.01)
        return self.disconnects[model] > 0

    def _run(self) -> None:
        asyncio.run(self._serve())

    def _stop(self) -> None:
        self._closing.set()
        self._server.should_exit = True

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._closing = asyncio.Event()
        self._gate = asyncio.Semaphore(0)
        config = uvicorn.Config(
            self._app,
            interface="asgi3",
            http="h11",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            timeout_graceful_shutdown=2,
        )
        self._server = uvicorn.Server(config)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            raw = await asyncio.start_server(self._reset, "127.0.0.1", 0)
            self.root = f"http://127.0.0.1:{listener.getsockname()[1]}"
            self.raw_root = f"http://127.0.0.1:{raw.sockets[0].getsockname()[1]}"
            self.url, self.raw_url = f"{self.root}/v1", f"{self.raw_root}/v1"
            self._ready.set()
            async with raw:
                await self._server.serve(sockets=[listener])

    # --- the ordinary port ---

    async def _app(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        body = await _read(receive)
        headers = {key.decode(): value.decode() for key, value in scope["headers"]}
        seen = Seen(scope["path"], headers, json.loads(body or b"{}"))
        self.seen.append(seen)
        wire = FORMATS.get(seen.path)
        if wire is None:
            await Answer(send).json(404, {"error": {"message": f"no such path {seen.path}"}})
            return
        playing = asyncio.ensure_future(self._play(seen, wire, Answer(send)))
        leaving = asyncio.ensure_future(receive())
        await asyncio.wait({playing, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not playing.done():
            self.disconnects[seen.model] += 1
            playing.cancel()
        leaving.cancel()
        await asyncio.gather(playing, leaving, return_exceptions=True)

    async def _play(self, seen: Seen, wire: Format, answer: Answer) -> None:
        name = seen.model
        before = len(self.bodies(name)) - 1
        if name == "script":
            await self._play_script(seen, wire, answer)
        elif name in FAILURES:
            status, message, code, headers = FAILURES[name]
            if name.endswith("-once") and before:
                await self._speak(seen, wire, answer, Said())
                return
            if headers.get("retry-after") == "date":
                headers = {"retry-after": formatdate(time.time() + 2, usegmt=True)}
            await answer.json(status, wire.error(status, message, code), headers)
        else:
            await self._speak(seen, wire, answer, SAID.get(name, Said()))

    async def _play_script(self, seen: Seen, wire: Format, answer: Answer) -> None:
        said = self._script.popleft() if self._script else 400
        if isinstance(said, int):
            code = "server_error" if said >= 500 else "invalid_request"
            await answer.json(said, wire.error(said, "nothing is queued", code))
        else:
            await self._speak(seen, wire, answer, said)

    async def _speak(self, seen: Seen, wire: Format, answer: Answer, said: Said) -> None:
        """Give a reply whole or as a stream, with the fault that the model's name stands for."""
        name = seen.model
        if name == "html":
            await answer.html(
                200, "<html><head><title>Sign in</title></head><body>Welcome</body></html>"
            )
        elif name == "cut-500":
            await answer.begin(500, "application/json")
            await answer.push(b'{"error": {"mess')
        elif name == "error-in-ok":
            await answer.json(200, wire.error(200, "upstream is overloaded", "server_error"))
        elif name in {"hang", "slow-whole"}:
            await self._pause(STALL_SECONDS if name == "hang" else 0.3)
            await answer.json(200, wire.whole(said, name))
        elif seen.body.get("stream") and name != "no-stream":
            await self._stream(wire, answer, said, name)
        elif name == "badjson":
            await answer.raw(200, b'{"choices": [{"mess', "application/json")
        elif name == "nochoices":
            await answer.json(200, wire.empty(said, name))
        else:
            await answer.json(200, wire.whole(said, name), {"x-request-id": "req-7"})

    async def _stream(self, wire: Format, answer: Answer, said: Said, name: str) -> None:
        parts = Parts(
            wire.start(said, name), wire.body(said, name), wire.end(said, name), wire.mark()
        )
        broken = {
            "nochoices": sse(wire.empty(said, name)),
            "badjson": sse('{"choices": [{"del'),
            "sse-err": sse(wire.error(200, "the engine stopped", "server_error"), "error"),
        }
        await answer.begin(200, "text/event-stream", {"x-request-id": "req-7"})
        held_at = {len(parts.start) + number for number in said.held_at}
        for number, piece in enumerate(
            STREAMS.get(name, Parts.whole)(parts, broken.get(name, b""))
        ):
            if number in held_at:
                await self._gate.acquire()
            if isinstance(piece, bytes):
                await answer.push(piece)
            else:
                await self._pause(piece)
        if name != "cut":  # without a last chunk the connection is closed in the middle
            await answer.finish()

    async def _pause(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._closing.wait()
        except TimeoutError:
            return

    # --- the port that resets connections ---

    async def _reset(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        lines = [line.partition(":") for line in head.split("\r\n")[1:] if line]
        headers = {key.strip().lower(): value.strip() for key, _, value in lines}
        body = json.loads(await reader.readexactly(int(headers.get("content-length", "0"))))
        seen = Seen(head.split(" ")[1], headers, body)
        self.seen.append(seen)
        if seen.model != "rst0":
            wire = FORMATS[seen.path]
            events = wire.start(Said(), seen.model) + wire.body(Said(), seen.model)
            content = b"".join(events[: len(events) // 2])
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n")
            writer.write(
                b"transfer-encoding: chunked\r\n\r\n%x\r\n%s\r\n" % (len(content), content)
            )
            await writer.drain()
            await self._pause(0.1)  # what was sent must arrive before the reset overtakes it
        connection = writer.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()


@dataclass(frozen=True)
class Parts:
    """The events of a good stream, for faults to be made of."""

    start: list[bytes]
    body: list[bytes]
    end: list[bytes]
    mark: list[bytes]

    @property
    def half(self) -> list[bytes]:
        return self.start + self.body[: len(self.body) // 2]

    def whole(self, _: bytes) -> list[bytes | float]:
        return [*self.start, *self.body, *self.end, *self.mark]


STREAMS: dict[str, Callable[[Parts, bytes], list[bytes | float]]] = {
    "keepalive": lambda _, __: [b": still here\n\n", 0.05] * 300,
    "nochoices": lambda parts, event: [event, *parts.mark],
    "badjson": lambda parts, event: [*parts.half, event],
    "sse-err": lambda parts, event: [*parts.half, event],
    "stall": lambda parts, _: [*parts.half, STALL_SECONDS],
    "late-end": lambda parts, _: [*parts.start, *parts.body, parts.end[0], STALL_SECONDS],
    "flood": lambda parts, _: [b"".join(parts.body * 100), 0.001] * 100,
    "cut": lambda parts, _: list(parts.half),
    "eof": lambda parts, _: list(parts.half),
    "slow": lambda parts, _: [one for piece in parts.whole(b"") for one in (piece, 0.02)],
    "nodone": lambda parts, _: [*parts.start, *parts.body, *parts.end],
}
"""What a stream is made of in each scenario: events, and pauses in seconds between them."""


class Answer:
    """Sends one HTTP answer."""

    def __init__(self, send: Send) -> None:
        self._send = send

    async def begin(self, status: int, kind: str, headers: dict[str, str] | None = None) -> None:
        listed = {"content-type": kind, **(headers or {})}
        pairs = [(key.encode(), value.encode()) for key, value in listed.items()]
        await self._send({"type": "http.response.start", "status": status, "headers": pairs})

    async def push(self, *pieces: bytes) -> None:
        for piece in pieces:
            await self._send({"type": "http.response.body", "body": piece, "more_body": True})

    async def finish(self) -> None:
        await self._send({"type": "http.response.body", "body": b""})

    async def raw(
        self, status: int, body: bytes, kind: str, headers: dict[str, str] | None = None
    ) -> None:
        await self.begin(status, kind, headers)
        await self.push(body)
        await self.finish()

    async def json(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        await self.raw(status, json.dumps(body).encode(), "application/json", headers)

    async def html(self, status: int, text: str) -> None:
        await self.raw(status, text.encode(), "text/html; charset=utf-8")


async def _read(receive: Receive) -> bytes:
    body = bytearray()
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            return bytes(body)


FAILURES: dict[str, tuple[int, str, str, dict[str, str]]] = {
    "rl-once": (429, "Rate limit reached.", "rate_limit_exceeded", {"retry-after": "0"}),
    "rl-date": (429, "Rate limit reached.", "rate_limit_exceeded", {"retry-after": "date"}),
    "rl-ms": (429, "Rate limit reached.", "rate_limit_exceeded", {"retry-after-ms": "1500"}),
    "rl-forever": (429, "Rate limit reached.", "rate_limit_exceeded", {"retry-after": "1"}),
    "rl-long": (429, "Rate limit reached.", "rate_limit_exceeded", {"retry-after": "120"}),
    "rl-quota": (429, "You exceeded your quota.", "insufficient_quota", {}),
    "e500-once": (500, "Internal error.", "server_error", {}),
    "e500": (500, "Internal error.", "server_error", {}),
    "e529": (529, "Overloaded.", "overloaded_error", {}),
    "auth": (401, "Incorrect API key provided: sk-test-1234567890.", "invalid_api_key", {}),
    "echo": (400, "bad header authorization: Bearer plain-secret-42", "invalid_request", {}),
    "e400": (400, "Unknown parameter: 'colour'.", "invalid_request_error", {}),
    "ctx": (
        400,
        "prompt is too long: 210000 tokens > 200000 maximum",
        "context_length_exceeded",
        {},
    ),
    "filter-400": (400, "The prompt was filtered.", "content_filter", {}),
    "gone": (404, "The model does not exist.", "model_not_found", {}),
    "moved": (307, "Moved.", "", {"location": "http://127.0.0.1:9/v1/chat/completions"}),
}
"""Scenarios that fail: status, message, code, headers. Those named `…-once` answer the second time."""
SAID: dict[str, Said] = {
    "empty": Said(text=""),
    "filter": Said(text="", finish="content_filter"),
    "refusal": Said(refusal="I cannot help with that."),
    "length": Said(text='{"taskComplete": fal', finish="length"),
    "broken": Said(text="{", finish="error"),
    "full": Said(text="{", finish="model_context_window_exceeded"),
    "reasoning": Said(reasoning="Let me think.", reasoning_tokens=12),
    "cached": Said(cached_tokens=100, written_tokens=15),
    "nulls": Said(null_details=True),
}
"""Scenarios that reply. All other names reply as usual, some with a fault of the wire."""
WIRE_FAULTS = (
    "html",
    "error-in-ok",
    "cut-500",
    "hang",
    "slow-whole",
    "no-stream",
    "badjson",
    "nochoices",
)
SCENARIOS = ("ok", "script", "rst", "rst0", *WIRE_FAULTS, *STREAMS, *FAILURES, *SAID)
