"""Bytes as text: in which encoding they are, as far as that can be told from them."""

from __future__ import annotations

import codecs
from typing import Final, NamedTuple


MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
"""Byte order marks and the encodings they tell of, longer ones first where one begins as another."""
PROBE_BYTES: Final = 4_096
"""How much of a text without a mark is looked at to tell UTF-16 and others."""
MAX_ASCII: Final = 0x7F
_LIKELY: Final = 0.8
"""Least part of the characters beyond ASCII that must be usual ones of an encoding."""
_BINARY: Final = 0.05
"""Part of control characters from which on bytes are no text."""
_FEWEST: Final = 4
_CONTROLS: Final = bytes(one for one in range(0x20) if one not in b"\t\n\v\f\r\x1b")
_BEGINNINGS: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
    (b"PK\x03\x04", "application/zip"),
    (b"\x1f\x8b\x08", "application/gzip"),
    (b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (b"SQLite format 3\x00", "application/vnd.sqlite3"),
)
"""How files begin that are no text, and what they are."""


class Encoding(NamedTuple):
    """An encoding, and whether it is only a guess."""

    name: str
    guessed: bool = False


def encoding_of(content: bytes) -> Encoding:
    """The encoding of a text: by its mark, else UTF-8, else what it looks like, else Windows-1252."""
    for mark, name in MARKS:
        if content.startswith(mark):
            return Encoding(name)
    if (wide := _wide(content[:PROBE_BYTES])) is not None:
        return Encoding(wide, guessed=True)
    try:
        content.decode()
    except UnicodeDecodeError as error:
        # A broken place in UTF-8 is more likely than another encoding when much before it was well encoded.
        if any(one > MAX_ASCII for one in content[: error.start]):
            return Encoding("utf-8")
        return Encoding(_asian(content) or "windows-1252", guessed=True)
    return Encoding("utf-8")


def decoded(content: bytes) -> str:
    """Bytes as text; what is no text in its encoding becomes U+FFFD."""
    return content.decode(encoding_of(content).name, "replace")


def binary_type(content: bytes) -> str:
    """The media type of what is certainly no text; empty for what may be one."""
    for beginning, name in _BEGINNINGS:
        if content.startswith(beginning):
            return name
    probe = content[:PROBE_BYTES]
    if probe.startswith(tuple(mark for mark, _ in MARKS)) or _wide(probe) is not None:
        return ""
    odd = len(probe) - len(probe.translate(None, _CONTROLS))
    return "application/octet-stream" if odd >= _FEWEST and odd > len(probe) * _BINARY else ""


def _wide(probe: bytes) -> str | None:
    """UTF-16 without a mark has a zero byte in most pairs, always on the same side."""
    pairs = len(probe) // 2
    if not pairs:
        return None
    even, odd = probe[0::2].count(0), probe[1::2].count(0)
    if odd * 2 > pairs and not even:
        return "utf-16-le"
    if even * 2 > pairs and not odd:
        return "utf-16-be"
    return None


def _asian(content: bytes) -> str | None:
    """Shift JIS is full of kana, GB 18030 of the usual characters, whose first bytes are few."""
    kana = _beyond_ascii(content, "shift_jis")
    if sum("\u3000" <= one <= "\u30ff" for one in kana) > len(kana) / 3:
        return "shift_jis"
    han = _beyond_ascii(content, "gb18030")
    usual = sum(b"\xa1" <= one.encode("gb18030")[:1] <= b"\xd7" for one in han)
    return "gb18030" if len(han) >= _FEWEST and usual > len(han) * _LIKELY else None


def _beyond_ascii(content: bytes, encoding: str) -> str:
    """The characters of a text that are not ASCII, the first of them; nothing if it is not in the encoding."""
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(content[:PROBE_BYTES])
    except UnicodeDecodeError:
        return ""
    return "".join(one for one in text if not one.isascii())
