"""Plain JSON: read exactly, without the extras that Python's reader allows.

Repeated keys must agree, NaN and the infinities are refused, whole numbers keep all their digits.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any, Final, NoReturn, cast


_SORTED: Final = json.JSONEncoder(sort_keys=True, ensure_ascii=False)
_CONTAINERS: Final = (dict, list)


class DuplicateKeyError(Exception):
    """A key stands twice in one object with different values; the message is the key."""


def same(one: object, other: object) -> bool:
    """Whether two JSON values are the same, `true` and `1` being different."""
    if type(one) is not type(other) or one != other:
        return False
    if type(one) not in _CONTAINERS:
        return True
    # Numbers and booleans inside may still differ; the quick look needs the same order of keys.
    return repr(one) == repr(other) or _SORTED.encode(one) == _SORTED.encode(other)


def unique(pairs: list[tuple[str, Any]], repeated: list[str] | None = None) -> dict[str, Any]:
    """Make an object of its members; a repeated key must say the same each time.

    Args:
        pairs: Keys and JSON values.
        repeated: Gets the keys that are repeated.

    Raises:
        DuplicateKeyError: A repeated key says different things.
    """
    made = dict(pairs)
    if len(made) == len(pairs):
        return made
    seen: dict[str, Any] = {}
    for key, value in pairs:
        if key in seen and not same(seen[key], value):
            raise DuplicateKeyError(key)
        if key in seen and repeated is not None:
            repeated.append(key)
        seen[key] = value
    return made


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError(pairs)
    return made


def finite(text: str) -> float:
    """Read a number.

    Raises:
        ValueError: It is too large for a floating-point number.
    """
    value = float(text)
    if math.isinf(value):
        raise ValueError(text)
    return value


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


def decoder(
    members: Callable[[list[tuple[str, Any]]], dict[str, Any]], *, strict: bool
) -> json.JSONDecoder:
    """Make a reader of JSON. It raises ValueError, RecursionError and what `members` raises.

    Args:
        members: Makes objects of their members.
        strict: Whether raw line breaks and tabs inside of texts are an error, as in JSON.
    """
    return json.JSONDecoder(
        strict=strict,
        object_pairs_hook=members,
        parse_float=finite,
        parse_constant=_no_constant,
    )


STRICT: Final = decoder(_distinct, strict=True)
"""Reads JSON; a repeated key is an error."""
LENIENT: Final = decoder(_distinct, strict=False)
"""The same, but texts may hold raw line breaks and tabs."""
AGREEING: Final = decoder(unique, strict=False)
"""The same, and repeated keys may agree."""


_PLAIN: Final = json.JSONDecoder(parse_float=finite, parse_constant=_no_constant)


def json_value(text: str) -> Any:
    """Read JSON of any kind; of a repeated key the last counts.

    Raises:
        ValueError: It is none, or holds a number that no float can hold.
        RecursionError: It is nested too deeply.
    """
    return _PLAIN.decode(text)


def as_object(value: object) -> dict[str, Any] | None:
    """Give a JSON value if it is an object."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def as_list(value: object) -> list[Any] | None:
    """Give a JSON value if it is a list."""
    return cast("list[object]", value) if isinstance(value, list) else None


def too_deep(value: object, max_depth: int) -> bool:
    """Whether a JSON value is nested deeper than so many levels; safe for any depth."""
    level: list[object] = [value]
    for _ in range(max_depth + 1):
        level = [inner for one in level for inner in _children(one)]
        if not level:
            return False
    return True


def _children(value: object) -> list[object]:
    fields = as_object(value)
    return list(fields.values()) if fields is not None else as_list(value) or []
