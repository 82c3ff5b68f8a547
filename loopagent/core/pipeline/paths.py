"""Paths into values: field paths (`A`, `A.B`, `A[0].B`, `A[*].B`) and a subset of JSONPath."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Literal, TypeAlias

from loopagent.core.json_values import is_array, is_object


MAX_PATH_CHARS: Final = 500
"""Longest path."""
MAX_MATCHES: Final = 100_000
"""Most values that a path may lead to."""
_UNKNOWN: Final = "filters, slices and scripts are not known here; use where, first, last or select"
_STEP: Final = re.compile(
    r"""
      \.\.(?P<deep>\*|[^.\[\]*"'?()]+)
    | \.?\[\s*(?:(?P<index>-?\d{1,9})|(?P<all>\*)|"(?P<quoted>[^"]*)"|'(?P<single>[^']*)')\s*\]
    | \.(?P<members>\*)
    | \.?(?P<key>[^.\[\]*"'?()]+)
    """,
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Every:
    """All members of an object or array; `deep` looks at every level, for those of a name if there is one."""

    deep: bool = False
    name: str | None = None


Step: TypeAlias = str | int | Every


@dataclass(frozen=True, slots=True)
class Path:
    """Where something is in a value."""

    text: str
    """As it was written."""
    steps: tuple[Step, ...]
    """From the outside in."""

    @property
    def name(self) -> str:
        """The last key, which names what was found."""
        return next((one for one in reversed(self.steps) if isinstance(one, str)), self.text)

    @property
    def many(self) -> bool:
        """Whether the path may lead to several values."""
        return any(isinstance(one, Every) for one in self.steps)

    def field(self, value: Any) -> Any:
        """The value a field path leads to, None when there is none; a list when the path says `[*]`."""
        if is_object(value) and self.text in value:
            return value[self.text]
        if self.many:
            found = self.matches(value)
            return None if found is None else found
        for step in self.steps:
            value = _member(value, step, None)
        return value

    def matches(self, value: Any) -> list[Any] | None:
        """All values the path leads to, in order; None when there are too many."""
        found = [value]
        for step in self.steps:
            found = _next(found, step)
            if len(found) > MAX_MATCHES:
                return None
        return found


_NOTHING: Final = object()


def _member(value: Any, step: Step, missing: Any) -> Any:
    if isinstance(step, str):
        return value.get(step, missing) if is_object(value) else missing
    if isinstance(step, int) and is_array(value) and -len(value) <= step < len(value):
        return value[step]
    return missing


def _next(values: list[Any], step: Step) -> list[Any]:
    found: list[Any] = []
    for value in values:
        if not isinstance(step, Every):
            member = _member(value, step, _NOTHING)
            found += [] if member is _NOTHING else [member]
        elif step.deep:
            found += _below(value, step.name)
        else:
            found += _members(value)
        if len(found) > MAX_MATCHES:
            break
    return found


def _members(value: Any) -> list[Any]:
    if is_object(value):
        return list(value.values())
    return value if is_array(value) else []


def _below(value: Any, name: str | None) -> list[Any]:
    """Everything inside a value, or everything inside it of one name, from the outside in, in order."""
    found: list[Any] = []
    todo = [value]
    while todo and len(found) <= MAX_MATCHES:
        one = todo.pop()
        if name is None:
            found += _members(one)
        elif is_object(one) and name in one:
            found.append(one[name])
        todo += [inner for inner in reversed(_members(one)) if isinstance(inner, (dict, list))]
    return found


@lru_cache(maxsize=512)
def read_path(source: str, kind: Literal["field", "jsonpath"] = "field") -> Path | str:
    """Read a path.

    Args:
        source: What the model wrote.
        kind: `jsonpath` also knows `..name` and `.*`.

    Returns:
        The path, or what is wrong with it.
    """
    text = source.strip()
    if not text:
        return "expected a path, got nothing"
    if len(text) > MAX_PATH_CHARS:
        return f"expected a path of at most {MAX_PATH_CHARS} characters"
    start = 1 if text[0] in "$@" and text[1:2] in {"", ".", "["} else 0
    steps: list[Step] = []
    at = start
    while at < len(text):
        match = _STEP.match(text, at)
        if match is None or (match["key"] and at > start and text[at] != "."):
            return _wrong(text, at)
        steps.append(_step(match))
        at = match.end()
    if kind == "field" and any(isinstance(one, Every) and one.deep for one in steps):
        return f"{text}: .. is for jsonpath only"
    return Path(text[start:].removeprefix("."), tuple(steps))


def _wrong(text: str, at: int) -> str:
    hint = f"; {_UNKNOWN}" if any(char in text[at:] for char in "?(:") else ""
    return f"{text}: cannot be read from character {at + 1} on{hint}"


def _step(match: re.Match[str]) -> Step:
    groups = match.groupdict()
    if groups["deep"] is not None:
        return Every(deep=True, name=None if groups["deep"] == "*" else groups["deep"].strip())
    if groups["index"] is not None:
        return int(groups["index"])
    if groups["all"] or groups["members"]:
        return Every()
    texts = (groups[name] for name in ("quoted", "single"))
    return next((one for one in texts if one is not None), (groups["key"] or "").strip())
