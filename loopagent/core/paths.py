"""Places in a payload, as tuples of keys and positions, and rules on who may do what where.

A rule is written `PATTERN` or `PATTERN:add,update,delete`; without operations it allows all three.

| pattern | covers |
| --- | --- |
| `*` | everything, the whole included |
| `a.b` | that place and everything below it |
| `a[0]`, `a[*]` | one position of an array, every position |
| `a["x.y"]` | a key that could not be written otherwise (a JSON string, or one in single quotes) |
| `a.*` | everything below `a`, but not `a` itself |
| `a.*.c` | each `c` one or more levels below `a` |

Rules only allow; what no rule covers is refused. A rule for a part needs none for the whole.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast

from loopagent.core.json_values import is_array, is_object
from loopagent.core.names import closest


if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Path: TypeAlias = tuple[str | int, ...]
"""Keys and positions from the outside in."""
Operation: TypeAlias = Literal["add", "update", "delete"]
OPERATIONS: Final[frozenset[str]] = frozenset({"add", "update", "delete"})
MAX_PATTERN_CHARS: Final = 1_000
"""Longest pattern that is read."""


class Wild(Enum):
    """A part of a pattern that stands for several."""

    LEVELS = "*"
    """One or more levels, whatever they are."""
    POSITION = "[*]"
    """Any position of an array."""


Pattern: TypeAlias = tuple[str | int | Wild, ...]
"""Parts from the outside in; empty for everything."""

_PART: Final = re.compile(
    r"""
      (?P<levels>\*)
    | (?P<name>[^\s.\[\]:"*](?:[^.\[\]:"*]*[^\s.\[\]:"*])?)
    | \[\s*(?:
          (?P<position>\d{1,9})
        | (?P<every>\*)
        | (?P<quoted>"(?:[^"\\]|\\.)*")
        | '(?P<single>(?:[^'\\]|\\.)*)'
      )\s*\]
    """,
    re.VERBOSE,
)
_FOREIGN: Final = ("/", "$")
_FORM_OF_PLACE: Final = 'write it like a.b, a[0].b or a["x.y"]'
_FORM: Final = 'write it like a.b, a[0].b, a["x.y"], a.* or *'


@dataclass(frozen=True, slots=True)
class Rule:
    """A pattern and what may be done at the places it covers."""

    pattern: Pattern
    operations: frozenset[str] = OPERATIONS

    def covers(self, path: Path) -> bool:
        """Whether the pattern names this place or one around it."""
        at = _Matching((self.pattern,))
        for part in path:
            at = at.below(part)
        return at.covered


@dataclass(frozen=True, slots=True)
class Rules:
    """What may be read or written."""

    rules: tuple[Rule, ...] = ()

    def allows(self, path: Path, operation: Operation) -> bool:
        """Whether the operation may be done at exactly this place.

        Args:
            path: The place; empty for the whole payload.
            operation: What is to be done.
        """
        return any(operation in one.operations and one.covers(path) for one in self.rules)

    @property
    def everything(self) -> bool:
        """Whether nothing is kept out."""
        return any(not one.pattern and one.operations == OPERATIONS for one in self.rules)

    def filter(self, value: Any) -> Any:
        """The part of a value that may be read; operations do not matter.

        Objects and arrays on the way to a readable place are kept, without what may not be read. An unreadable
        item is shown as `{}`, so that positions stay what they are. Nothing that came in is changed.
        """
        for one in self.rules:
            if not one.pattern:
                return value
        shown = _readable(value, _Matching(tuple(one.pattern for one in self.rules)))
        return _empty_of(value) if shown is _HIDDEN else shown


ALL: Final = Rules((Rule(()),))
"""Rules that allow everything."""


def parse_rules(texts: Iterable[str]) -> tuple[Rules, list[str]]:
    """Read rules as people write them.

    Args:
        texts: One rule each.

    Returns:
        The rules, and what is wrong with the texts that are none; those allow nothing.
    """
    rules: list[Rule] = []
    problems: list[str] = []
    for text in texts:
        read = _parse_rule(text)
        if isinstance(read, Rule):
            rules.append(read)
        else:
            problems.append(f"{text[:80]!r}: {read}")
    return Rules(tuple(rules)), problems


def parse_path(text: str) -> Path | str:
    """Read a path without wildcards, such as `orders[0].id`.

    Returns:
        Keys and positions, or what is wrong with the text. The same text is read only once.
    """
    return "too long" if len(text) > MAX_PATTERN_CHARS else _place(text)


@lru_cache(maxsize=1_024)
def _place(text: str) -> Path | str:
    read = _parse_pattern(text.strip())
    if isinstance(read, str):
        return read
    pattern, rest = read
    path = tuple(one for one in pattern if not isinstance(one, Wild))
    if rest or len(path) != len(pattern) or not path:
        return f"not one place; {_FORM_OF_PLACE}"
    return path


def look_up(value: Any, path: Path) -> Any:
    """What is at a place of a JSON value.

    Raises:
        LookupError: Nothing is there.
    """
    for part in path:
        fits = isinstance(value, list) if isinstance(part, int) else isinstance(value, dict)
        if not fits:
            raise LookupError(part)
        value = value[part]
    return value


def pointer(path: Sequence[str | int]) -> str:
    """The path as a JSON Pointer (RFC 6901)."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)


