"""Reading the inside of one JSON text as it arrives: never half an escape, never half a pair of code units."""

from __future__ import annotations

import json
import re
from typing import Final

from loopagent.core.text import clean_text


_BODY: Final = re.compile(r'(?:[^"\\]++|\\(?:["\\/bfnrt]|u(?![dD][89a-fA-F])[0-9a-fA-F]{4}))*+')
"""Everything but the end of the text, and escapes that are not whole or are half of a pair."""
_SIMPLE: Final = frozenset('"\\/bfnrt')
_HEX: Final = re.compile(r"[0-9a-fA-F]{4}")
_SHORT: Final = 2
"""Characters of a simple escape."""
_LONG: Final = 6
"""Characters of an escape that names a code unit."""
_HIGH: Final = range(0xD800, 0xDC00)
_LOW: Final = range(0xDC00, 0xE000)
_REPLACEMENT: Final = "\ufffd"


class TextReader:
    """Reads one text after the other.

    After `read`, `piece` is what came of the text, `ended` says whether its quote came, `lost` whether it is no
    plain JSON.
    """

    def __init__(self) -> None:
        self.piece = ""
        self.ended = False
        self.lost = False
        self._decodes = False
        self._escape = ""
        self._high = ""

    def begin(self, *, decodes: bool) -> None:
        """A text begins.

        Args:
            decodes: Whether its content is of interest; else it is only looked for its end.
        """
        self.ended = self.lost = False
        self._decodes = decodes
        self._escape = self._high = ""

    def read(self, text: str, at: int) -> int:
        """Read on from a position.

        Returns:
            The position behind what was read: the end of the piece, or of the text.
        """
        out: list[str] = []
        while at < len(text) and not (self.ended or self.lost):
            if self._escape:
                at = self._in_escape(text, at, out)
                continue
            found = _BODY.match(text, at)
            end = found.end() if found else at
            if end > at and self._decodes:
                self._put(out, _plain(text[at:end]))
            at = end + 1
            if end == len(text):
                at = end
            elif text[end] == '"':
                self.ended = True
                self._put(out, "")
            else:
                self._escape = "\\"
        self.piece = "".join(out)
        return at

    def _put(self, out: list[str], text: str) -> None:
        """Add text; a high surrogate whose partner did not come before it stands for nothing."""
        if self._high:
            out.append(_REPLACEMENT)
            self._high = ""
        out.append(text)

    def _in_escape(self, text: str, at: int, out: list[str]) -> int:
        wanted = _LONG if self._escape[1:2] == "u" else _SHORT
        end = min(len(text), at + wanted - len(self._escape))
        self._escape += text[at:end]
        if len(self._escape) == _LONG:
            self._unit(self._escape[_SHORT:], out)
        elif len(self._escape) == _SHORT and self._escape[1] != "u":
            self.lost = self._escape[1] not in _SIMPLE
            if not self.lost:
                self._put(out, _plain(self._escape))
                self._escape = ""
        return end

    def _unit(self, digits: str, out: list[str]) -> None:
        self._escape = ""
        if not _HEX.fullmatch(digits):
            self.lost = True
            return
        code = int(digits, 16)
        if self._high and code in _LOW:
            out.append(chr(0x10000 + ((ord(self._high) - 0xD800) << 10) + (code - 0xDC00)))
            self._high = ""
            return
        self._put(out, "")
        if code in _HIGH:
            self._high = chr(code)
        else:
            out.append(clean_text(chr(code)))


def _plain(text: str) -> str:
    """A part of a text whose escapes are whole, decoded; what cannot be stored is replaced."""
    if "\\" not in text:
        return text
    decoded: str = json.loads(f'"{text}"', strict=False)
    return clean_text(decoded)
