"""A function for action files."""

from __future__ import annotations


def rows(of: str) -> dict[str, list[str]]:
    """As many rows as the text has characters."""
    return {"rows": [f"row {number}" for number in range(len(of))]}
