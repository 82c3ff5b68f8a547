"""A tolerant reader of one JSON-like object: forgives how it is written, never what it says.

One pass. At a quote the reader looks ahead, at most to the quote after the next one, so the time is
linear in the text. Where two readings are possible it refuses: guessing could lose or invent an intent.
A text that stops in the middle is told apart from one that merely lacks the brace of the whole object.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from loopagent.core.strict import finite, unique


MAX_DEPTH: Final = 128
"""Levels of nesting."""
MAX_VALUES: Final = 20_000
"""Most values of an object that is not plain JSON; more take too long."""
MAX_GUESSES: Final = 1_000
"""Most unescaped quotes inside texts."""

_SPACE: Final = re.compile(r"(?:\s++|//[^\n]*+|/\*(?:[^*]++|\*(?!/))*+\*/|#[^\n]*+)*+")
_BLANK: Final = re.compile(r"\s*+")
_TOKEN: Final = re.compile(r"[^\s,:{}\[\]\"'`/]++")
_KEY_WORD: Final = re.compile(r"[A-Za-z_$][\w$-]*+")
_WHOLE: Final = re.compile(r"[+-]?(?:0|[1-9]\d*)")
_NUMBER: Final = re.compile(r"[+-]?(?:(?:0|[1-9]\d*)(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
_PLAIN_NUMBER: Final = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
_CONTROL: Final = re.compile(r"[\x00-\x1f]")
_ESCAPE: Final = re.compile(r"""\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})|\\'|\\|\"""")
_JOINED: Final = re.compile(r"\s*+(\+?)\s*+([\"'\u201c\u201d])")
_COLON: Final = re.compile(r"\s*+:")
_ENDS_LIKE_JSON: Final = re.compile(r"[}\]][\s`]*\Z")

_QUOTES: Final = {'"': '"', "'": "'", "\u201c": "\u201d", "\u201d": "\u201d"}
_BODIES: Final = {
    close: re.compile(rf"(?:[^{close}\\]++|\\.)*+", re.DOTALL) for close in ('"', "'", "\u201d")
}
_PLAIN: Final = {'"': r'[^"\\]++|\\.', "'": r"[^'\\]++|\\.|(?<=\w)'(?=\w)"}
_PAIRED: Final = {
    quote: re.compile(
        rf"(?:{plain})*+(?:(?<!\w){quote}(?=\S)(?:{plain})++(?<=\S){quote}(?!\w)(?:{plain})*+)*+",
        re.DOTALL,
    )
    for quote, plain in _PLAIN.items()
} | {"\u201d": re.compile(r"[^\u201c\u201d]*+(?:\u201c[^\u201c\u201d]++\u201d[^\u201c\u201d]*+)*+")}
"""Texts whose quotes come in pairs around words."""
_MEMBER: Final = re.compile(
    r"""\s*+(?:\Z|}|//|/\*|\#
    |"(?:[^"\\]++|\\.)*+(?:\Z|"\s*+(?::|\Z))
    |'(?:[^'\\]++|\\.)*+(?:\Z|'\s*+(?::|\Z))
    |[\u201c\u201d](?:[^\u201d\\]++|\\.)*+(?:\Z|\u201d\s*+(?::|\Z))
    |[A-Za-z_$][\w$-]*+\??\s*+(?::|\Z))""",
    re.DOTALL | re.VERBOSE,
)
"""What may follow the comma behind a member of an object."""
_ITEM: Final = re.compile(
    r"""\s*+(?:\Z|[]{["'\u201c\u201d]|//|/\*|\#|[-+]?\.?\d[\d.eE+-]*+\s*+(?:[],]|\Z)
    |(?:true|false|null|none|nan|[-+]?infinity|undefined)\s*+(?:[],]|\Z))""",
    re.IGNORECASE | re.VERBOSE,
)
"""What may follow the comma behind an item of a list."""
_FOLLOWERS: Final = {"}": _MEMBER, "]": _ITEM}

_AS_NULL: Final = "NaN, Infinity or undefined read as null"
_PYTHON: Final = "literals of another language read as JSON"
_WORDS: Final[dict[str, tuple[Any, str]]] = {
    "true": (True, _PYTHON),
    "false": (False, _PYTHON),
    "null": (None, _PYTHON),
    "none": (None, _PYTHON),
    "nan": (None, _AS_NULL),
    "undefined": (None, _AS_NULL),
    "infinity": (None, _AS_NULL),
    "+infinity": (None, _AS_NULL),
    "-infinity": (None, _AS_NULL),
}
_JSON_WORDS: Final[dict[str, Any]] = {"true": True, "false": False, "null": None}


class CutOffError(Exception):
    """The text stops in the middle of a value."""


class BadJsonError(Exception):
    """The text cannot be read with certainty; the message says why and where."""


