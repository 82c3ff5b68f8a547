"""One HTTP call to a model provider: timeouts, size limits, server-sent events, errors by kind.

A call is one attempt; nothing here retries. The wire format is a `Collector`'s business.
"""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import aclosing, suppress
from dataclasses import asdict, dataclass
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Protocol

import httpx2

from loopagent.egress import EgressDeniedError
from loopagent.egress.client import GuardedClient, operator_policy
from loopagent.egress.decoding import TooLongError, decoded
from loopagent.errors import ConfigError, ModelError, ModelErrorKind
from loopagent.models.faults import complaint_of, fault, kind_of, retry_after_seconds
from loopagent.models.values import joined, split_half


if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping

    from loopagent.ports import DeltaSink, Usage


MAX_ERROR_BYTES = 64 * 1024
"""How much of the body of a failed request is read."""
_REQUEST_ID_HEADERS = ("x-request-id", "request-id")
_MULTIPLE_CHOICES = 300
_KINDS: tuple[tuple[type[Exception], ModelErrorKind], ...] = (
    (httpx2.ConnectTimeout, "connection"),
    (httpx2.TimeoutException, "timeout"),
    (httpx2.LocalProtocolError, "config"),
    (httpx2.UnsupportedProtocol, "config"),
    (httpx2.InvalidURL, "config"),
    (httpx2.DecodingError, "bad_response"),
    (httpx2.HTTPError, "connection"),
)


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """Limits of one call; all times in seconds.

    `idle_seconds`: longest silence on the wire of a streamed reply, keep-alive comments count as
    noise.
    `first_token_seconds`: longest wait for the first piece of a streamed reply, and between two
    pieces, however many keep-alives come meanwhile.
    `wait_seconds`: longest silence when the reply comes in one piece.
    `drain_seconds`: how long the rest of a stream (usage, end mark) is waited for once the reply is
    complete.
    `proxy`: address of a proxy; those that the environment names for other programs are not used.
    """

    connect_seconds: float = 5.0
    idle_seconds: float = 120.0
    first_token_seconds: float = 300.0
    wait_seconds: float = 600.0
    drain_seconds: float = 5.0
    max_reply_bytes: int = 4 * 1024 * 1024
    proxy: str | None = None


@dataclass(frozen=True, slots=True)
class Arrival:
    """When and under which id a reply came."""

    request_id: str | None
    first_token_ms: float | None
    total_ms: float


class Collector(Protocol):
    """Understands one wire format and gathers one reply. Raises `ModelError` for what cannot be a reply."""

    @property
    def text(self) -> str:
        """Reply text so far."""
        ...

    @property
    def usage(self) -> Usage:
        """Tokens reported so far."""
        ...

    @property
    def complete(self) -> bool:
        """Whether the reply has ended; what may still come is usage and an end mark."""
        ...

    def feed(self, data: str) -> str | None:
        """Take the data of one server-sent event.

        Returns:
            The reply text that it brought; "" for other progress (reasoning); None when it brought
            nothing.
        """
        ...

    def whole(self, body: Any) -> None:
        """Take the body of an answer that came in one piece."""
        ...

    def end(self) -> None:
        """The stream has ended: complain if the reply is not complete."""
        ...


