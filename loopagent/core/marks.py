"""Where things stand in the text of a reply: what was left out, what was repaired, the line of each problem.

For people who look at a reply afterwards. Nothing here decides anything: `text` has decided already.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final, Literal

from loopagent.core.lexical import MAX_DEPTH, BadJsonError, CutOffError, Reader
from loopagent.core.strict import DuplicateKeyError, same
from loopagent.core.text import clean_json, read_text
from loopagent.core.values import value_object


if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MAX_CHARS: Final = 100_000
"""Longest text that is looked at; longer ones have no marks."""
MAX_MARKS: Final = 1_000
"""Most marks of one text."""
MAX_TRIES: Final = 100
"""Braces that are tried as the beginning of the object."""
MAX_PLACES: Final = 50_000
"""Values whose place is noted."""
_TOKEN: Final = re.compile(
    r"""[ \t\r\n]++
    |(?P<text>"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+")
    |(?P<plain>(?:-?(?:0|[1-9]\d*+)(?:\.\d++)?(?:[eE][-+]?\d++)?|true|false|null)(?![\w.$-]))
    |(?P<sign>[{}\[\],:])""",
    re.VERBOSE,
)
_ODD: Final = re.compile(
    r"""(?P<note>//[^\n]*+|\#[^\n]*+|/\*(?:[^*]|\*(?!/)){0,4000}+\*/)
    |(?P<text>"(?:[^"\\]|\\.){0,20000}+"|'(?:[^'\\]|\\.){0,4000}+'|\u201c[^\u201d]{0,4000}+\u201d)
    |(?P<plain>[\w$+.-]++)|(?P<sign>.)""",
    re.VERBOSE | re.DOTALL,
)
"""What is no JSON, and may yet have been read."""
_NOT_IN_TEXT: Final = re.compile(r'[\x00-\x1f]|\\(?!["\\/bfnrt]|u[0-9a-fA-F]{4}).', re.DOTALL)
_STEP: Final = re.compile(
    r"""\.?(?P<name>[A-Za-z_$][\w$-]*+)|\[(?P<index>\d++)\]|\[(?P<quoted>"(?:[^"\\]|\\.)*+")\]"""
)
Kind = Literal["cut", "repaired", "added"]
Steps = tuple[str | int, ...]


@value_object(frozen=True, slots=True)
class Mark:
    """A stretch of a reply, in characters; an added brace has no length."""

    start: int
    end: int
    kind: Kind

    def public(self) -> dict[str, Any]:
        """The same as JSON."""
        return {"start": self.start, "end": self.end, "kind": self.kind}


@value_object(frozen=True, slots=True)
class _Token:
    kind: str
    """`text`, `plain`, `note`, or the sign itself."""
    start: int
    end: int
    odd: bool = False


def marks(text: str) -> list[Mark]:
    """What of a reply was left out or repaired, in order; none of one that was not read."""
    reading = read_text(text) if len(text) <= MAX_CHARS else None
    if reading is None or not isinstance(reading.value, dict):
        return []
    span = _span(text, reading.value)
    if span is None:
        return []
    start, end = span
    found = [Mark(0, start, "cut")] if text[:start].strip() else []
    found += _repaired(text, start, end)[: MAX_MARKS - 2]
    if reading.closed:
        found.append(Mark(end, end, "added"))
    if text[end:].strip():
        found.append(Mark(end, len(text), "cut"))
    return found


def _span(text: str, value: Any) -> tuple[int, int] | None:
    """Where the last object with this value stands."""
    found: tuple[int, int] | None = None
    at = text.find("{")
    for _ in range(MAX_TRIES):
        if at < 0:
            break
        end, one = _object(text, at)
        if end and same(clean_json(one), value):
            found = (at, end)
        at = text.find("{", end or at + 1)
    return found


def _object(text: str, start: int) -> tuple[int, Any]:
    """The end of an object and the object; 0 when there is none."""
    reader = Reader(text)
    try:
        return (reader.end, value) if (value := reader.read(start)) is not None else (0, None)
    except (BadJsonError, CutOffError, DuplicateKeyError, RecursionError):
        return 0, None


