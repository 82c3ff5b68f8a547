r"""Values with `{{ expression }}` in their texts, and how they are filled.

| text | filled |
| --- | --- |
| `{{ item.tags }}` and nothing else | the value itself, of whatever type |
| `Hi {{ item.name }}, no {{ index }}` | text; objects and lists as JSON, null as nothing |
| `\{{ item }}` | the text `{{ item }}` |
| `\\{{ item }}` | one backslash and the item: before `{{`, two stand for one |
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
    larger,
)
from loopagent.core.values import value_object


if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from loopagent.core.problems import Problem


@dataclass(frozen=True, slots=True)
class TemplateLimits:
    """How much a template may be and make.

    Args:
        expression: Limits of each expression.
        max_depth: Deepest nesting of objects and lists.
        max_expressions: Most expressions.
        max_text_chars: Most that one filling puts together from parts, all texts together, in characters.
        max_size: Largest value that comes out, in characters of text plus members of objects and lists.
        copies: Most names that are looked up without measuring the size: so few cannot make a value much larger
            than what is put in.
    """

    expression: ExpressionLimits = DEFAULT_LIMITS
    max_depth: int = 100
    max_expressions: int = 1_000
    max_text_chars: int = 1_000_000
    max_size: int = 5_000_000
    copies: int = 10


DEFAULT_TEMPLATE_LIMITS: Final = TemplateLimits()
"""Limits that fit the parameters of actions."""


@value_object(frozen=True, slots=True)
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


# Possessive throughout: each character is looked at once, whatever the text.
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
        plain: Whether there is nothing to fill: the value comes out as it was written, whatever is in scope.
    """

    names: frozenset[str]
    plain: bool
    _limits: TemplateLimits
    _root: Node
    _copies: bool
    """Whether it looks up enough to make a value much larger than what is put in."""
    _sound: bool
    """Whether nothing was found wrong with it, however it is filled."""
    _used: tuple[tuple[Place, Expression], ...]
    _references: tuple[Reference, ...]
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
        run = self.put(scope)
        if self._sound and not run.problems and not run.warnings:
            return Filled(run.value)
        warnings = (*self._warnings, *run.warnings)
        return Filled(
            run.value,
            tuple(one.problem(where) for one in (*self._broken, *run.problems)),
            tuple(str(one.problem(where)) for one in warnings),
        )

    def put(self, scope: Mapping[str, Any]) -> Pass:
        """Put values in a template of which `check` found nothing wrong.

        Args:
            scope: As for `fill`.

        Returns:
            The value, and what is wrong with it, whose places are below the template.
        """
        limits = self._limits
        run = Pass(scope, limits.expression, limits.max_text_chars)
        value = run.value = self._root.fill(run)
        if self._copies and larger(value, limits.max_size):
            too_large = f"would be larger than {limits.max_size} characters and members"
            run.problems.append(Finding((), too_large))
            run.value = None
        return run

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

    def warn(self, names: Collection[str], *, where: str) -> tuple[str, ...]:
        """Look for what may have been meant otherwise, before anything runs.

        Args:
            names: The root names there will be.
            where: Place of the template.

        Returns:
            Texts that are not filled though they look like paths below one of the names, and keys with braces.
        """
        plain = [one.warning for one in self._references if one.name in names and not one.bare]
        return tuple(str(one.problem(where)) for one in (*self._warnings, *plain))


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
    lookups = sum(expression.lookups for _, expression in reader.used)
    return Template(
        names,
        not (reader.used or reader.escaped or (bare and reader.references)),
        limits,
        root,
        lookups > limits.copies,
        not (reader.broken or reader.warnings),
        tuple(reader.used),
        tuple(reader.references),
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
        self._left = limits.max_expressions
        self._bare = bare
        self.used: list[tuple[Place, Expression]] = []
        self.escaped = False
        self.references: list[Reference] = []
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
        plain = all(_is_same(node, value[key]) for key, node in members)
        return Constant(value) if plain else Object(members)

    def _array(self, value: list[Any], place: Place) -> Node:
        members = tuple(self.read(one, (*place, at)) for at, one in enumerate(value))
        plain = all(map(_is_same, members, value))
        return Constant(value) if plain else Array(members)

    def _plain(self, text: str, place: Place) -> Node:
        if len(text) > _MAX_REFERENCE_CHARS or text in _WORDS:
            return Constant(text)
        match = _REFERENCE.fullmatch(text)
        if match is None or (self._roots is not None and match[1].casefold() not in self._roots):
            return Constant(text)
        self.references.append(Reference(text, match[1], place, self._bare))
        return self.references[-1]

    def _text(self, text: str, place: Place) -> Node:
        parts = _split(text)
        if isinstance(parts, str):
            return self._break(text, parts, place)
        read: list[str | Expression] = []
        for part in parts:
            one = part if isinstance(part, str) else self._expression(part.source, place)
            if one is None:
                return Constant(text)
            read.append(one)
        if all(isinstance(part, str) for part in read):
            self.escaped = True
            return Constant("".join(map(str, read)))
        if len(read) == 1 and isinstance(read[0], Expression):
            return Whole(text, read[0], place)
        return Mixed(text, tuple(read), place)

    def _expression(self, source: str, place: Place) -> Expression | None:
        self._left -= 1
        if self._left < 0:
            if self._left == -1:  # said once
                self._break(source, f"more than {self._limits.max_expressions} expressions", place)
            return None
        expression = parse(source, self._limits.expression)
        if isinstance(expression, Failure):
            self._break(source, about(source, f"{expression}; {_HINT}"), place)
            return None
        self.used.append((place, expression))
        return expression

    def _break(self, text: str, message: str, place: Place) -> Node:
        self.broken.append(Finding(place, message, text))
        return Constant(text)


def _is_same(node: Node, value: Any) -> bool:
    """Whether a part is what was written; a text with escaped braces is not."""
    return isinstance(node, Constant) and node.value is value


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
    while (opening := text.find("{{", at)) >= 0:
        before = text[at:opening]
        slashes = len(before) - len(before.rstrip("\\"))
        plain += before[: len(before) - slashes] + "\\" * (slashes // 2)
        at = opening + len("{{")
        if slashes % 2:
            plain += "{{"
            continue
        closing = _BODY.match(text, at)
        end = closing.end() if closing else text.find("}}", at) + 2
        if end < at:
            return f"no }}}} for the {{{{ at character {at - 1}; {_HINT}"
        parts += [plain, _Body(text[at : end - 2])] if plain else [_Body(text[at : end - 2])]
        plain, at = "", end
    plain += text[at:]
    return [*parts, plain] if plain else parts
