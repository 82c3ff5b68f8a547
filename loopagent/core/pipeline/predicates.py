"""Conditions of `where`: `Balance > 0 and not (Status in [open, "on hold"] or Name contains "test")`.

`or` binds weakest, then `and`, then `not`; a comparison has a field path on its left and a value on its right.
A word on the right is text, whether or not a field has that name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Protocol

from loopagent.core.json_values import is_array, is_object
from loopagent.core.pipeline.moment import Moment
from loopagent.core.pipeline.paths import Path, read_path
from loopagent.core.pipeline.values import number_of, same, text_of
from loopagent.core.regex import Pattern, compile_pattern


MAX_CHARS: Final = 1_000
"""Longest condition."""
MAX_DEPTH: Final = 30
"""Deepest nesting of parentheses and `not`."""


class Predicate(Protocol):
    """A condition that was read."""

    def holds(self, entry: Any, moment: Moment) -> bool:
        """Whether an entry meets it."""
        ...


@dataclass(frozen=True, slots=True)
class _Any:
    parts: tuple[Predicate, ...]

    def holds(self, entry: Any, moment: Moment) -> bool:
        return any(one.holds(entry, moment) for one in self.parts)


@dataclass(frozen=True, slots=True)
class _All:
    parts: tuple[Predicate, ...]

    def holds(self, entry: Any, moment: Moment) -> bool:
        return all(one.holds(entry, moment) for one in self.parts)


@dataclass(frozen=True, slots=True)
class _Not:
    part: Predicate

    def holds(self, entry: Any, moment: Moment) -> bool:
        return not self.part.holds(entry, moment)


@dataclass(frozen=True, slots=True)
class Compare:
    """One comparison."""

    path: Path
    operator: str
    value: Any

    def holds(self, entry: Any, moment: Moment) -> bool:
        """Whether an entry meets it."""
        found = self.path.field(entry)
        return OPERATORS[self.operator](found, _at(self.value, moment))


@dataclass(frozen=True, slots=True)
class _Word:
    """`today` or `now`, which stand for a text that is known when the pipeline runs."""

    name: str


def _at(value: Any, moment: Moment) -> Any:
    if isinstance(value, _Word):
        return getattr(moment, value.name)
    return [_at(one, moment) for one in value] if is_array(value) else value


def _ordered(test: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    """Compare by number where both sides are numbers, else by text; null comes neither before nor after."""

    def ordered(left: Any, right: Any) -> bool:
        if left is None or right is None:
            return False
        one, other = number_of(left), number_of(right)
        if one is not None and other is not None:
            return test(one, other)
        return test(text_of(left), text_of(right))

    return ordered


def _contains(left: Any, right: Any) -> bool:
    if is_array(left):
        return any(same(one, right) for one in left)
    if is_object(left):
        return text_of(right) in left
    return left is not None and text_of(right) in text_of(left)


def _matches(left: Any, right: Any) -> bool:
    pattern = compile_pattern(right)
    return left is not None and isinstance(pattern, Pattern) and pattern.found_in(text_of(left))


OPERATORS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "==": same,
    "!=": lambda left, right: not same(left, right),
    "<=": _ordered(lambda left, right: left <= right),
    ">=": _ordered(lambda left, right: left >= right),
    "<": _ordered(lambda left, right: left < right),
    ">": _ordered(lambda left, right: left > right),
    "contains": _contains,
    "startswith": lambda left, right: left is not None and text_of(left).startswith(text_of(right)),
    "endswith": lambda left, right: left is not None and text_of(left).endswith(text_of(right)),
    "matches": _matches,
    "in": lambda left, right: any(same(left, one) for one in right),
}
"""Operators, folded, and what they do with a field and a value."""
_ALIASES: Final = {"===": "==", "=": "==", "is": "==", "is not": "!=", "!==": "!=", "<>": "!="}
_WORDS: Final[Mapping[str, Any]] = {
    "true": True,
    "false": False,
    "null": None,
    "none": None,
    "today": _Word("today"),
    "now": _Word("now"),
}
_SPACE: Final = re.compile(r"\s*")
_OR: Final = re.compile(r"or\b|\|\|", re.IGNORECASE)
_AND: Final = re.compile(r"and\b|&&", re.IGNORECASE)
_NOT: Final = re.compile(r"not(?=[\s(])|!(?!=)", re.IGNORECASE)
_PATH: Final = re.compile(
    r"""(?:[^\s()\[\],"'=<>!&|{}]+|\[\s*(?:-?\d+|\*|"[^"]*"|'[^']*')\s*\])+"""
)
_OPERATOR: Final = re.compile(
    r"===?|!==?|<>|<=|>=|[<>=]|(?:contains|startsWith|endsWith|matches|in|is\s+not|is)\b",
    re.IGNORECASE,
)
_TEXT: Final = re.compile(r"\"([^\"]*)\"|'([^']*)'")
_BARE: Final = re.compile(r"""[^\s()\[\],"'=<>!&|{}]+""")
_KNOWN: Final = "== != <= >= < > contains startsWith endsWith matches in"


class _WrongError(Exception):
    """Ends the reading of a condition; never leaves this module."""


@lru_cache(maxsize=256)
def read_predicate(source: str) -> Predicate | str:
    """Read a condition.

    Args:
        source: What the model wrote.

    Returns:
        The condition, or what is wrong with it.
    """
    if len(source) > MAX_CHARS:
        return f"expected a condition of at most {MAX_CHARS} characters, got {len(source)}"
    if "{{" in source:
        return "templates are not filled in here; only `with` of a tool takes {{ }}"
    try:
        return _Reader(source).whole()
    except _WrongError as error:
        return str(error)


class _Reader:
    """Reads one condition by recursive descent; each method reads one level of precedence."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.at = 0
        self.depth = 0

    def whole(self) -> Predicate:
        """The whole condition."""
        found = self.any_of()
        if self.rest():
            raise self.wrong("expected and, or or the end; put text with spaces into quotes")
        return found

    def any_of(self) -> Predicate:
        """Parts with `or` between them."""
        parts = [self.all_of()]
        while self.take(_OR):
            parts.append(self.all_of())
        return parts[0] if len(parts) == 1 else _Any(tuple(parts))

    def all_of(self) -> Predicate:
        """Parts with `and` between them."""
        parts = [self.one()]
        while self.take(_AND):
            parts.append(self.one())
        return parts[0] if len(parts) == 1 else _All(tuple(parts))

    def one(self) -> Predicate:
        """A negation, something in parentheses, or a comparison."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.wrong(f"nested more than {MAX_DEPTH} levels deep")
        found = self.negated() or self.grouped() or self.comparison()
        self.depth -= 1
        return found

    def negated(self) -> Predicate | None:
        """`not …`."""
        return _Not(self.one()) if self.take(_NOT) else None

    def grouped(self) -> Predicate | None:
        """`( … )`."""
        if not self.sign("("):
            return None
        found = self.any_of()
        if not self.sign(")"):
            raise self.wrong("expected )")
        return found

    def comparison(self) -> Predicate:
        """`path OP value`."""
        written = self.take(_PATH)
        if written is None:
            raise self.wrong("expected a field path")
        path = read_path(written[0])
        if isinstance(path, str):
            raise _WrongError(path)
        negative = self.take(_NOT) is not None
        operator = self.operator(written[0])
        found = Compare(path, operator, self.operand(operator))
        return _Not(found) if negative else found

    def operator(self, path: str) -> str:
        """The operator behind a path."""
        match = self.take(_OPERATOR)
        if match is None:
            raise self.wrong(f"expected one of {_KNOWN} behind {path}, for example {path} == true")
        word = " ".join(match[0].lower().split())
        return _ALIASES.get(word, word)

    def operand(self, operator: str) -> Any:
        """What is compared with."""
        if operator == "in":
            return self.listed()
        value = self.value()
        if operator != "matches":
            return value
        pattern = text_of(value)
        compiled = compile_pattern(pattern)
        if isinstance(compiled, str):
            raise _WrongError(compiled)
        return pattern

    def listed(self) -> list[Any]:
        """The values of `in`."""
        close = "]" if self.sign("[") else ")" if self.sign("(") else ""
        if not close:
            raise self.wrong("expected a list behind in, such as [open, closed]")
        values: list[Any] = []
        while not self.sign(close):
            values.append(self.value())
            if not self.sign(",") and self.rest()[:1] != close:
                raise self.wrong(f"expected , or {close}")
        return values

    def value(self) -> Any:
        """A text, a number, a known word, or any other word as text."""
        match = self.take(_TEXT)
        if match is not None:
            return match[1] if match[1] is not None else match[2]
        match = self.take(_BARE)
        if match is None:
            raise self.wrong("expected a value; quoted text has no escapes")
        word = match[0]
        if word.lower() in _WORDS:
            return _WORDS[word.lower()]
        number = number_of(word)
        return word if number is None else number

    def rest(self) -> str:
        """What was not read yet."""
        space = _SPACE.match(self.source, self.at)
        self.at = space.end() if space else self.at
        return self.source[self.at :]

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Read on over a pattern, if it comes next."""
        self.rest()
        match = pattern.match(self.source, self.at)
        if match is not None:
            self.at = match.end()
        return match

    def sign(self, char: str) -> bool:
        """Read on over one character, if it comes next."""
        found = self.rest()[:1] == char
        self.at += found
        return found

    def wrong(self, message: str) -> _WrongError:
        """What is wrong here."""
        rest = self.rest()
        where = f"at {rest[:30]!r}" if rest else "at the end"
        return _WrongError(f"{message}; got {self.source!r}, {where}")
