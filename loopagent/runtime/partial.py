"""Reading along while a reply arrives: the growing text of its top-level `message` and `reasoning`.

A small machine over characters, so that the work for a piece is proportional to the piece and any split is fine,
also inside an escape. It only serves people who watch; what counts is the whole reply, read by the core.
"""

from __future__ import annotations

import re
from collections.abc import Iterator


SHOWN = frozenset({"message", "reasoning"})
_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_PLAIN = re.compile(r'[^"\\]+')
_STRUCTURE = re.compile(r'["{}\[\],:]')
_HEX_DIGITS = 4
_HIGH, _LOW = range(0xD800, 0xDC00), range(0xDC00, 0xE000)
_REPLACEMENT = "\ufffd"


class MessageStream:
    """Turns pieces of reply text into pieces of the fields that a person may read."""

    def __init__(self) -> None:
        self.attempt = 0
        self.restart()

    def restart(self) -> None:
        """Forget what arrived: a new attempt at the call begins, what was shown is superseded."""
        self.attempt += 1
        self._depth = 0
        self._key = ""
        self._expects_key = False
        self._in_string = False
        self._is_key = False
        self._escape = ""
        self._high = ""
        self._text: list[str] = []

    def feed(self, piece: str) -> Iterator[tuple[str, str]]:
        """Take a piece; yields `(field, text)` for whatever of the shown fields it completes."""
        position = 0
        while position < len(piece):
            if self._in_string:
                position = self._string(piece, position)
                shown = self._take()
                if shown:
                    yield self._key, shown
            else:
                position = self._structure(piece, position)

    def _take(self) -> str:
        """Text to show: only of a value of a shown field at the top level; other values are let go."""
        if self._is_key:
            return ""
        text = "".join(self._text) if self._depth == 1 and self._key in SHOWN else ""
        self._text.clear()
        return text

    def _structure(self, piece: str, position: int) -> int:
        found = _STRUCTURE.search(piece, position)
        if found is None:
            return len(piece)
        char = found.group()
        if char == '"':
            if self._depth:  # a quote in prose before the object opens nothing
                self._in_string, self._is_key = True, self._depth == 1 and self._expects_key
                self._text.clear()
        elif char in "{[":
            self._depth += 1 if self._depth or char == "{" else 0
            self._expects_key = self._depth == 1
        elif char in "}]":
            self._depth = max(0, self._depth - 1)
        else:
            self._expects_key = char == "," and self._depth == 1
        return found.end()

    def _string(self, piece: str, position: int) -> int:
        if self._escape:
            return self._finish_escape(piece, position)
        char = piece[position]
        if char == "\\":
            self._escape = char
            return position + 1
        if char == '"':
            self._flush_high()
            self._in_string = False
            if self._is_key:
                self._key = "".join(self._text)
                self._text.clear()
            return position + 1
        run = _PLAIN.match(piece, position)
        assert run is not None  # neither a quote nor a backslash stands here
        self._flush_high()
        self._text.append(run.group())
        return run.end()

    def _finish_escape(self, piece: str, position: int) -> int:
        self._escape += piece[position]
        if self._escape[1] != "u":
            self._flush_high()
            self._text.append(_ESCAPES.get(self._escape[1], self._escape))
            self._escape = ""
        elif len(self._escape) == _HEX_DIGITS + 2:
            self._code_unit(self._escape[2:])
            self._escape = ""
        return position + 1

    def _code_unit(self, digits: str) -> None:
        try:
            code = int(digits, 16)
        except ValueError:
            self._flush_high()
            self._text.append("\\u" + digits)
            return
        if self._high and code in _LOW:
            self._text.append(chr(0x10000 + ((ord(self._high) - 0xD800) << 10) + (code - 0xDC00)))
            self._high = ""
            return
        self._flush_high()
        if code in _HIGH:
            self._high = chr(code)
        else:
            self._text.append(_REPLACEMENT if code in _LOW else chr(code))

    def _flush_high(self) -> None:
        """A high surrogate whose partner did not come stands for nothing."""
        if self._high:
            self._text.append(_REPLACEMENT)
            self._high = ""
