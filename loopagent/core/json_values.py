"""JSON values as Python has them, for type checkers, and as the shortest text."""

from __future__ import annotations

import json
from typing import Any, Final, TypeAlias, TypeGuard

from pydantic_core import to_json


Json: TypeAlias = dict[str, Any]
"""A JSON object."""
_SHARED: Final = frozenset({dict, list})
"""Types of JSON values that somebody else could change."""
_COMPACT: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def compact_json(value: Any) -> str:
    """JSON without blanks, every character as itself."""
    try:
        return to_json(value).decode()
    except (
        ValueError
    ):  # half a surrogate pair, or nested very deeply: slower, but it knows what to do
        return _COMPACT.encode(value)


def copied(value: Any) -> Any:
    """A JSON value of one's own: no change of one reaches the other."""
    if type(value) is dict:
        made = value.copy()
        for key, one in value.items():
            if type(one) in _SHARED:
                made[key] = copied(one)
        return made
    if type(value) is list:
        return [copied(one) if type(one) in _SHARED else one for one in value]
    return value


def is_object(value: object) -> TypeGuard[Json]:
    """Whether a JSON value is an object."""
    return isinstance(value, dict)


def is_array(value: object) -> TypeGuard[list[Any]]:
    """Whether a JSON value is an array."""
    return isinstance(value, list)
