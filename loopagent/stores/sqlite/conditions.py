"""Conditions of a query, of which some may be left out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def where(conditions: Mapping[str, Any], *fixed: str) -> tuple[str, list[Any]]:
    """A WHERE clause and its values.

    Args:
        conditions: Texts with one `?` each, and their values; those whose value is None are left out.
        fixed: Conditions that need no value.
    """
    given = {text: value for text, value in conditions.items() if value is not None}
    text = " AND ".join([*fixed, *given])
    return f"WHERE {text}" if text else "", list(given.values())
