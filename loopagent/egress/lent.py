"""A guarded client for libraries that bring their protocol and want a client to speak it with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import httpx2

from loopagent.egress.client import AGENT
from loopagent.egress.decoding import TooLongError
from loopagent.egress.transport import GuardedTransport


if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from loopagent.egress.policy import EgressPolicy

PLAIN: Final = frozenset({"", "identity"})


class _Bounded(httpx2.AsyncBaseTransport):
    """A transport whose answers end with an error where they become too long."""

    def __init__(self, inner: GuardedTransport, max_bytes: int) -> None:
        self._inner = inner
        self._max_bytes = max_bytes

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        answer = await self._inner.handle_async_request(request)
        if answer.headers.get("content-encoding", "").lower() not in PLAIN:
            await answer.aclose()
            raise httpx2.DecodingError("the answer is packed, although that was not asked for")
        stream = answer.stream
        assert isinstance(stream, httpx2.AsyncByteStream)  # the transport is asynchronous
        answer.stream = _Counted(stream, self._max_bytes)
        return answer

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Counted(httpx2.AsyncByteStream):
    def __init__(self, inner: httpx2.AsyncByteStream, max_bytes: int) -> None:
        self._inner = inner
        self._max_bytes = max_bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = self._max_bytes
        async for piece in self._inner:
            left -= len(piece)
            if left < 0:
                raise TooLongError(self._max_bytes)
            yield piece

    async def aclose(self) -> None:
        await self._inner.aclose()


def lent_client(
    policy: EgressPolicy, headers: Mapping[str, str], *, seconds: float, max_bytes: int
) -> httpx2.AsyncClient:
    """A client that calls only where a policy allows: no redirects, cookies kept by nobody else, no environment.

    Args:
        policy: Where requests may go.
        headers: Sent with every request.
        seconds: Longest silence.
        max_bytes: Longest answer; packed ones are refused.
    """
    return httpx2.AsyncClient(
        transport=_Bounded(GuardedTransport(policy), max_bytes),
        headers={"user-agent": AGENT, **headers, "accept-encoding": "identity"},
        timeout=httpx2.Timeout(seconds, connect=min(5.0, seconds)),
        follow_redirects=False,
        trust_env=False,
    )
