"""Comparing JSON with what somebody expects of it: parts suffice, and operators say what equality cannot.

An expected object asks for its own keys only; an expected list asks for as many items, each matched in turn.
An object with one key that begins with `$` is an operator.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from loopagent.core.json_values import is_array, is_object
from loopagent.core.names import closest
from loopagent.core.problems import path_text


Loc = tuple[int | str, ...]
MAX_SHOWN_CHARS: Final = 200
"""How much of a value a difference shows."""
BEFORE_CHARS: Final = 30
"""How much of two long texts is shown before the place where they part."""
_MISSING: Final = object()


def differences(wanted: Any, got: Any, *, whole: bool = False) -> list[str]:
    """How a value differs from what is expected, one line for each place; empty when it fits.

    Args:
        wanted: What is expected.
        got: What there is.
        whole: Objects may have no further keys.
    """
    return list(_compare(wanted, got, (), whole))


def pattern_problems(wanted: Any) -> list[tuple[Loc, str]]:
    """What is wrong with the operators of an expectation, and where."""
    return list(_check(wanted, ()))


def shown(value: Any, most: int = MAX_SHOWN_CHARS) -> str:
    """A value as JSON on one line, cut where it is long."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= most else text[: most - 1] + "…"


def _compare(wanted: Any, got: Any, loc: Loc, whole: bool) -> Iterator[str]:
    operator = _operator(wanted)
    if operator is not None:
        yield from _apply(operator, wanted[operator], got, loc)
    elif got is _MISSING:
        yield f"{_at(loc)}: expected {shown(wanted)}, but it is missing"
    elif is_object(wanted) and is_object(got):
        yield from _objects(wanted, got, loc, whole)
    elif is_array(wanted) and is_array(got):
        yield from _lists(wanted, got, loc, whole)
    elif not _equal(wanted, got):
        yield f"{_at(loc)}: {_unequal(wanted, got)}"


def _objects(wanted: dict[str, Any], got: dict[str, Any], loc: Loc, whole: bool) -> Iterator[str]:
    for key, one in wanted.items():
        yield from _compare(one, got.get(key, _MISSING), (*loc, key), whole)
    for key in got if whole else ():
        if key not in wanted:
            yield f"{_at((*loc, key))}: not expected, got {shown(got[key])}"


def _lists(wanted: list[Any], got: list[Any], loc: Loc, whole: bool) -> Iterator[str]:
    if len(wanted) != len(got):
        yield f"{_at(loc)}: expected {len(wanted)} items, got {len(got)}: {shown(got)}"
        return
    for index, (one, other) in enumerate(zip(wanted, got, strict=True)):
        yield from _compare(one, other, (*loc, index), whole)


def _equal(wanted: Any, got: Any) -> bool:
    return isinstance(wanted, bool) == isinstance(got, bool) and bool(wanted == got)


def _unequal(wanted: Any, got: Any) -> str:
    plain = f"expected {shown(wanted)}, got {shown(got)}"
    if not (isinstance(wanted, str) and isinstance(got, str)) or len(plain) < MAX_SHOWN_CHARS:
        return plain
    pairs = enumerate(zip(wanted, got, strict=False))
    parting = next((at for at, (a, b) in pairs if a != b), min(len(wanted), len(got)))
    start = max(0, parting - BEFORE_CHARS)
    return (
        f"from character {parting} on, expected …{shown(wanted[start:], 100)}"
        f", got …{shown(got[start:], 100)}"
    )


def _at(loc: Loc) -> str:
    return path_text(loc) or "(value)"


# --- operators


def _operator(wanted: Any) -> str | None:
    """The name of the operator that an expectation is, or None."""
    if not is_object(wanted) or len(wanted) != 1:
        return None
    name = next(iter(wanted))
    return name if name in OPERATORS else None


def _apply(name: str, argument: Any, got: Any, loc: Loc) -> Iterator[str]:
    if got is _MISSING and name not in {"$absent", "$not"}:
        yield f"{_at(loc)}: expected {name} {shown(argument)}, but it is missing"
    elif not OPERATORS[name][0](argument, got):
        there = "nothing" if got is _MISSING else shown(got)
        yield f"{_at(loc)}: expected {name} {shown(argument)}, got {there}"


def _contains(argument: Any, got: Any) -> bool:
    if isinstance(got, str):
        return isinstance(argument, str) and argument in got
    return is_array(got) and any(not differences(argument, one) for one in got)


def _matches(argument: Any, got: Any) -> bool:
    return isinstance(got, str) and re.search(argument, got) is not None


def _length(argument: Any, got: Any) -> bool:
    return isinstance(got, (str, list, dict)) and len(got) == argument


def _absent(argument: Any, got: Any) -> bool:
    return (got is _MISSING or got is None) == bool(argument)


def _not(argument: Any, got: Any) -> bool:
    return got is _MISSING or bool(differences(argument, got))


def _is_regex(argument: Any) -> bool:
    try:
        re.compile(argument)
    except (re.error, TypeError, RecursionError):
        return False
    return True


Test = Callable[[Any, Any], bool]
OPERATORS: Final[dict[str, tuple[Test, Callable[[Any], bool], str]]] = {
    "$any": (lambda _, got: got is not None, lambda one: one is True, "true"),
    "$absent": (_absent, lambda one: isinstance(one, bool), "true or false"),
    "$contains": (_contains, lambda _: True, "a text, or what one item must fit"),
    "$matches": (_matches, _is_regex, "a regular expression"),
    "$length": (_length, lambda one: type(one) is int and one >= 0, "a number from 0 on"),
    "$not": (_not, lambda _: True, "what must not fit"),
}
"""Name → whether (argument, value) fits, whether an argument makes sense, and what it must be."""


def _check(wanted: Any, loc: Loc) -> Iterator[tuple[Loc, str]]:
    if is_array(wanted):
        for index, one in enumerate(wanted):
            yield from _check(one, (*loc, index))
    for key, one in wanted.items() if is_object(wanted) else ():
        yield from _check_key(key, one, (*loc, key), alone=len(wanted) == 1)
        yield from _check(one, (*loc, key))


def _check_key(key: str, argument: Any, loc: Loc, *, alone: bool) -> Iterator[tuple[Loc, str]]:
    if not key.startswith("$"):
        return
    if key not in OPERATORS:
        near = closest(key, list(OPERATORS))
        hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(OPERATORS)}"
        yield loc, f"unknown operator; {hint}"
    elif not alone:
        yield loc, "an operator stands alone in its object"
    elif not OPERATORS[key][1](argument):
        yield loc, f"must be {OPERATORS[key][2]}"
