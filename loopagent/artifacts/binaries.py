"""Tools for images and other files that are no text: what they are, and their bytes."""

from __future__ import annotations

import base64
import struct
from hashlib import sha256
from struct import unpack_from
from typing import Any

from loopagent.artifacts.source import NoParams, Source
from loopagent.artifacts.texts import FullParams


Size = tuple[int, int]


def get_full(source: Source, params: FullParams) -> dict[str, Any]:
    """The bytes as base64, a stretch of them; `start` and `count` are in bytes."""
    most = max(3, (source.max_chars - 120) // 4 * 3)
    piece = source.content[params.start : params.start + min(params.count, most)]
    body: dict[str, Any] = {
        "bytes": len(source.content),
        "start": params.start,
        "base64": base64.b64encode(piece).decode(),
    }
    after = params.start + len(piece)
    return body if after >= len(source.content) else {**body, "next": after}


def get_metadata(source: Source, params: NoParams) -> dict[str, Any]:
    """Name, size and hash; of an image also its format and its size in pixels."""
    del params
    about: dict[str, Any] = {
        "name": source.name,
        "bytes": len(source.content),
        "sha256": sha256(source.content).hexdigest(),
    }
    found = image_size(source.content)
    if found is not None:
        name, (width, height) = found
        about |= {"format": name, "width": width, "height": height}
    return about


def image_size(content: bytes) -> tuple[str, Size] | None:
    """Format, and width and height in pixels, of an image; None for anything else."""
    try:
        for name, begins, size in _FORMATS:
            if content.startswith(begins):
                found = size(content)
                return None if found is None else (name, found)
    except (struct.error, IndexError):
        return None
    return None


def _png(content: bytes) -> Size:
    width, height = unpack_from(">II", content, 16)
    return width, height


def _gif(content: bytes) -> Size:
    width, height = unpack_from("<HH", content, 6)
    return width, height


def _bmp(content: bytes) -> Size:
    width, height = unpack_from("<ii", content, 18)
    return abs(width), abs(height)


def _jpeg(content: bytes) -> Size | None:
    """From the frame header; what stands before it is skipped."""
    at = 2
    while at + 9 < len(content):
        if content[at] != _JPEG_MARK:
            return None
        kind = content[at + 1]
        if kind in _JPEG_FRAMES:
            height, width = unpack_from(">HH", content, at + 5)
            return width, height
        (length,) = unpack_from(">H", content, at + 2)
        at += 2 + max(2, length)
    return None


def _webp(content: bytes) -> Size | None:
    form = content[12:16]
    if form == b"VP8X":
        width = int.from_bytes(content[24:27], "little") + 1
        return width, int.from_bytes(content[27:30], "little") + 1
    if form == b"VP8L":
        (bits,) = unpack_from("<I", content, 21)
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if form == b"VP8 ":
        width, height = unpack_from("<HH", content, 26)
        return width & 0x3FFF, height & 0x3FFF
    return None


_JPEG_MARK = 0xFF
_JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_FORMATS = (
    ("png", b"\x89PNG\r\n\x1a\n", _png),
    ("gif", b"GIF8", _gif),
    ("jpeg", b"\xff\xd8", _jpeg),
    ("webp", b"RIFF", _webp),
    ("bmp", b"BM", _bmp),
)