class SseReader:
    """Server-sent events from pieces of bytes: each event's data, whatever the pieces' borders."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._data: list[str] = []
        self._started = False

    def feed(self, piece: bytes) -> list[str]:
        """The data of every event that this piece completes."""
        if not self._started:
            piece = piece.removeprefix(b"\xef\xbb\xbf")
            self._started = True
        if b"\n" not in piece:
            self._pieces.append(piece)
            return []
        *lines, rest = b"".join([*self._pieces, piece]).split(b"\n")
        self._pieces = [rest]
        return [data for data in map(self._line, lines) if data is not None]

    def end(self) -> list[str]:
        """The data of an event that the end of the stream cut short of its blank line."""
        last = self._line(b"".join(self._pieces))
        left = self._line(b"")
        self._pieces = []
        return [data for data in (last, left) if data is not None]

    def _line(self, raw: bytes) -> str | None:
        line = raw.removesuffix(b"\r").decode("utf-8", "replace")
        if not line and self._data:
            data, self._data = "\n".join(self._data), []
            return data
        if line.startswith("data:"):
            self._data.append(line[5:].removeprefix(" "))
        return None


def clean_key(key: str, name: str) -> str:
    """The key without surrounding blanks.

    Raises:
        ConfigError: It cannot be an HTTP header; the message does not show it.
    """
    key = key.strip()
    if not key.isascii() or not key.isprintable() or " " in key:
        raise ConfigError(
            f"The API key for {name} holds blanks, line breaks or characters outside ASCII; copy it again."
        )
    return key


class Wire:
    """A provider's address and how to call it.

    Args:
        name: `provider:model`, for messages.
        url: Where to post to.
        headers: Sent with every request; may hold the key.
        secrets: Texts that no error message may show.
        settings: Timeouts and limits.
        clock: Seconds since the epoch, for servers that name a date to come back at.
    """

    def __init__(
        self,
        name: str,
        url: str,
        *,
        headers: Mapping[str, str],
        secrets: tuple[str, ...] = (),
        settings: HttpSettings | None = None,
        clock: Callable[[], float] = time.time,  # noqa: TID251 - dates of servers are real time
    ) -> None:
        self._name = name
        self._clock = clock
        self._url = url
        self._headers = {**headers, "accept-encoding": "identity", "user-agent": "loopagent"}
        self._secrets = tuple(one for one in secrets if one)
        self._settings = settings or HttpSettings()
        self._policy = operator_policy(url, proxy=self._settings.proxy)
        self._client: GuardedClient | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def error(self, kind: ModelErrorKind, detail: str = "", **more: Any) -> ModelError:
        """A `ModelError` about this provider that is safe to show."""
        return fault(self._name, kind, detail, secrets=self._secrets, **more)

    async def aclose(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        if client is not None and self._loop is asyncio.get_running_loop():
            await client.aclose()

    async def call(
        self, body: Mapping[str, Any], collector: Collector, on_delta: DeltaSink | None
    ) -> Arrival:
        """Post once and fill the collector.

        Args:
            body: The request as JSON.
            collector: Gathers the reply.
            on_delta: Gets reply text as it arrives; the request must ask for a stream when given.

        Raises:
            ModelError: With the text that had arrived and the usage that was reported.
        """
        try:
            return await self._post(body, collector, on_delta)
        except ModelError as error:
            self._blame(error, collector)
            raise
        except EgressDeniedError as cause:
            raise self.error("config", f"{cause}: {cause.reason}") from cause
        except (httpx2.HTTPError, httpx2.InvalidURL) as cause:
            kind = _kind_of_exception(cause)
            failure = self.error(kind, f"{type(cause).__name__} {cause}".strip())
            self._blame(failure, collector)
            raise failure from cause

    @staticmethod
    def _blame(error: ModelError, collector: Collector) -> None:
        error.partial = collector.text
        usage = asdict(collector.usage)
        error.usage = usage if any(usage.values()) else {}

    async def _post(
        self, body: Mapping[str, Any], collector: Collector, on_delta: DeltaSink | None
    ) -> Arrival:
        started = time.perf_counter()
        bounds = self._settings
        silence = bounds.wait_seconds if on_delta is None else bounds.idle_seconds
        limits = httpx2.Timeout(silence, connect=bounds.connect_seconds)
        content = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        first: float | None = None
        async with self._open().stream(
            "POST", self._url, content=content, timeout=limits
        ) as answer:
            if answer.status_code >= _MULTIPLE_CHOICES:
                raise await self._refused(answer)
            if on_delta is not None and _streams(answer):
                first = await self._follow(answer, collector, on_delta)
            else:
                collector.whole(await self._json(answer))
                await _emit(on_delta, collector.text)
        request_id = next(
            (answer.headers[key] for key in _REQUEST_ID_HEADERS if key in answer.headers), None
        )
        first_ms = None if first is None else (first - started) * 1000.0
        return Arrival(request_id, first_ms, (time.perf_counter() - started) * 1000.0)

    def _open(self) -> GuardedClient:
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:
            headers = {**self._headers, "content-type": "application/json"}
            self._client = GuardedClient(self._policy, headers=headers)
            self._loop = loop
        return self._client

    async def _refused(self, answer: httpx2.Response) -> ModelError:
        body = bytearray()
        with suppress(httpx2.HTTPError, TooLongError):  # what came, and the status, say enough
            async with aclosing(decoded(answer, MAX_ERROR_BYTES)) as pieces:
                async for piece in pieces:
                    body += piece
        complaint = complaint_of(bytes(body[:MAX_ERROR_BYTES]))
        status = answer.status_code
        wait = retry_after_seconds(answer.headers, now=self._clock())
        return self.error(
            kind_of(status, complaint), complaint.message, status=status, retry_after=wait
        )

    async def _pieces(self, answer: httpx2.Response) -> AsyncGenerator[bytes, None]:
        most = self._settings.max_reply_bytes
        try:
            async with aclosing(decoded(answer, most)) as pieces:
                async for piece in pieces:
                    yield piece
        except TooLongError as cause:
            raise self.error("bad_response", f"longer than {most} bytes") from cause

    async def _json(self, answer: httpx2.Response) -> Any:
        body = b"".join([piece async for piece in self._pieces(answer)])
        try:
            return json.loads(body)
        except (ValueError, RecursionError):
            told = body[:4000].decode("utf-8", "replace")
            raise self.error(
                "bad_response", f"not JSON: {told}" if told[:1] != "<" else told
            ) from None

    async def _follow(
        self, answer: httpx2.Response, collector: Collector, on_delta: DeltaSink
    ) -> float | None:
        """Read a stream to its end; returns when the first reply text came (`time.perf_counter`)."""
        patience = self._settings.first_token_seconds
        clock = asyncio.timeout(patience)
        intake = _Intake(collector, on_delta, clock, self._settings)
        try:
            async with clock, aclosing(self._pieces(answer)) as pieces:
                await intake.drain(pieces)
        except TimeoutError as cause:
            if not clock.expired():
                raise
            if not collector.complete:
                detail = f"no new piece of the reply within {patience:g} s"
                raise self.error("timeout", detail) from cause
        except httpx2.TransportError:
            if not collector.complete:
                raise
        collector.end()
        return intake.first_at


class _Intake:
    """Hands the events of a stream to the collector and the sink, and winds the clock at each progress."""

    def __init__(
        self,
        collector: Collector,
        on_delta: DeltaSink,
        clock: asyncio.Timeout,
        bounds: HttpSettings,
    ) -> None:
        self._collector = collector
        self._on_delta = on_delta
        self._clock = clock
        self._bounds = bounds
        self._half = ""
        self.first_at: float | None = None

    async def drain(self, pieces: AsyncIterator[bytes]) -> None:
        reader = SseReader()
        async for piece in pieces:
            for data in reader.feed(piece):
                await self._take(data)
        for data in reader.end():
            await self._take(data)

    async def _take(self, data: str) -> None:
        was_complete = self._collector.complete
        text = self._collector.feed(data)
        if self._collector.complete:
            if not was_complete:
                self._wind(self._bounds.drain_seconds)
        elif text is not None:
            self._wind(self._bounds.first_token_seconds)
        text, self._half = split_half(self._half + (text or ""))
        if text:
            self.first_at = self.first_at or time.perf_counter()
            await _emit(self._on_delta, joined([text]))

    def _wind(self, seconds: float) -> None:
        if not self._clock.expired():
            self._clock.reschedule(asyncio.get_running_loop().time() + seconds)


def _kind_of_exception(cause: Exception) -> ModelErrorKind:
    for types, kind in _KINDS:
        if isinstance(cause, types):
            return kind
    return "connection"


def _streams(answer: httpx2.Response) -> bool:
    kind = answer.headers.get("content-type", "").lower()
    return "json" not in kind and "html" not in kind


async def _emit(sink: DeltaSink | None, text: str) -> None:
    if sink is None or not text:
        return
    wait = sink(text)
    if isawaitable(wait):
        await wait