class Reader:
    """Reads one object of a text.

    Args:
        text: The whole text.
        max_depth: Levels of nesting.

    After `read`, `end` is the position behind the object, `closed` says whether its last brace was
    missing, and the keys of `notes` say what was tolerated, in order.
    """

    def __init__(self, text: str, *, max_depth: int = MAX_DEPTH) -> None:
        self._text = text
        self._size = len(text)
        self._max_depth = max_depth
        self._at = 0
        self._open: list[str] = []
        self._values = 0
        self._guesses = 0
        self._bare_keys = False
        self.end = 0
        self.closed = False
        self.notes: dict[str, None] = {}

    def read(self, start: int) -> Any:
        """Read the object at a position.

        Args:
            start: Where its brace stands.

        Raises:
            CutOffError: The text ends inside it.
            BadJsonError: It cannot be read with certainty.
            DuplicateKeyError: A key is repeated with another value.
        """
        self._at = start
        value = self._value()
        self.end = self._at
        return value

    # ------------------------------------------------------------ small steps

    def _note(self, text: str) -> None:
        self.notes[text] = None

    def _bad(self, what: str, at: int | None = None) -> BadJsonError:
        at = self._at if at is None else at
        line = self._text.count("\n", 0, at) + 1
        column = at - self._text.rfind("\n", 0, at)
        shown = json.dumps(self._text[at : at + 20], ensure_ascii=False)
        return BadJsonError(f"{what} (line {line}, column {column}, before {shown})")

    def _space(self) -> str:
        """Skip blanks and comments; the next character, or nothing at the end of the text or fence."""
        found = _SPACE.match(self._text, self._at)
        end = found.end() if found else self._at
        if end > self._at and not self._text[self._at : end].isspace():
            self._note("comments left out")
        self._at = end
        if self._text.startswith("```", end):
            return ""
        return self._text[end : end + 1]

    def _blank(self, at: int) -> int:
        found = _BLANK.match(self._text, at)
        return found.end() if found else at

    # ------------------------------------------------------------ values

    def _value(self) -> Any:
        self._values += 1
        if self._values > MAX_VALUES:
            raise self._bad("too long to be repaired; write plain JSON")
        char = self._space()
        if not char:
            raise CutOffError
        if char == "{":
            return self._object()
        if char == "[":
            return self._array()
        if char in _QUOTES:
            return self._string()
        return self._scalar()

    def _enter(self, close: str) -> None:
        if len(self._open) >= self._max_depth:
            raise self._bad(f"nested deeper than {self._max_depth} levels")
        self._open.append(close)
        self._at += 1

    def _object(self) -> dict[str, Any]:
        self._enter("}")
        pairs: list[tuple[str, Any]] = []
        comma = True
        while (char := self._space()) != "}":
            if not char:
                self._end_of_text(pairs, comma=comma)
                break
            if not comma:
                raise self._bad("a comma or } is missing")
            key = self._key(char)
            self._colon()
            pairs.append((key, self._value()))
            comma = self._comma()
        self._leave(trailing=comma and bool(pairs))
        repeated: list[str] = []
        made = unique(pairs, repeated)
        if repeated:
            self._note("keys that stand twice with the same value taken once")
        return made

    def _array(self) -> list[Any]:
        self._enter("]")
        items: list[Any] = []
        comma = True
        while (char := self._space()) != "]":
            if not char:
                raise CutOffError
            if not comma:
                raise self._bad("a comma or ] is missing")
            items.append(self._value())
            comma = self._comma()
        self._leave(trailing=comma and bool(items))
        return items

    def _leave(self, *, trailing: bool) -> None:
        if trailing:
            self._note("trailing commas left out")
        self._open.pop()
        self._at = min(self._at + 1, self._size)

    def _end_of_text(self, pairs: list[tuple[str, Any]], *, comma: bool) -> None:
        """Add the brace of the whole object, if all that can be missing is that brace.

        Only behind a complete object and with nothing else open: models miscount closing braces.
        Behind a text, number or list more may have been meant, so that counts as cut off.
        """
        whole = (
            len(self._open) == 1 and not comma and bool(pairs) and isinstance(pairs[-1][1], dict)
        )
        if not whole:
            raise CutOffError
        self.closed = True
        self._note("a missing closing brace added")
        self._at -= 1  # there is nothing to step over

    def _comma(self) -> bool:
        found = self._space() == ","
        self._at += found
        return found

    def _colon(self) -> None:
        char = self._space()
        if not char:
            raise CutOffError
        if char != ":":
            raise self._bad("a colon is missing after a key")
        self._at += 1

    def _key(self, char: str) -> str:
        if char in _QUOTES:
            return self._string(key=True)
        found = _KEY_WORD.match(self._text, self._at)
        if found is None:
            raise self._bad("a key is missing")
        self._bare_keys = True
        self._not_both_guesses()
        self._at = found.end() + self._text.startswith("?", found.end())
        self._note("keys without quotes read as texts")
        return found.group()

    def _scalar(self) -> Any:
        found = _TOKEN.match(self._text, self._at)
        if found is None:
            raise self._bad("a value is missing")
        if found.end() == self._size:
            raise CutOffError  # more of it may have been meant
        token = found.group()
        if token in _JSON_WORDS:
            self._at = found.end()
            return _JSON_WORDS[token]
        known = _WORDS.get(token.casefold()) if len(token) <= len("-infinity") else None
        value = self._number(token) if known is None else known[0]
        if known is not None:
            self._note(known[1])
        self._at = found.end()
        return value

    def _number(self, token: str) -> int | float:
        if not _NUMBER.fullmatch(token):
            raise self._bad("a text without quotes, or no JSON value")
        if not _PLAIN_NUMBER.fullmatch(token):
            self._note("unusual numbers read")
        try:
            return int(token) if _WHOLE.fullmatch(token) else finite(token)
        except ValueError:
            raise self._bad("a number is too large") from None

    # ------------------------------------------------------------ texts

    def _string(self, *, key: bool = False) -> str:
        """A text; a quote inside it that nothing fitting follows belongs to it."""
        opening = self._text[self._at]
        close = _QUOTES[opening]
        if self._text.startswith(opening * 3, self._at):
            raise self._bad("three quotes in a row")
        if opening != '"':
            self._note("other quotes read as double quotes")
        start = end = self._at + 1
        guesses = self._guesses
        while True:
            end = self._quote(close, end)
            if key or self._ends_value(end + 1, close):
                break
            self._keep_quote(end, close)
            end += 1
        raw = self._text[start:end]
        if self._guesses > guesses:
            self._check_pairs(raw, close)
        self._at = end + 1
        return self._decode(raw)

    def _quote(self, close: str, at: int) -> int:
        """Where the next unescaped quote stands."""
        found = _BODIES[close].match(self._text, at)
        end = found.end() if found else at
        if not self._text.startswith(close, end):
            if self._guesses and _ENDS_LIKE_JSON.search(self._text[-200:]):
                raise self._bad("a text does not end; escape the quotes inside texts")
            raise CutOffError
        return end

    def _ends_value(self, at: int, quote: str) -> bool:
        """Whether the text goes on as JSON does behind a value."""
        depth = len(self._open)
        while (at := self._blank(at)) < self._size:
            char = self._text[at]
            if char == ",":
                return _FOLLOWERS[self._open[depth - 1]].match(self._text, at + 1) is not None
            if char not in "}]":
                return self._text.startswith(("//", "/*", "```"), at)
            if char != self._open[depth - 1]:
                return False
            depth -= 1
            at += 1
            if depth == 0:
                return self._ends_whole(at, quote)
        return True

    def _ends_whole(self, at: int, quote: str) -> bool:
        """Whether the whole object may end here: no text of it may be left."""
        at = self._blank(at)
        return self._text.startswith(("{", "```"), at) or self._text.find(quote, at) < 0

    def _keep_quote(self, at: int, quote: str) -> None:
        """Count a quote as part of a text, unless it looks as if JSON went on behind it."""
        if _COLON.match(self._text, at + 1):
            raise self._bad("a quote before a colon inside a text; escape quotes inside texts", at)
        joined = _JOINED.match(self._text, at + 1)
        if (
            joined
            and joined[2] == quote
            and (joined[1] or not self._ends_value(joined.end(), quote))
        ):
            raise self._bad("two texts without a comma between them", at)
        self._guesses += 1
        if self._guesses > MAX_GUESSES:
            raise self._bad("too many unescaped quotes inside texts", at)
        self._not_both_guesses()
        self._note("unescaped quotes inside a text kept")

    def _not_both_guesses(self) -> None:
        if self._guesses and self._bare_keys:
            raise self._bad("quotes are missing around keys and unescaped inside texts")

    def _check_pairs(self, raw: str, close: str) -> None:
        """Quotes inside a text stand around words; others mean that it began or ended elsewhere."""
        if not _PAIRED[close].fullmatch(raw):
            raise self._bad("a quote without a partner inside a text; escape quotes inside texts")

    def _decode(self, raw: str) -> str:
        if _CONTROL.search(raw):
            self._note("raw line breaks or tabs in a text kept")
        if "\\" not in raw:
            return raw
        decoded: str = json.loads(f'"{_ESCAPE.sub(self._escape, raw)}"', strict=False)
        return decoded

    def _escape(self, found: re.Match[str]) -> str:
        escape = found.group()
        if escape == '"':
            return '\\"'
        if escape == "\\'":
            self._note("escaped apostrophes read")
            return "'"
        if escape == "\\":
            self._note("unknown escapes kept as they are")
            return "\\\\"
        return escape
