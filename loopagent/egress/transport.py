"""Connections that lead only where a policy allows: names are resolved once, checked, and dialled as checked."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

import httpcore2
import httpx2

from loopagent.egress.addresses import LOCAL_NETWORKS, parse_address
from loopagent.egress.policy import DEFAULT_PORTS, EgressDeniedError, EgressPolicy, plain_host


if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator

Resolver: TypeAlias = Callable[[str, int], Awaitable[list[str]]]
"""Gives the addresses of a host; an `OSError` says that there are none."""
Dialler: TypeAlias = httpcore2.AsyncNetworkBackend
"""Opens a connection to an address."""
KEEPALIVE_SECONDS: Final = 5.0
"""How long an idle connection is kept: a change of the policy must bite soon."""
LOG = logging.getLogger("loopagent.egress")


async def resolve(host: str, port: int) -> list[str]:
    """The addresses of a host, as the operating system knows them."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(one[4][0]) for one in found]


class GuardedNetwork(httpcore2.AsyncNetworkBackend):
    """Dials only addresses that the policy lets through; TLS and the `Host` header keep the name.

    Args:
        policy: Where connections may go.
        resolver: Gives the addresses of a name, once for each connection.
        network: Dials an address.
    """

    def __init__(
        self,
        policy: EgressPolicy,
        resolver: Resolver = resolve,
        network: Dialler | None = None,
    ) -> None:
        self._policy = policy
        self._resolve = resolver
        self._network = network or cast("Dialler", httpcore2.AnyIOBackend())

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the signature is httpcore's
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Resolve, check every address, and dial them in turn until one answers."""
        try:
            async with asyncio.timeout(timeout):
                return await self._connected(host, port, local_address, socket_options)
        except TimeoutError as error:
            raise httpcore2.ConnectTimeout(f"{host} did not answer") from error
        except EgressDeniedError as denied:
            LOG.warning("refused a connection to %s: %s", denied.host, denied.reason)
            raise

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ASYNC109 - the signature is httpcore's
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Refuse: files are no hosts."""
        del path, timeout, socket_options
        raise EgressDeniedError("", "sockets in the file system are not allowed")

    async def sleep(self, seconds: float) -> None:
        """Wait, as httpcore asks for between attempts."""
        await self._network.sleep(seconds)

    async def _connected(
        self, host: str, port: int, local_address: str | None, options: Iterable[Any] | None
    ) -> httpcore2.AsyncNetworkStream:
        addresses = await self._checked(host, port)
        failure: Exception | None = None
        for address in addresses:
            try:
                return await self._network.connect_tcp(
                    address, port, local_address=local_address, socket_options=options
                )
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failure = error
        raise failure or httpcore2.ConnectError(f"{host} has no address")

    async def _checked(self, host: str, port: int) -> list[str]:
        self._policy.check_host(host)
        address = parse_address(plain_host(host))
        if address is not None:
            return [str(address)]
        try:
            found = await self._resolve(host, port)
        except (OSError, UnicodeError) as error:
            raise httpcore2.ConnectError(f"{host} cannot be resolved") from error
        return self._policy.check_addresses(host, found)


class GuardedTransport(httpx2.AsyncBaseTransport):
    """A pool of guarded connections; every request is checked, a kept connection or not.

    Args:
        policy: Where requests may go.
        resolver: As for `GuardedNetwork`.
        network: As for `GuardedNetwork`.
        trust: Certificates that are trusted; None for those of the system.
        max_connections: Connections at the same time; None for any number.
    """

    def __init__(
        self,
        policy: EgressPolicy,
        *,
        resolver: Resolver = resolve,
        network: Dialler | None = None,
        trust: ssl.SSLContext | None = None,
        max_connections: int | None = None,
    ) -> None:
        self._policy = policy
        proxy = None if policy.proxy is None else httpx2.URL(policy.proxy)
        dialled = policy if proxy is None else _for_proxy(proxy)
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=trust or _system_trust(),
            proxy=None if proxy is None else _proxy(proxy),
            max_connections=max_connections,
            max_keepalive_connections=50,
            keepalive_expiry=KEEPALIVE_SECONDS,
            network_backend=GuardedNetwork(dialled, resolver, network),
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Check where it goes, and send it."""
        url = request.url
        try:
            self._policy.check(url.scheme, url.raw_host.decode("ascii"), url.port)
        except EgressDeniedError as denied:
            LOG.warning("refused a request to %s: %s", denied.host, denied.reason)
            raise
        with _httpx_errors():
            answer = await self._pool.handle_async_request(_request(request))
        return httpx2.Response(
            answer.status,
            headers=answer.headers,
            stream=_Stream(answer),
            extensions=answer.extensions,
            request=request,
        )

    async def aclose(self) -> None:
        """Close all connections."""
        await self._pool.aclose()


class _Stream(httpx2.AsyncByteStream):
    def __init__(self, answer: httpcore2.Response) -> None:
        self._answer = answer

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _httpx_errors():
            async for piece in cast("AsyncIterator[bytes]", self._answer.stream):
                yield piece

    async def aclose(self) -> None:
        await cast("Any", self._answer.stream).aclose()


def _request(request: httpx2.Request) -> httpcore2.Request:
    url = request.url
    return httpcore2.Request(
        method=request.method,
        url=httpcore2.URL(
            scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
        ),
        headers=request.headers.raw,
        content=cast("Any", request.stream),
        extensions=dict(request.extensions),
    )


@contextmanager
def _httpx_errors() -> Iterator[None]:
    """Errors of the pool under the name that they have one layer up."""
    try:
        yield
    except Exception as error:
        wanted = next(
            (
                getattr(httpx2, kind.__name__)
                for kind in type(error).__mro__
                if kind.__module__.startswith("httpcore2") and hasattr(httpx2, kind.__name__)
            ),
            None,
        )
        if wanted is None:
            raise
        raise wanted(str(error)) from error


def _for_proxy(url: httpx2.URL) -> EgressPolicy:
    return EgressPolicy((plain_host(url.raw_host.decode("ascii")),), None, LOCAL_NETWORKS)


def _proxy(url: httpx2.URL) -> httpcore2.Proxy:
    origin = httpcore2.URL(
        scheme=url.raw_scheme,
        host=url.raw_host,
        port=url.port or DEFAULT_PORTS[url.scheme],
        target=b"/",
    )
    who = (url.username.encode(), url.password.encode()) if url.username else None
    return httpcore2.Proxy(origin, auth=who)


@lru_cache(maxsize=1)
def _system_trust() -> ssl.SSLContext:
    """Certificates are always verified; made once, since reading them all takes a while."""
    return httpx2.create_ssl_context()
