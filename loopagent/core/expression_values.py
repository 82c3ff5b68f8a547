"""Values inside an expression: what is there, what is missing, when two are the same.

Only JSON comes in: objects, lists, text, numbers, true, false, null. Anything else has no kind and is refused.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NoReturn

from loopagent.core.names import closest
from loopagent.core.problems import shorten


if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class ExpressionLimits:
    """How much an expression may be and make.

    Args:
        max_chars: Longest source, in characters.
        max_nodes: Most parts: names, values, operators, calls.
        max_depth: Deepest nesting of brackets, signs and choices.
        max_text_chars: Longest text that an expression makes, in characters.
        max_list_items: Longest list that an expression makes.
        max_steps: Most members of objects and lists, and pieces of long texts, that one evaluation looks through.
        max_integer: Largest whole number that is calculated with or made, without its sign.
    """

    max_chars: int = 2_000
    max_nodes: int = 300
    max_depth: int = 40
    max_text_chars: int = 100_000
    max_list_items: int = 10_000
    max_steps: int = 500_000
    max_integer: int = 2**63


class Halt(Exception):  # noqa: N818 - not an error of ours: it carries the message out of the evaluation
    """Ends an evaluation or a parse; never leaves `expression`.

    Args:
        message: What is wrong, for whoever wrote the expression.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


def reason(error: Halt | RecursionError) -> str:
    """Say why an evaluation ended: by itself, or because the caller left too little of the stack."""
    return error.message if isinstance(error, Halt) else "nested too deep to be computed"


class Frame:
    """One evaluation: the names in scope and what is left to spend.

    Args:
        scope: Root names and their JSON values.
        limits: How much may be made and compared.
    """

    __slots__ = ("at", "left", "limits", "scope")

    def __init__(self, scope: Mapping[str, Any], limits: ExpressionLimits) -> None:
        self.scope = scope
        self.limits = limits
        self.left = limits.max_steps
        self.at = 0
        """Where in the source the part stands that runs now."""

    def spend(self, steps: int = 1) -> None:
        """Count what is looked through; halt when it was too much."""
        self.left -= steps
        if self.left < 0:
            raise Halt(f"looks through more than {self.limits.max_steps} members")


class Missing:
    """Stands for a value that is not there: false, and equal to null.

    Args:
        label: What was looked for, as `payload.items`.
        holder: The value in which it was looked for.
        around: What the holder is called.
    """

    __slots__ = ("around", "holder", "label")

    def __init__(self, label: str, holder: object, around: str) -> None:
        self.label = label
        self.holder = holder
        self.around = around

    def __bool__(self) -> bool:
        return False

    def __str__(self) -> str:
        label, around = self.label[-_MAX_KEYS:], self.around[-_MAX_KEYS:]
        return f"{label} is missing; {around} is {shorten(self.holder)}{self._meant()}"

    def _meant(self) -> str:
        if not isinstance(self.holder, dict):
            return ""
        keys = [str(key) for key in islice(self.holder, _MAX_KEYS)]
        near = closest(
            self.label.rpartition(".")[2], [key for key in keys if len(key) <= _MAX_KEYS]
        )
        return f"; did you mean {near[0]}?" if near else ""


KINDS: Final = frozenset({dict, list, str, int, float, bool, type(None), Missing})
"""Types of values; subclasses are none, so that no code of theirs ever runs."""
NUMBERS: Final = frozenset({int, float})
"""Types of numbers; true and false are none."""
CHARS_PER_STEP: Final = 64
"""How much text is searched through for one step, in characters."""
_MAX_KEYS: Final = 100
"""Most keys, and longest, that are compared with one that is missing."""
_PLAIN: Final = frozenset({str, int, float, bool})
_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def present(value: Any) -> Any:
    """Give the value back; a missing one or one that is not JSON ends the evaluation."""
    kind = type(value)
    if kind is Missing:
        raise Halt(str(value))
    if kind not in KINDS:
        raise Halt(f"a {kind.__name__} is no JSON value")
    return value


def refuse(value: Any, wanted: str) -> NoReturn:
    """End the evaluation because a value is of the wrong kind."""
    raise Halt(f"{wanted}, got {shorten(present(value))}")


def same(left: Any, right: Any, frame: Frame) -> bool:
    """Whether two values are equal as JSON.

    Numbers are compared by value, however written; true is not 1 and "1" is not 1. Missing equals null.
    """
    kind, other = type(left), type(right)
    if kind is other and kind in _PLAIN:
        return bool(left == right)
    if kind in NUMBERS and other in NUMBERS:
        return bool(left == right)
    if left is None or kind is Missing:
        return right is None or other is Missing
    if left is right:
        return True
    return kind is other and kind in {list, dict} and _same_members(left, right, frame)


def _same_members(left: Any, right: Any, frame: Frame) -> bool:
    open_pairs = [(left, right)]
    while open_pairs:
        one, other = open_pairs.pop()
        frame.spend()
        if type(one) is not type(other) or type(one) not in {list, dict}:
            if not same(one, other, frame):
                return False
        elif one is not other:
            if len(one) != len(other):
                return False
            if isinstance(one, list):
                open_pairs.extend(zip(one, other, strict=True))
            elif one.keys() != other.keys():
                return False
            else:
                open_pairs.extend((one[key], other[key]) for key in one)
    return True


def holds(container: Any, wanted: Any, frame: Frame) -> bool:
    """Whether a list has a member, an object a key, or a text a part."""
    kind = type(container)
    if kind is list:
        return _has_member(container, wanted, frame)
    if kind is dict:
        return type(wanted) is str and wanted in container
    if kind is str:
        if type(wanted) is not str:
            refuse(wanted, "expected text to look for in text")
        frame.spend(len(container) // CHARS_PER_STEP)
        return wanted in container
    refuse(container, "expected a list, an object or text to look in")


def _has_member(members: list[Any], wanted: Any, frame: Frame) -> bool:
    if type(wanted) is str:  # by far the most common, so it gets a shorter way
        frame.spend(len(members))
        return any(type(one) is str and one == wanted for one in members)
    for one in members:
        frame.spend()
        if same(one, wanted, frame):
            return True
    return False


def text_of(value: Any) -> str:
    """Write a value as text: text as it is, null as nothing, all else as compact JSON.

    Raises:
        Halt: The value is nested too deep, or a number in it too long, to be written.
    """
    if type(value) is str:
        return value
    if value is None:
        return ""
    try:
        return str(value) if type(value) is int else _ENCODER.encode(present(value))
    except RecursionError:
        raise Halt("nested too deep to be written as text") from None
    except (TypeError, ValueError):  # no JSON, or a number of more digits than Python writes
        raise Halt(f"{shorten(value)} cannot be written as text") from None
