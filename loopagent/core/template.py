r"""Values with `{{ expression }}` in their texts, and how they are filled.

| text | filled |
| --- | --- |
| `{{ item.tags }}` and nothing else | the value itself, of whatever type |
| `Hi {{ item.name }}, no {{ index }}` | text; objects and lists as JSON, null as nothing |
| `\{{ item }}` | the text `{{ item }}` |
| `\\{{ item }}` | one backslash and the item |
| `item.email`, with an `item` in scope | stays as it is and is warned about; with `bare`, the email |

Texts are filled at any depth of objects and lists; keys are not. What is put in is data: it is not looked through
again. Nothing is copied but what the braces touch, so neither a template nor what came out of it is to be changed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from loopagent.core.expression import DEFAULT_LIMITS, Expression, ExpressionLimits, Failure, parse
from loopagent.core.expression_nodes import unknown_name
from loopagent.core.template_nodes import (
    Array,
    Constant,
    Finding,
    Mixed,
    Node,
    Object,
    Pass,
    Place,
    Reference,
    Whole,
    about,
)


if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from loopagent.core.problems import Problem


@dataclass(frozen=True, slots=True)
class TemplateLimits:
    """How much a template may be and make.

    Args:
        expression: Limits of each expression.
        max_depth: Deepest nesting of objects and lists with braces in them.
        max_text_chars: Longest text that is put together from parts, in characters.
    """

    expression: ExpressionLimits = DEFAULT_LIMITS
    max_depth: int = 100
    max_text_chars: int = 1_000_000


DEFAULT_TEMPLATE_LIMITS: Final = TemplateLimits()
"""Limits that fit the parameters of actions."""


@dataclass(frozen=True, slots=True)
class Filled:
    """A template, filled.

    Args:
        value: The value; not to be used if there are problems.
        problems: What could not be filled, each with its place.
        warnings: Texts that were left as they are and may have been meant otherwise.
    """

    value: Any
    problems: tuple[Problem, ...] = ()
    warnings: tuple[str, ...] = ()


_OPEN: Final = re.compile(r"(\\{0,2})\{\{")
_BODY: Final = re.compile(
    r"""(?>[^'"}]+|'(?>[^'\\]|\\.)*'|"(?>[^"\\]|\\.)*"|\}(?!\}))*+\}\}""", re.DOTALL
)
_REFERENCE: Final = re.compile(
    r"""\s*((?:[^\W\d]|\$)[\w$]*)(?:\.(?:[^\W\d]|\$)[\w$]*|\[\s*(?:-?\d+|'[^'\\]*'|"[^"\\]*")\s*\])*\s*"""
)
_MAX_REFERENCE_CHARS: Final = 200
_WORDS: Final = frozenset({"payload", "data"})
"""Names that are references only with a path behind them: alone they are too likely a plain word."""
_HINT: Final = r"write \{{ for braces that are meant as text"


@dataclass(frozen=True, slots=True)
class Template:
    """A value that was looked through once and can be filled any number of times.

    Args:
        names: Root names that its expressions look up.
    """

    names: frozenset[str]
    _limits: ExpressionLimits
    _root: Node
    _used: tuple[tuple[Place, Expression], ...]
    _broken: tuple[Finding, ...]
    _warnings: tuple[Finding, ...]

    def fill(self, scope: Mapping[str, Any], *, where: str) -> Filled:
        """Put values in.

        Args:
            scope: Root names and their JSON values; nothing in it is changed.
            where: Place of the template, as in `nextStep.actions[0].params`.

        Returns:
            The value, and what is wrong.
        """
        run = Pass(scope, self._limits)
        value = self._root.fill(run)
        if not (run.problems or run.warnings or self._broken or self._warnings):
            return Filled(value)
        warnings = (*self._warnings, *run.warnings)
        return Filled(
            value,
            tuple(one.problem(where) for one in (*self._broken, *run.problems)),
            tuple(str(one.problem(where)) for one in warnings),
        )

    def check(self, names: Collection[str], *, where: str) -> tuple[Problem, ...]:
        """Look for what can be known to be wrong before anything runs.

        Args:
            names: The root names there will be.
            where: Place of the template.

        Returns:
            Broken expressions, and root names that there will not be.
        """
        unknown = [
            Finding(place, about(expression.source, unknown_name(name, names)), expression.source)
            for place, expression in self._used
            for name in sorted(expression.names.difference(names))
        ]
        return tuple(one.problem(where) for one in (*self._broken, *unknown))


def compile_template(
    value: Any,
    *,
    bare: bool = False,
    names: Collection[str] | None = None,
    limits: TemplateLimits = DEFAULT_TEMPLATE_LIMITS,
) -> Template:
    """Look a value through for braces.

    Args:
        value: A JSON value.
        bare: Whether a text that is a path is filled as if it stood in braces, as older prompts expect. One that
            leads nowhere stays as it is, with a warning.
        names: The root names there will be, if known: other words are then known to be no references.
        limits: How much the template may be and make.

    Returns:
        The template; what is wrong with it comes out when it is checked or filled.
    """
    reader = _Reader(limits, names, bare=bare)
    root = reader.read(value, ())
    names = frozenset(name for _, expression in reader.used for name in expression.names)
    return Template(
        names,
        limits.expression,
        root,
        tuple(reader.used),
        tuple(reader.broken),
        tuple(reader.warnings),
    )


def fill(value: Any, scope: Mapping[str, Any], *, where: str, bare: bool = False) -> Filled:
    """Fill a value once; to fill it often, compile it.

    Args:
        value: A JSON value.
        scope: Root names and their JSON values; nothing in it is changed.
        where: Place of the value, as in `nextStep.actions[0].params`.
        bare: As in `compile_template`.

    Returns:
        The value, and what is wrong.
    """
    return compile_template(value, bare=bare, names=scope.keys()).fill(scope, where=where)


def check(value: Any, names: Collection[str], *, where: str) -> tuple[Problem, ...]:
    """Look for what can be known to be wrong with a template before anything runs.

    Args:
        value: A JSON value.
        names: The root names there will be.
        where: Place of the value.

    Returns:
        Broken expressions, and root names that there will not be.
    """
    return compile_template(value, names=names).check(names, where=where)


# --- reading ---------------------------------------------------------------------------------------


class _Reader:
    """Looks a value through and collects what it finds."""

    def __init__(
        self, limits: TemplateLimits, names: Collection[str] | None, *, bare: bool
    ) -> None:
        self._limits = limits
        self._roots = None if names is None else {name.casefold() for name in names}
        self._bare = bare
        self.used: list[tuple[Place, Expression]] = []
        self.broken: list[Finding] = []
        self.warnings: list[Finding] = []

    def read(self, value: Any, place: Place) -> Node:
        if isinstance(value, str):
            return self._text(value, place) if "{{" in value else self._plain(value, place)
        if not isinstance(value, dict | list):
            return Constant(value)
        if len(place) >= self._limits.max_depth:
            message = f"nested deeper than {self._limits.max_depth} levels"
            self.broken.append(Finding(place, message))
            return Constant(value)
        return self._object(value, place) if isinstance(value, dict) else self._array(value, place)

    def _object(self, value: dict[str, Any], place: Place) -> Node:
        self.warnings += [
            Finding((*place, key), "the braces in this key are not filled")
            for key in value
            if "{{" in key
        ]
        members = tuple((key, self.read(one, (*place, key))) for key, one in value.items())
        plain = all(isinstance(node, Constant) for _, node in members)
        return Constant(value) if plain else Object(members)

    def _array(self, value: list[Any], place: Place) -> Node:
        members = tuple(self.read(one, (*place, at)) for at, one in enumerate(value))
        plain = all(isinstance(node, Constant) for node in members)
        return Constant(value) if plain else Array(members)

    def _plain(self, text: str, place: Place) -> Node:
        if len(text) > _MAX_REFERENCE_CHARS or text in _WORDS:
            return Constant(text)
        match = _REFERENCE.fullmatch(text)
        if match is None or (self._roots is not None and match[1].casefold() not in self._roots):
            return Constant(text)
        return Reference(text, match[1], place, self._bare)

    def _text(self, text: str, place: Place) -> Node:
        parts = _split(text)
        if isinstance(parts, str):
            return self._break(text, parts, place)
        read: list[str | Expression] = []
        for part in parts:
            if isinstance(part, str):
                read.append(part)
                continue
            expression = parse(part.source, self._limits.expression)
            if isinstance(expression, Failure):
                return self._break(text, about(part.source, f"{expression}; {_HINT}"), place)
            read.append(expression)
        used = [part for part in read if isinstance(part, Expression)]
        self.used += [(place, part) for part in used]
        if not used:
            return Constant("".join(map(str, read)))
        if len(read) == 1:
            return Whole(text, used[0], place)
        return Mixed(text, tuple(read), place, self._limits.max_text_chars)

    def _break(self, text: str, message: str, place: Place) -> Node:
        self.broken.append(Finding(place, message, text))
        return Constant(text)


class _Body(NamedTuple):
    """What stands between braces."""

    source: str


def _split(text: str) -> list[str | _Body] | str:
    """Split a text at its braces.

    Returns:
        Texts and expressions in order; or what is wrong.
    """
    parts: list[str | _Body] = []
    plain, at = "", 0
    while opening := _OPEN.search(text, at):
        slashes = opening.end(1) - opening.start(1)
        plain += text[at : opening.start()]
        at = opening.end()
        if slashes == 1:
            plain += "{{"
            continue
        closing = _BODY.match(text, at)
        end = closing.end() if closing else text.find("}}", at) + 2
        if end < at:
            return f"no }}}} for the {{{{ at character {at - 1}; {_HINT}"
        plain += "\\" if slashes else ""
        parts += [plain, _Body(text[at : end - 2])] if plain else [_Body(text[at : end - 2])]
        plain, at = "", end
    plain += text[at:]
    return [*parts, plain] if plain else parts
