"""Bodies of answers, unpacked piece by piece: no more is ever unpacked than the caller takes."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Final

import httpx2


if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

ACCEPTED: Final = "gzip, deflate"
"""What to offer as `Accept-Encoding`: what can be unpacked in small pieces."""
PIECE_BYTES: Final = 65_536
_WINDOWS: Final = {"gzip": 31, "x-gzip": 31, "deflate": 15}
"""How zlib is told which of its formats comes."""
_RAW_DEFLATE: Final = -15


class TooLongError(Exception):
    """An answer has more bytes, once unpacked, than are taken."""

    def __init__(self, max_bytes: int) -> None:
        super().__init__(f"the answer is longer than {max_bytes} bytes")
        self.max_bytes = max_bytes


async def decoded(answer: httpx2.Response, max_bytes: int) -> AsyncGenerator[bytes, None]:
    """The body, unpacked, in pieces of at most `PIECE_BYTES` when it is packed.

    Args:
        answer: An answer whose body was not read yet.
        max_bytes: Size up to which it is read; what is packed to grow is cut off there.

    Raises:
        TooLongError: It is longer.
        httpx2.DecodingError: It is packed in a way that was not offered, or not as it says.
    """
    unpacker = _unpacker(answer.headers.get("content-encoding", ""))
    size = 0
    async for raw in answer.aiter_raw():
        for piece in (raw,) if unpacker is None else unpacker.feed(raw):
            size += len(piece)
            if size > max_bytes:
                raise TooLongError(max_bytes)
            yield piece
    if unpacker is not None and not unpacker.complete:
        raise httpx2.DecodingError("the packed answer breaks off")


def _unpacker(encoding: str) -> _Unpacker | None:
    name = encoding.strip().lower()
    if name in {"", "identity"}:
        return None
    if name not in _WINDOWS:
        raise httpx2.DecodingError(f"the answer is packed as {name[:40]!r}, which was not offered")
    return _Unpacker(_WINDOWS[name])


class _Unpacker:
    """zlib with bounded pieces."""

    def __init__(self, window: int) -> None:
        self._zlib = zlib.decompressobj(window)
        self._fallback = window == _WINDOWS["deflate"]
        self._seen = False

    @property
    def complete(self) -> bool:
        """Whether all came; an empty body counts."""
        return self._zlib.eof or not self._seen

    def feed(self, raw: bytes) -> Iterator[bytes]:
        rest = raw
        while rest and not self._zlib.eof:
            piece = self._unpacked(rest)
            rest = self._zlib.unconsumed_tail
            if piece:
                yield piece

    def _unpacked(self, data: bytes) -> bytes:
        first, self._seen = not self._seen, True
        try:
            return self._zlib.decompress(data, PIECE_BYTES)
        except zlib.error as error:
            if not (first and self._fallback):
                raise httpx2.DecodingError("the answer is not packed as it says") from error
        # Some servers send deflate without the header that the standard asks for.
        self._zlib, self._fallback = zlib.decompressobj(_RAW_DEFLATE), False
        return self._unpacked(data)
