"""The parts of a template; each knows how to fill itself and reports what it cannot fill."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from loopagent.core.expression import Expression, ExpressionLimits, Failure, parse
from loopagent.core.expression_values import Frame, Halt, Missing, present, reason, text_of
from loopagent.core.problems import GOT_CHARS, Problem, path_text, shorten


if TYPE_CHECKING:
    from collections.abc import Mapping

Place: TypeAlias = tuple[str | int, ...]
"""Keys and positions from the outside in."""


class Finding(NamedTuple):
    """What is wrong at a place below the template.

    Args:
        place: Where.
        message: What was expected and what came.
        text: The text there; None if it is of no interest.
    """

    place: Place
    message: str
    text: str | None = None

    def problem(self, where: str) -> Problem:
        """Give it as a problem of a template that stands somewhere."""
        below = path_text(("x", *self.place))[1:]
        path = f"{where}{below}" if where else below.removeprefix(".")
        return Problem(path, self.message, "" if self.text is None else shorten(self.text))


class Pass(Frame):
    """One filling: what is put in, and what was found wrong.

    Args:
        scope: Root names and their JSON values.
        limits: What all expressions together may compare, and each may make.
        max_chars: Most that is put together from parts, all texts together, in characters.
    """

    __slots__ = ("chars_left", "max_chars", "problems", "value", "warnings")

    value: Any
    """What came out, once it did; not to be used if there are problems."""

    def __init__(self, scope: Mapping[str, Any], limits: ExpressionLimits, max_chars: int) -> None:
        # All in one: a template is filled for each item of a loop.
        self.scope, self.limits = scope, limits
        self.left, self.at = limits.max_steps, 0
        self.max_chars = self.chars_left = max_chars
        self.problems: list[Finding] = []
        self.warnings: list[Finding] = []


@dataclass(frozen=True, slots=True)
class Constant:
    """A value without braces."""

    value: Any

    def fill(self, run: Pass) -> Any:  # noqa: ARG002 - one signature for all parts
        """Give the value."""
        return self.value


@dataclass(frozen=True, slots=True)
class Whole:
    """A text that is one expression; its value keeps its type."""

    text: str
    expression: Expression
    place: Place

    def fill(self, run: Pass) -> Any:
        """Compute the value; the text stays if that fails."""
        try:
            value = self.expression.root.run(run)
            return present(value) if type(value) is Missing else value
        except (Halt, RecursionError) as halt:
            message = about(self.expression.source, reason(halt))
            run.problems.append(Finding(self.place, message, self.text))
            return self.text


@dataclass(frozen=True, slots=True)
class Mixed:
    """A text with expressions in it."""

    text: str
    parts: tuple[str | Expression, ...]
    place: Place

    def fill(self, run: Pass) -> Any:
        """Put the text together; it stays as it is if a part fails or the texts get too long."""
        written: list[str] = []
        for part in self.parts:
            text = part if isinstance(part, str) else self._write(part, run)
            if text is None:
                return self.text
            run.chars_left -= len(text)
            if run.chars_left < 0:
                message = f"texts would be longer than {run.max_chars} characters"
                run.problems.append(Finding(self.place, message, self.text))
                return self.text
            written.append(text)
        return "".join(written)

    def _write(self, part: Expression, run: Pass) -> str | None:
        if run.chars_left < 0:  # it was too much before: do not even write more out
            return ""
        try:
            return text_of(part.root.run(run))
        except (Halt, RecursionError) as halt:
            message = about(part.source, reason(halt))
            run.problems.append(Finding(self.place, message, self.text))
            return None


@dataclass(frozen=True, slots=True)
class Reference:
    """A text that looks like a path, read only if its root is in scope: most are mere words."""

    text: str
    name: str
    place: Place
    bare: bool

    def fill(self, run: Pass) -> Any:
        """Warn if the text may have been meant as a reference; with `bare`, follow it."""
        scope = run.scope
        name = self._name(scope)
        if name is None:
            return self.text
        if not self.bare:
            run.warnings.append(self.warning)
            return self.text
        read = parse(self.text, run.limits)
        result = read if isinstance(read, Failure) else read.evaluate({self.name: scope[name]})
        if isinstance(result, Failure):
            warning = f"{self.text} was taken as text: {result.message}"
            run.warnings.append(Finding(self.place, warning))
            return self.text
        return result.value

    @property
    def warning(self) -> Finding:
        """That the text is not filled."""
        message = f"{self.text} was taken as text; write {{{{ {self.text} }}}} for its value"
        return Finding(self.place, message)

    def _name(self, scope: Mapping[str, Any]) -> str | None:
        """The name in scope that is meant; prompts that leave out braces are blind to case as well."""
        if self.name in scope:
            return self.name
        folded = self.name.casefold()
        return next((one for one in scope if self.bare and one.casefold() == folded), None)


@dataclass(frozen=True, slots=True)
class Object:
    """An object with braces somewhere below."""

    members: tuple[tuple[str, Node], ...]

    def fill(self, run: Pass) -> Any:
        """Fill the members."""
        made: dict[str, Any] = {}  # no comprehension: that would be one more call
        for key, node in self.members:
            made[key] = node.fill(run)
        return made


@dataclass(frozen=True, slots=True)
class Array:
    """A list with braces somewhere below."""

    members: tuple[Node, ...]

    def fill(self, run: Pass) -> Any:
        """Fill the members."""
        return [node.fill(run) for node in self.members]


Node: TypeAlias = Constant | Whole | Mixed | Reference | Object | Array
"""A part of a template."""


def about(source: str, message: str) -> str:
    """Put an expression before what is said about it."""
    shown = source.strip()
    shown = shown if len(shown) <= GOT_CHARS else f"{shown[:GOT_CHARS]}…"
    return f"{{{{ {shown} }}}}: {message}"


def larger(value: Any, most: int) -> bool:
    """Whether a value has more characters and members than so many; never looks at many more."""
    left = most
    waiting = [value]
    while waiting and left >= 0:
        one = waiting.pop()
        if isinstance(one, str | dict | list):
            left -= len(one)
        if left >= 0 and isinstance(one, dict):
            left -= sum(map(len, one))
            waiting.extend(one.values())
        elif left >= 0 and isinstance(one, list):
            waiting.extend(one)
    return left < 0
