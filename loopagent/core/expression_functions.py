"""Operators and functions of expressions.

Each takes the frame and its arguments, gives a JSON value, and halts on what it cannot work with. Nothing here looks at
the world outside, and nothing takes longer than its arguments are large.
"""

from __future__ import annotations

import math
import operator
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

from loopagent.core.expression_values import (
    NUMBERS,
    Frame,
    Halt,
    Missing,
    holds,
    present,
    refuse,
    same,
    text_of,
)
from loopagent.core.problems import shorten


if TYPE_CHECKING:
    from collections.abc import Callable

    from loopagent.core.expression_nodes import Function as Compute


class Function(NamedTuple):
    """A function that can be called.

    Args:
        compute: What it does.
        arity: How many arguments; in a method call the value before the dot is the first.
    """

    compute: Compute
    arity: int = 1


_WHOLE: Final = re.compile(r"\s*[+-]?[0-9]{1,400}\s*", re.ASCII)
_DECIMAL: Final = re.compile(
    r"\s*[+-]?(?:[0-9]{1,400}(?:\.[0-9]{0,400})?|\.[0-9]{1,400})(?:[eE][+-]?[0-9]{1,4})?\s*",
    re.ASCII,
)


def _equal(frame: Frame, left: Any, right: Any) -> bool:
    return same(left, right, frame)


def _unequal(frame: Frame, left: Any, right: Any) -> bool:
    return not same(left, right, frame)


def _in(frame: Frame, wanted: Any, container: Any) -> bool:
    return holds(present(container), None if type(wanted) is Missing else wanted, frame)


def _not_in(frame: Frame, wanted: Any, container: Any) -> bool:
    return not _in(frame, wanted, container)


def _ordering(compare: Callable[[Any, Any], bool]) -> Compute:
    def ordered(frame: Frame, left: Any, right: Any) -> bool:  # noqa: ARG001 - one signature for all
        kind, other = type(left), type(right)
        if (kind in NUMBERS and other in NUMBERS) or (kind is str and other is str):
            return compare(left, right)
        pair = f"{shorten(present(left))} and {shorten(present(right))}"
        raise Halt(f"cannot order {pair}; expected two numbers or two texts")

    return ordered


def _arithmetic(sign: str, compute: Callable[[Any, Any], Any]) -> Compute:
    def computed(frame: Frame, left: Any, right: Any) -> int | float:
        if type(left) not in NUMBERS or type(right) not in NUMBERS:
            _not_numbers(sign, left, right)
        _check_size(frame, left)
        _check_size(frame, right)
        return _checked(frame, compute(left, right))

    return computed


def _not_numbers(sign: str, left: Any, right: Any) -> NoReturn:
    wanted = "two numbers, two texts or two lists" if sign == "+" else "two numbers"
    pair = f"{shorten(present(left))} and {shorten(present(right))}"
    hint = (
        "; write string(…) to join with text"
        if sign == "+" and str in {type(left), type(right)}
        else ""
    )
    raise Halt(f"cannot compute {pair} with {sign}; expected {wanted}{hint}")


def _check_size(frame: Frame, value: float) -> None:
    if type(value) is int and abs(value) > frame.limits.max_integer:
        raise Halt(f"{shorten(value)} is too large to calculate with")


def _checked(frame: Frame, value: float) -> int | float:
    if not (abs(value) <= frame.limits.max_integer if type(value) is int else math.isfinite(value)):
        raise Halt("the result is too large")
    return value


def _add(frame: Frame, left: Any, right: Any) -> Any:
    kind = type(left)
    if kind is not type(right) or kind not in {str, list}:
        return _PLUS(frame, left, right)
    limits = frame.limits
    most, noun = (
        (limits.max_text_chars, "characters") if kind is str else (limits.max_list_items, "items")
    )
    if len(left) + len(right) > most:
        raise Halt(f"the result would have more than {most} {noun}")
    return left + right


def _divide(left: float, right: float) -> int | float:
    if right == 0:
        raise Halt("division by zero")
    if type(left) is int and type(right) is int and left % right == 0:
        return left // right
    return left / right