# --- reading patterns ------------------------------------------------------------------------------


def _parse_rule(text: str) -> Rule | str:
    text = text.strip()
    if len(text) > MAX_PATTERN_CHARS:
        return f"longer than {MAX_PATTERN_CHARS} characters"
    if text.startswith(_FOREIGN):
        return f'{_FORM}; a key that starts with {text[0]} goes into quotes: ["{text[0]}…"]'
    read = _parse_pattern(text)
    if isinstance(read, str):
        return read
    pattern, rest = read
    if not rest:
        return Rule(pattern)
    operations = [one.strip().casefold() for one in rest[1:].split(",")]
    for one in operations:
        if one not in OPERATIONS:
            return _unknown_operation(one)
    return Rule(pattern, frozenset(operations))


def _unknown_operation(name: str) -> str:
    known = "add, update, delete"
    if not name:
        return f"an operation is missing after the colon; known: {known}"
    near = closest(name, sorted(OPERATIONS))
    hint = f"; did you mean {near[0]}?" if near else ""
    return f"unknown operation {name!r}{hint} (known: {known})"


def _parse_pattern(text: str) -> tuple[Pattern, str] | str:
    """The pattern a text starts with, and the rest from the colon on; or what is wrong with it."""
    parts: list[str | int | Wild] = []
    position = 0
    while not parts or (position < len(text) and text[position] != ":"):
        dotted = bool(parts) and text[position] == "."
        position += dotted
        found = _PART.match(text, position)
        bracketed = text[position : position + 1] == "["
        if found is None or (parts and dotted == bracketed):
            where = f"at character {position + 1}" if position < len(text) else "at its end"
            return f"not a path ({where}); {_FORM}"
        part = _part(found)
        if part is None:
            return f"not a JSON string: {found.group()}"
        parts.append(part)
        position = found.end()
    return (() if parts == [Wild.LEVELS] else tuple(parts)), text[position:]


def _part(found: re.Match[str]) -> str | int | Wild | None:
    text = found.group(found.lastgroup or 0)
    if found.lastgroup == "position":
        return int(text)
    if found.lastgroup == "single":
        return re.sub(r"\\(.)", r"\1", text)
    if found.lastgroup == "quoted":
        try:
            return cast("str", json.loads(text))
        except ValueError:
            return None
    wild = {"levels": Wild.LEVELS, "every": Wild.POSITION}
    return wild.get(found.lastgroup or "", text)


# --- matching --------------------------------------------------------------------------------------


class _Matching:
    """How far patterns have got on the way to a place: the parts of each that are still to come."""

    __slots__ = ("_rest", "covered")

    def __init__(self, rest: Iterable[Pattern]) -> None:
        self._rest = set(rest)
        self.covered = () in self._rest

    def __bool__(self) -> bool:
        return bool(self._rest)

    def below(self, part: str | int) -> _Matching:
        """The same for a key or position inside."""
        if self.covered:
            return self
        rest: set[Pattern] = set()
        for one in self._rest:
            first = one[0]
            if first is Wild.LEVELS:
                rest |= {one, one[1:]}
            elif first is Wild.POSITION:
                if isinstance(part, int):
                    rest.add(one[1:])
            elif type(first) is type(part) and first == part:
                rest.add(one[1:])
        return _Matching(rest)


_HIDDEN: Final = object()


def _readable(value: Any, at: _Matching) -> Any:
    """What may be read of a value, or `_HIDDEN`."""
    if at.covered:
        return value
    if not at:
        return _HIDDEN
    if is_object(value):
        fields = ((key, _readable(one, at.below(key))) for key, one in value.items())
        return {key: one for key, one in fields if one is not _HIDDEN}
    if is_array(value):
        items = (_readable(one, at.below(index)) for index, one in enumerate(value))
        return [{} if one is _HIDDEN else one for one in items]
    return _HIDDEN


def _empty_of(value: Any) -> Any:
    """What stands for a payload of which nothing may be read."""
    return {} if is_object(value) else [] if is_array(value) else None


@lru_cache(maxsize=256)
def rules_of(texts: tuple[str, ...]) -> Rules:
    """Rules from their written form, read once; those that cannot be read allow nothing."""
    return parse_rules(list(texts))[0]
