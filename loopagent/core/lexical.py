"""A tolerant reader of one JSON-like object: forgives how it is written, never what it says.

One pass, no backtracking beyond a look at what follows a quote, so the time is linear in the text. Every
tolerance is noted. A text that stops in the middle is told apart from one that is merely missing its last braces.
"""

from __future__ import annotations

import re
from typing import Any


MAX_DEPTH = 150
MAX_VALUES = 100_000
_SPACE = re.compile(r"(?:\s+|//[^\n]*|/\*.*?\*/|#[^\n]*)*", re.DOTALL)
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_WORD = re.compile(r"[A-Za-z_$][\w$]*")
_ESCAPES = {
    '"': '"',
    "'": "'",
    "\\": "\\",
    "/": "/",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "\n": "",
}
_HEX = re.compile(r"[0-9a-fA-F]{4}")
_WORDS: dict[str, Any] = {
    "true": True,
    "false": False,
    "null": None,
    "True": True,
    "False": False,
    "None": None,
    "undefined": None,
    "NaN": None,
    "Infinity": None,
}
_QUOTES = {'"': '"', "'": "'", "\u201c": "\u201d", "\u201d": "\u201d", "\u2018": "\u2019"}
_RUNS = {close: re.compile(f"[^{close}\\\\]+") for close in ('"', "'", "\u201d", "\u2019")}
_AFTER_KEY = re.compile(r"\s*:")
_AFTER_MEMBER = re.compile(
    r"""\s*(?:$|[}]|//|/\*|,\s*(?:$|[}"'\u201c]|//|/\*|[A-Za-z_$][\w$]*\??\s*:))"""
)
_AFTER_ITEM = re.compile(r"""\s*(?:$|[\]]|//|/\*|,)""")


class CutOffError(Exception):
    """The text stops in the middle of a value."""


class BadJsonError(Exception):
    """The text cannot be read; the message says why and where."""