def _remainder(left: float, right: float) -> int:
    if type(left) is not int or type(right) is not int:
        raise Halt(f"% needs whole numbers, got {shorten(left)} and {shorten(right)}")
    if right == 0:
        raise Halt("division by zero")
    rest = abs(left) % abs(right)
    return -rest if left < 0 else rest


def negative(frame: Frame, value: Any) -> Any:
    """The number with its sign turned."""
    return -_number(frame, value)


def _number(frame: Frame, value: Any, wanted: str = "expected a number") -> Any:
    if type(value) not in NUMBERS:
        refuse(value, wanted)
    _check_size(frame, value)
    return value


def _text(value: Any) -> str:
    if type(value) is not str:
        refuse(value, "expected text")
    return value


def _size(frame: Frame, value: Any) -> int:  # noqa: ARG001 - one signature for all
    if type(value) not in {str, list, dict}:
        refuse(value, "expected a list, an object or text to measure")
    return len(value)


def _contains(frame: Frame, container: Any, wanted: Any) -> bool:
    return _in(frame, wanted, container)


def _starts_with(frame: Frame, text: Any, part: Any) -> bool:  # noqa: ARG001 - one signature for all
    return _text(text).startswith(_text(part))


def _ends_with(frame: Frame, text: Any, part: Any) -> bool:  # noqa: ARG001 - one signature for all
    return _text(text).endswith(_text(part))


def _made(frame: Frame, text: str) -> str:
    most = frame.limits.max_text_chars
    if len(text) > most:
        raise Halt(f"the text has more than {most} characters")
    return text


def _changing(change: Callable[[str], str]) -> Compute:
    def changed(frame: Frame, text: Any) -> str:
        return _made(frame, change(_made(frame, _text(text))))

    return changed


def _int(frame: Frame, value: Any) -> Any:
    if type(value) is float and math.isfinite(value):
        return _checked(frame, int(value))
    if type(value) is str and _WHOLE.fullmatch(value):
        return _checked(frame, int(value))
    if type(value) is not int:
        refuse(value, "expected a number, or text that is a whole number")
    return _checked(frame, value)


def _double(frame: Frame, value: Any) -> float:
    if type(value) is str and _DECIMAL.fullmatch(value):
        return _checked(frame, float(value))
    return _checked(frame, float(_number(frame, value, "expected a number, or text that is one")))


def _string(frame: Frame, value: Any) -> str:
    return _made(frame, text_of(value))


def _abs(frame: Frame, value: Any) -> Any:
    return abs(_number(frame, value))


_PLUS: Final = _arithmetic("+", operator.add)

OPERATORS: Final[dict[str, Compute]] = {
    "==": _equal,
    "!=": _unequal,
    "<": _ordering(operator.lt),
    "<=": _ordering(operator.le),
    ">": _ordering(operator.gt),
    ">=": _ordering(operator.ge),
    "in": _in,
    "not in": _not_in,
    "+": _add,
    "-": _arithmetic("-", operator.sub),
    "*": _arithmetic("*", operator.mul),
    "/": _arithmetic("/", _divide),
    "%": _arithmetic("%", _remainder),
}
"""Operators between two values that are both always computed."""

FUNCTIONS: Final[dict[str, Function]] = {
    "size": Function(_size),
    "contains": Function(_contains, 2),
    "startsWith": Function(_starts_with, 2),
    "endsWith": Function(_ends_with, 2),
    "lower": Function(_changing(str.lower)),
    "upper": Function(_changing(str.upper)),
    "trim": Function(_changing(str.strip)),
    "int": Function(_int),
    "double": Function(_double),
    "string": Function(_string),
    "abs": Function(_abs),
}
"""Functions by name. `has` and `default` are parts of the language: they do not compute all their arguments."""

ALIASES: Final[dict[str, str]] = {
    "len": "size",
    "length": "size",
    "includes": "contains",
    "startswith": "startsWith",
    "endswith": "endsWith",
    "toLowerCase": "lower",
    "toUpperCase": "upper",
    "strip": "trim",
    "float": "double",
    "str": "string",
    "toString": "string",
}
"""What models call the functions out of habit."""
