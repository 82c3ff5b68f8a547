"""The language of conditions and templates: a small subset of CEL that always ends and changes nothing.

```text
values     1, 2.5, 'text', "text", true, false, null, [1, 2]
paths      payload.items[0].name, item['odd key'], item[-1], text.length, list.length
operators  == != < <= > >= in, && || !, + - * / %, condition ? a : b, value ?? fallback
functions  size contains startsWith endsWith lower upper trim int double string abs, has(path), default(value, fallback)
```

Functions may be called as methods. What models write out of habit is read: `===`, `!==`, `and`, `or`, `not`, `not in`,
`True`, `None`, `undefined`, `len`, `includes`, `toLowerCase`, `?.`, and `{{ }}` around the whole.

A path that leads nowhere is *missing*: false, equal to null, and replaced by `default` or `??`. To calculate with it,
to order it or to end with it is a failure. So is an unknown root name. Null, false, 0, and empty text, lists and
objects count as false. Values of different kinds are never equal, and cannot be ordered. Whole numbers are exact;
`7 / 2` is 3.5, `6 / 2` is 3.

Keys are looked up in objects, never as attributes: `payload.items` is the key, and `x.__class__` is missing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from loopagent.core.expression_lexer import SyntaxHalt
from loopagent.core.expression_nodes import Name, Node, Path
from loopagent.core.expression_parser import Parser
from loopagent.core.expression_values import ExpressionLimits, Frame, Halt, present, reason


if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["DEFAULT_LIMITS", "Expression", "ExpressionLimits", "Failure", "Value", "parse"]

DEFAULT_LIMITS: Final = ExpressionLimits()
"""Limits that fit conditions and templates written by hand or by a model."""
_CACHED: Final = 1_024


@dataclass(frozen=True, slots=True)
class Value:
    """What came out.

    Args:
        value: A JSON value; parts of it may be parts of the scope, so it is not to be changed.
    """

    value: Any


@dataclass(frozen=True, slots=True)
class Failure:
    """Why nothing came out.

    Args:
        message: What is wrong and what to do, for whoever wrote the expression.
        position: Where in the source, in characters from 0.
    """

    message: str
    position: int

    def __str__(self) -> str:
        return f"{self.message} (at character {self.position + 1})"


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression that was read; it can be evaluated any number of times.

    Args:
        source: The text.
        names: Root names that it looks up.
        lookups: How often it looks one up at most.
        path: Root name, keys and positions if it is nothing but a path; else None.
        root: The part that computes all of it.
        limits: What it may make and compare.
    """

    source: str
    names: frozenset[str]
    lookups: int
    path: tuple[str | int, ...] | None
    root: Node = field(repr=False)
    limits: ExpressionLimits = field(repr=False)

    def evaluate(self, scope: Mapping[str, Any]) -> Value | Failure:
        """Compute the value.

        Args:
            scope: Root names and their JSON values; nothing in it is changed.

        Returns:
            The value; or a failure, also when a path leads nowhere.
        """
        frame = Frame(scope, self.limits)
        try:
            return Value(present(self.root.run(frame)))
        except (Halt, RecursionError) as halt:
            return Failure(reason(halt), frame.at)

    def holds(self, scope: Mapping[str, Any]) -> bool | Failure:
        """Compute whether a condition holds.

        Args:
            scope: Root names and their JSON values; nothing in it is changed.

        Returns:
            Whether the value counts as true; what is missing does not.
        """
        frame = Frame(scope, self.limits)
        try:
            return bool(self.root.run(frame))
        except (Halt, RecursionError) as halt:
            return Failure(reason(halt), frame.at)


def parse(source: str, limits: ExpressionLimits = DEFAULT_LIMITS) -> Expression | Failure:
    """Read an expression.

    Args:
        source: The text; `{{ }}` around the whole of it is ignored.
        limits: How large it may be, and what it may make.

    Returns:
        The expression; or what is wrong with the text. The same text is read only once.
    """
    if len(source) > limits.max_chars:
        return Failure(f"longer than {limits.max_chars} characters", limits.max_chars)
    return _parse(source, limits)


@lru_cache(maxsize=_CACHED)
def _parse(source: str, limits: ExpressionLimits) -> Expression | Failure:
    start, end = _inner(source)
    try:
        parser = Parser(source, start, end, limits)
        root = parser.read()
    except SyntaxHalt as halt:
        return Failure(halt.message, halt.position)
    return Expression(source, frozenset(parser.names), len(parser.names), _path(root), root, limits)


def _inner(source: str) -> tuple[int, int]:
    """Where the expression starts and ends without braces around it."""
    start = len(source) - len(source.lstrip())
    end = len(source.rstrip())
    braces = source.startswith("{{", start) and source.endswith("}}", start, end)
    return (
        (start + 2, end - 2) if braces and end - start > len("{{}}") else (start, max(start, end))
    )


def _path(root: Node) -> tuple[str | int, ...] | None:
    if isinstance(root, Name):
        return (root.label,)
    if isinstance(root, Path) and isinstance(root.base, Name):
        return (root.base.label, *root.keys)
    return None