class DuplicateKeyError(Exception):
    """A key stands twice in one object with different values; the message is the key."""


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object from its members; a repeated key must say the same each time.

    Raises:
        DuplicateKeyError: It says different things.
    """
    made = dict(pairs)
    if len(made) != len(pairs):
        seen: dict[str, Any] = {}
        for key, value in pairs:
            if key in seen and seen[key] != value:
                raise DuplicateKeyError(key)
            seen[key] = value
    return made


class Reader:
    """Reads one value from a position of a text.

    After `read`, `end` is the position behind the value and `notes` say what was tolerated.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._values = 0
        self._follow = _AFTER_MEMBER
        self.end = 0
        self.notes: dict[str, None] = {}

    def read(self, start: int) -> Any:
        """The value at `start`.

        Raises:
            CutOffError: The text ends inside it.
            BadJsonError: It cannot be read.
            DuplicateKeyError: A key is repeated with another value.
        """
        self._at = start
        value = self._value(0)
        self.end = self._at
        return value

    def _space(self) -> str:
        """Skip blanks and comments; the next character, or nothing at the end."""
        found = _SPACE.match(self._text, self._at)
        assert found is not None  # it matches the empty text too
        if found.end() > self._at and found.group().strip():
            self._note("comments left out")
        self._at = found.end()
        return self._text[self._at : self._at + 1]

    def _note(self, text: str) -> None:
        self.notes[text] = None

    def _bad(self, what: str) -> BadJsonError:
        shown = self._text[self._at : self._at + 20]
        return BadJsonError(f"{what} at character {self._at}: {shown!r}")

    def _value(self, depth: int) -> Any:
        self._values += 1
        if depth > MAX_DEPTH or self._values > MAX_VALUES:
            raise BadJsonError("nested too deeply or too long to be repaired; write plain JSON")
        char = self._space()
        if not char:
            raise CutOffError
        if char == "{":
            return self._object(depth)
        if char == "[":
            return self._array(depth)
        if char in _QUOTES:
            return self._string(self._follow)
        return self._scalar(char)

    def _object(self, depth: int) -> dict[str, Any]:
        self._at += 1
        pairs: list[tuple[str, Any]] = []
        while True:
            char = self._space()
            if char == "}":
                self._at += 1
                return unique(pairs)
            if not char:
                if self._after_comma(pairs):
                    raise CutOffError
                self._note("missing closing braces added")
                return unique(pairs)
            key = self._key(char)
            if self._space() != ":":
                if self._at >= len(self._text):
                    raise CutOffError
                raise self._bad("a colon is missing after a key")
            self._at += 1
            self._follow = _AFTER_MEMBER
            pairs.append((key, self._value(depth + 1)))
            self._comma("}")

    def _after_comma(self, pairs: list[tuple[str, Any]]) -> bool:
        """At the end of the text: whether something more was announced."""
        return not pairs or self._text.rstrip().endswith(",")

    def _array(self, depth: int) -> list[Any]:
        self._at += 1
        items: list[Any] = []
        while True:
            char = self._space()
            if char == "]":
                self._at += 1
                return items
            if not char:
                raise CutOffError
            self._follow = _AFTER_ITEM
            items.append(self._value(depth + 1))
            self._comma("]")

    def _comma(self, close: str) -> None:
        char = self._space()
        if char == ",":
            self._at += 1
            if self._space() == close:
                self._note("trailing comma left out")
        elif char and char != close:
            raise self._bad(f"a comma or {close} is missing")

    def _key(self, char: str) -> str:
        if char in _QUOTES:
            return self._string(_AFTER_KEY)
        found = _WORD.match(self._text, self._at)
        if found is None:
            raise self._bad("a key is missing")
        self._at = found.end()
        if self._text[self._at : self._at + 1] == "?":
            self._at += 1
        self._note("unquoted keys read as text")
        return found.group()

    def _scalar(self, char: str) -> Any:
        number = _NUMBER.match(self._text, self._at)
        if number is not None:
            return self._number(number.group(), number.end())
        found = _WORD.match(self._text, self._at + (char == "-"))
        if found is None:
            raise self._bad("a value is missing")
        if found.end() == len(self._text) and found.group() not in _WORDS:
            raise CutOffError
        if found.group() not in _WORDS:
            raise self._bad("text without quotes")
        self._at = found.end()
        word = found.group()
        if word in {"NaN", "Infinity", "undefined"}:
            self._note(f"{word} read as null")
        elif word in {"True", "False", "None"}:
            self._note("Python literals read as JSON")
        return _WORDS[word]

    def _number(self, text: str, end: int) -> Any:
        if end == len(self._text):
            raise CutOffError  # more digits may have been meant
        self._at = end
        try:
            return int(text) if re.fullmatch(r"-?\d+", text) else float(text)
        except ValueError:
            raise self._bad("a number is too long") from None

    def _string(self, follow: re.Pattern[str]) -> str:
        """A text; a quote inside it that nothing fitting follows belongs to it."""
        opening = self._text[self._at]
        close = _QUOTES[opening]
        if opening != '"':
            self._note("other quotes read as double quotes")
        self._at += 1
        parts: list[str] = []
        while self._at < len(self._text):
            char = self._text[self._at]
            if char == "\\":
                parts.append(self._escape())
            elif char == close:
                self._at += 1
                if follow.match(self._text, self._at):
                    return "".join(parts)
                self._note("quotes inside a text kept")
                parts.append(char)
            else:
                run = _RUNS[close].match(self._text, self._at)
                assert run is not None  # neither the quote nor a backslash stands here
                parts.append(run.group())
                self._at = run.end()
        raise CutOffError

    def _escape(self) -> str:
        char = self._text[self._at + 1 : self._at + 2]
        if not char:
            raise CutOffError
        if char == "u":
            return self._unicode()
        self._at += 2
        if char in _ESCAPES:
            return _ESCAPES[char]
        self._note("unknown escapes kept as they are")
        return "\\" + char

    def _unicode(self) -> str:
        found = _HEX.match(self._text, self._at + 2)
        if found is None:
            self._at += 2
            self._note("unknown escapes kept as they are")
            return "\\u"
        self._at = found.end()
        code = int(found.group(), 16)
        if 0xD800 <= code < 0xDC00 and self._text.startswith("\\u", self._at):
            low = _HEX.match(self._text, self._at + 2)
            if low is not None and 0xDC00 <= (tail := int(low.group(), 16)) < 0xE000:
                self._at = low.end()
                return chr(0x10000 + ((code - 0xD800) << 10) + (tail - 0xDC00))
        return chr(code)