def _repaired(text: str, start: int, end: int) -> list[Mark]:
    found: list[Mark] = []
    comma: _Token | None = None
    for one in _tokens(text, start, end):
        if len(found) >= MAX_MARKS:
            break
        if comma is not None and one.kind in {"}", "]"}:
            found.append(Mark(comma.start, comma.end, "repaired"))
        comma = one if one.kind == "," else None
        if one.odd:
            found += _within(text, one)
    return found


def _within(text: str, odd: _Token) -> Iterator[Mark]:
    """The characters that no JSON text may hold; else the whole token."""
    if text[odd.start] != '"':
        yield Mark(odd.start, odd.end, "repaired")
        return
    for one in _NOT_IN_TEXT.finditer(text, odd.start, odd.end):
        yield Mark(one.start(), one.end(), "repaired")


def _tokens(text: str, at: int, end: int) -> Iterator[_Token]:
    while at < end:
        found = _TOKEN.match(text, at, end)
        odd = found is None
        found = found or _ODD.match(text, at, end)
        if found is None:
            return
        kind = found.lastgroup or ""
        if kind:
            yield _Token(found.group() if kind == "sign" else kind, at, found.end(), odd)
        at = found.end()


# ---------------------------------------------------------------------- places


def steps_of(path: str) -> Steps:
    """A path as problems name it, such as `nextStep.actions[0].name`, step by step."""
    steps: list[str | int] = []
    at = 0
    while found := _STEP.match(path, at):
        name, index, quoted = found.group("name", "index", "quoted")
        steps.append(int(index) if index else json.loads(quoted) if quoted else name)
        at = found.end()
    return tuple(steps)


def pointer_of(path: str) -> str:
    """The same as a JSON pointer (RFC 6901)."""
    return pointer(steps_of(path))


def pointer(steps: Iterable[str | int]) -> str:
    """Keys and positions as a JSON pointer."""
    escaped = (str(one).replace("~", "~0").replace("/", "~1") for one in steps)
    return "".join(f"/{one}" for one in escaped)


class Places:
    """Where the values of a reply stand in its text.

    Args:
        text: The reply as it came.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._found: dict[Steps, int] = {}
        if len(text) <= MAX_CHARS and "{" in text:
            span = _span(text, value) if (value := read_text(text).value) else None
            start, end = span or (text.find("{"), len(text))
            self._read(_tokens(text, start, end))

    def line(self, path: str) -> int | None:
        """The line, from 1, of what a path names, or of the nearest thing around it; None when nothing is known."""
        steps = _folded(steps_of(path))
        for length in range(len(steps), -1, -1):
            at = self._found.get(steps[:length])
            if at is not None:
                return self._text.count("\n", 0, at) + 1
        return None

    def _read(self, tokens: Iterator[_Token]) -> None:
        """Note where each value stands, as far as the text is regular."""
        open_: list[list[Any]] = []  # sign, and the key or the position that values stand at
        key: _Token | None = None
        for one in tokens:
            if len(self._found) >= MAX_PLACES or len(open_) > MAX_DEPTH:
                return
            if one.kind == ":" and open_ and key is not None:
                open_[-1][1] = self._name(key)
                self._put(open_, key.start)
            elif one.kind == ",":
                self._next(open_)
            elif one.kind in {"}", "]"}:
                del open_[-1:]
            elif one.kind in {"{", "["}:
                self._put(open_, one.start)
                open_.append([one.kind, 0 if one.kind == "[" else None])
            elif one.kind != "note":
                key = one
                self._put(open_, one.start)

    def _next(self, open_: list[list[Any]]) -> None:
        if open_:
            frame = open_[-1]
            frame[1] = frame[1] + 1 if frame[0] == "[" else None

    def _put(self, open_: list[list[Any]], at: int) -> None:
        steps = tuple(one for _, one in open_)
        if None not in steps:
            self._found.setdefault(_folded(steps), at)

    def _name(self, token: _Token) -> str:
        text = self._text[token.start : token.end]
        try:
            return (
                str(json.loads(text))
                if token.kind == "text" and text[0] == '"'
                else text.strip("'\u201c\u201d")
            )
        except ValueError:
            return text.strip('"')


def _folded(steps: Steps) -> Steps:
    """Keys without case, dashes and underscores: a reply may spell them otherwise than problems do."""
    return tuple(
        re.sub("[_-]", "", one).casefold() if isinstance(one, str) else one for one in steps
    )
