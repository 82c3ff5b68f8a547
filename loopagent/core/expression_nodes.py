"""The parts of an expression; each knows how to compute itself.

A part gives a JSON value or `Missing`, or halts. It changes nothing that it is given.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from loopagent.core.expression_values import KINDS, Frame, Halt, Missing, present, refuse
from loopagent.core.names import closest
from loopagent.core.problems import path_text


if TYPE_CHECKING:
    from collections.abc import Iterable

Key: TypeAlias = str | int
"""A key of an object or a position in a list."""
Function: TypeAlias = Callable[..., Any]
"""Takes the frame and the arguments."""
_ABSENT: Final = object()
"""Stands for a name that is not in scope."""


class Node(Protocol):
    """A part of an expression."""

    @property
    def label(self) -> str:
        """What messages call it."""
        ...

    def run(self, frame: Frame) -> Any:
        """Compute it."""
        ...


@dataclass(frozen=True, slots=True)
class Literal:
    """A value that is written out."""

    value: Any
    label: str = "the value"

    def run(self, frame: Frame) -> Any:  # noqa: ARG002 - one signature for all parts
        """Give the value."""
        return self.value


@dataclass(frozen=True, slots=True)
class Name:
    """A name in scope."""

    label: str
    position: int

    def run(self, frame: Frame) -> Any:
        """Look the name up; an unknown one halts."""
        value = frame.scope.get(self.label, _ABSENT)
        if type(value) not in KINDS:
            frame.at = self.position
            if value is _ABSENT:
                raise Halt(unknown_name(self.label, frame.scope))
            present(value)
        return value


@dataclass(frozen=True, slots=True)
class Path:
    """Fixed keys and positions below a part."""

    base: Node
    keys: tuple[Key, ...]
    position: int

    @property
    def label(self) -> str:
        """As it would be written."""
        return _label(self.base, self.keys)

    def run(self, frame: Frame) -> Any:
        """Follow the keys as far as they lead."""
        value = self.base.run(frame)
        for at, key in enumerate(self.keys):
            kind = type(value)
            if kind is dict and key in value:
                value = value[key]
            elif kind is Missing:
                break
            else:
                value = member(value, key, self.base, self.keys[: at + 1])
        frame.at = self.position
        return value if type(value) in KINDS else present(value)


@dataclass(frozen=True, slots=True)
class Index:
    """A computed key or position below a part."""

    base: Node
    key: Node
    position: int

    @property
    def label(self) -> str:
        """As it would be written, without what was computed."""
        return f"{self.base.label}[…]"

    def run(self, frame: Frame) -> Any:
        """Compute the key and follow it."""
        value = self.base.run(frame)
        key = present(self.key.run(frame))
        frame.at = self.position
        if type(key) is not str and (type(key) is not int or abs(key) > frame.limits.max_integer):
            refuse(key, "expected a key or a position in [ ]")
        if type(value) is Missing:
            return value
        value = member(value, key, self.base, (key,))
        return value if type(value) in KINDS else present(value)


@dataclass(frozen=True, slots=True)
class Both:
    """`&&`: the first part that is false, else the last."""

    left: Node
    right: Node
    label: str = "the value"

    def run(self, frame: Frame) -> Any:
        """Compute as much as is needed."""
        value = self.left.run(frame)
        return self.right.run(frame) if value else value


@dataclass(frozen=True, slots=True)
class Either:
    """`||`: the first part that is true, else the last."""

    left: Node
    right: Node
    label: str = "the value"

    def run(self, frame: Frame) -> Any:
        """Compute as much as is needed."""
        return self.left.run(frame) or self.right.run(frame)


@dataclass(frozen=True, slots=True)
class Default:
    """`??` and `default()`: the first part unless it is missing or null."""

    left: Node
    right: Node
    label: str = "the value"

    def run(self, frame: Frame) -> Any:
        """Compute as much as is needed."""
        value = self.left.run(frame)
        return self.right.run(frame) if value is None or type(value) is Missing else value


@dataclass(frozen=True, slots=True)
class Not:
    """`!` and `not`."""

    operand: Node
    label: str = "the value"

    def run(self, frame: Frame) -> Any:
        """Turn it around."""
        return not self.operand.run(frame)


@dataclass(frozen=True, slots=True)
class Has:
    """`has()`: whether a path leads to something, null included."""

    path: Node
    label: str = "the value"

    def run(self, frame: Frame) -> Any:
        """Follow the path."""
        return type(self.path.run(frame)) is not Missing


@dataclass(frozen=True, slots=True)
class Choice:
    """`condition ? a : b`."""

    condition: Node
    yes: Node
    no: Node
    label: str = "the value"

    def run(self, frame: Frame) -> Any:
        """Compute the one that is chosen."""
        return (self.yes if self.condition.run(frame) else self.no).run(frame)


@dataclass(frozen=True, slots=True)
class Items:
    """A list that is written out."""

    members: tuple[Node, ...]
    label: str = "the list"

    def run(self, frame: Frame) -> Any:
        """Compute the members."""
        return [present(one.run(frame)) for one in self.members]


@dataclass(frozen=True, slots=True)
class Call:
    """A function or an operator, with its arguments computed first."""

    function: Function
    arguments: tuple[Node, ...]
    position: int
    label: str = "the value"

    def run(self, frame: Frame) -> Any:
        """Compute the arguments, then call."""
        values = [one.run(frame) for one in self.arguments]
        frame.at = self.position
        return self.function(frame, *values)


@dataclass(frozen=True, slots=True)
class Pair:
    """An operator between two parts: a call, without the detour over a list."""

    function: Function
    left: Node
    right: Node
    position: int
    label: str = "the value"

    def run(self, frame: Frame) -> Any:
        """Compute both sides, then the operator."""
        left = self.left.run(frame)
        right = self.right.run(frame)
        frame.at = self.position
        return self.function(frame, left, right)


def unknown_name(name: str, known: Iterable[str]) -> str:
    """Say that a name is not in scope, and which are."""
    names = sorted(known)
    near = closest(name, names)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(names[:30]) or 'none'}"
    return f"unknown name {name[:100]}; {hint}"


def member(value: Any, key: Key, base: Node, keys: tuple[Key, ...]) -> Any:
    """One step into a value: keys of objects, positions in lists (negative from the end), `length`."""
    kind = type(value)
    if kind is dict:
        name = str(key) if type(key) is int else key
        if name in value:
            return value[name]
    elif kind is list and type(key) is int and -len(value) <= key < len(value):
        return value[key]
    elif key == "length" and kind in {list, str}:
        return len(value)
    return Missing(_label(base, keys), value, _label(base, keys[:-1]))


def _label(base: Node, keys: tuple[Key, ...]) -> str:
    written = path_text(("x", *keys))[1:]
    return f"{base.label}{written}"
