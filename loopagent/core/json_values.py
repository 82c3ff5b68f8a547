"""JSON values as Python has them, for type checkers."""

from __future__ import annotations

from typing import Any, TypeAlias, TypeGuard


Json: TypeAlias = dict[str, Any]
"""A JSON object."""


def is_object(value: object) -> TypeGuard[Json]:
    """Whether a JSON value is an object."""
    return isinstance(value, dict)


def is_array(value: object) -> TypeGuard[list[Any]]:
    """Whether a JSON value is an array."""
    return isinstance(value, list)
