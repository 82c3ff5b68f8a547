"""Statements that are put together from parts, each with the values it needs."""

from __future__ import annotations

from typing import Any


class Statement:
    """A statement of common table expressions, all of which see the same moment and take effect together.

    Because it is one statement it is one trip to the server, and a transaction by itself.
    """

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._parts: list[str] = []

    def value(self, given: Any, kind: str = "") -> str:
        """Add a value; returns what stands for it in the text."""
        self.values.append(given)
        place = f"${len(self.values)}"
        return f"{place}::{kind}" if kind else place

    def add(self, name: str, text: str) -> None:
        """Add a part that others may read from by its name."""
        self._parts.append(f"{name} AS ({text})")

    def text(self, last: str) -> str:
        """The whole statement, with what it brings back."""
        return f"WITH {', '.join(self._parts)} {last}"
