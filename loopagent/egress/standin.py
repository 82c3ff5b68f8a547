"""Every connection leads to one server on this machine: for trying things out without calling anybody."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import httpcore2


if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterable

LOOPBACK = "127.0.0.1"


async def anywhere(host: str, port: int) -> list[str]:
    """An address for any name; nobody dials it."""
    del host, port
    return ["192.0.2.1"]


class StandInNetwork(httpcore2.AsyncNetworkBackend):
    """Dials the stand-in whatever is asked for; it speaks plain HTTP, also where TLS is meant.

    Args:
        port: Where the stand-in listens on the loopback.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self._network = cast("httpcore2.AsyncNetworkBackend", httpcore2.AnyIOBackend())

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the signature is httpcore's
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Dial the stand-in."""
        del host, port, local_address, socket_options
        return _Plain(await self._network.connect_tcp(LOOPBACK, self._port, timeout))

    async def sleep(self, seconds: float) -> None:
        """Wait, as httpcore asks for between attempts."""
        await self._network.sleep(seconds)


class _Plain(httpcore2.AsyncNetworkStream):
    """A connection that stays as it is when TLS is to begin."""

    def __init__(self, stream: httpcore2.AsyncNetworkStream) -> None:
        self._stream = stream

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
        return await self._stream.read(max_bytes, timeout)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        await self._stream.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> httpcore2.AsyncNetworkStream:
        del ssl_context, server_hostname, timeout
        return self

    def get_extra_info(self, info: str) -> Any:
        return None if info == "ssl_object" else self._stream.get_extra_info(info)
