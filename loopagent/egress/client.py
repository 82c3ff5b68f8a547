"""Requests under a policy: bounded in time and size, without cookies, redirects or proxies of the environment."""

from __future__ import annotations

import asyncio
import re
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import httpx2

from loopagent.egress.addresses import LOCAL_NETWORKS
from loopagent.egress.decoding import ACCEPTED, decoded
from loopagent.egress.policy import DEFAULT_PORTS, EgressDeniedError, EgressPolicy, plain_host
from loopagent.egress.transport import Dialler, GuardedTransport, Resolver, resolve
from loopagent.errors import ConfigError
from loopagent.tracecontext import trace_headers


if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping

AGENT: Final = "loopagent"
MAX_URL_CHARS: Final = 8_192
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE: Final = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_OURS: Final = frozenset(
    {
        "host",
        "content-length",
        "transfer-encoding",
        "connection",
        "upgrade",
        "te",
        "trailer",
        "keep-alive",
        "accept-encoding",
    }
)
"""Headers that only the client itself may set: with them one request could pass for two, or for another host's."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How long a request may take, and how large an unpacked answer may be."""

    connect_seconds: float = 5.0
    total_seconds: float = 30.0
    max_bytes: int = 5_000_000


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer that arrived whole; `body` is unpacked."""

    status: int
    headers: httpx2.Headers
    body: bytes = field(repr=False)


class GuardedClient:
    """The only way to send an HTTP request; `aclose` ends its connections.

    Args:
        policy: Where requests may go.
        headers: Sent with every request.
        resolver: Gives the addresses of a name.
        network: Dials an address.
        trust: Certificates that are trusted; None for those of the system.
        max_connections: Connections at the same time; None for any number.
    """

    def __init__(
        self,
        policy: EgressPolicy,
        *,
        headers: Mapping[str, str] | None = None,
        resolver: Resolver = resolve,
        network: Dialler | None = None,
        trust: ssl.SSLContext | None = None,
        max_connections: int | None = None,
    ) -> None:
        self._transport = GuardedTransport(
            policy,
            resolver=resolver,
            network=network,
            trust=trust,
            max_connections=max_connections,
        )
        self._headers = {
            "accept": "*/*",
            "accept-encoding": ACCEPTED,
            "user-agent": AGENT,
            **_lower(headers or {}),
        }

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        url: str,
        *,
        headers: Iterable[tuple[str, str]] = (),
        content: bytes | None = None,
        timeout: httpx2.Timeout,  # noqa: ASYNC109 - several limits, applied piece by piece
    ) -> AsyncIterator[httpx2.Response]:
        """Send a request; read the body of the answer with `decoded`.

        Args:
            method: HTTP method.
            url: Absolute address.
            headers: Replace those of the client where they have the same name.
            content: The body.
            timeout: Longest silences.

        Raises:
            EgressDeniedError: It may not go there.
            httpx2.HTTPError: It failed on the way.
            httpx2.InvalidURL: The address is none.
            ValueError: A header cannot be sent.
        """
        target = checked_url(url)
        own = _lower(dict(checked_headers(headers)))
        sent = {**self._headers, **trace_headers(), **own}
        extensions = {"timeout": timeout.as_dict()}
        request = httpx2.Request(
            method, target, headers=sent, content=content, extensions=extensions
        )
        answer = await self._transport.handle_async_request(request)
        try:
            yield answer
        finally:
            await answer.aclose()

    async def fetch(
        self,
        method: str,
        url: str,
        *,
        headers: Iterable[tuple[str, str]] = (),
        content: bytes | None = None,
        bounds: Bounds,
    ) -> Answer:
        """Send a request and read the whole answer; a redirect is an answer like any other.

        Args:
            method: HTTP method.
            url: Absolute address.
            headers: Replace those of the client where they have the same name.
            content: The body.
            bounds: Limits of time and size.

        Raises:
            TimeoutError: It took too long.
            TooLongError: The answer is too large.
            EgressDeniedError: As for `stream`, and whatever else that raises.
        """
        silence = httpx2.Timeout(bounds.total_seconds, connect=bounds.connect_seconds)
        async with (
            asyncio.timeout(bounds.total_seconds),
            self.stream(method, url, headers=headers, content=content, timeout=silence) as answer,
            aclosing(decoded(answer, bounds.max_bytes)) as pieces,
        ):
            body = b"".join([piece async for piece in pieces])
        return Answer(answer.status_code, answer.headers, body)

    async def aclose(self) -> None:
        """End all connections."""
        await self._transport.aclose()


@asynccontextmanager
async def opened(client: GuardedClient) -> AsyncGenerator[GuardedClient, None]:
    """A client that is closed at the end of the block."""
    try:
        yield client
    finally:
        await client.aclose()


def operator_policy(url: str, *, proxy: str | None = None) -> EgressPolicy:
    """The policy for a server that the operator configured: only this one; it may run on this machine or network.

    Args:
        url: Its address.
        proxy: A proxy that the operator configured too.

    Raises:
        ConfigError: It is no address.
    """
    try:
        target = checked_url(url)
        port = target.port or DEFAULT_PORTS[target.scheme]
    except (httpx2.InvalidURL, EgressDeniedError, KeyError):
        raise ConfigError(f"{url!r} is no address; write https://HOST/PATH") from None
    host = plain_host(target.raw_host.decode("ascii"))
    return EgressPolicy((host,), (port,), LOCAL_NETWORKS, (target.scheme,), proxy)


def checked_url(url: str) -> httpx2.URL:
    """An absolute address as the client reads it, so that what is checked is what is called.

    Raises:
        httpx2.InvalidURL: It is none.
        EgressDeniedError: It holds a user name or password.
    """
    if len(url) > MAX_URL_CHARS:
        raise httpx2.InvalidURL(f"the address has more than {MAX_URL_CHARS} characters")
    if "\\" in url or any(one <= " " or one == "\x7f" for one in url):
        raise httpx2.InvalidURL("the address holds a blank, a backslash or a control character")
    target = httpx2.URL(url)
    if target.userinfo:
        raise EgressDeniedError(target.host, "the address holds a user name or password")
    return target


def checked_headers(headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Headers that can be sent and are nobody else's.

    Raises:
        ValueError: One cannot; the message names it, without its value.
    """
    taken = list(headers)
    for name, value in taken:
        if not _TOKEN.fullmatch(name) or name.lower() in _OURS or name.lower().startswith("proxy-"):
            raise ValueError(f"the header {name[:60]!r} cannot be set")
        if not _VALUE.fullmatch(value):
            raise ValueError(f"the value of the header {name} holds characters that it cannot hold")
    return taken


def _lower(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}
