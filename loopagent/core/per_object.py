"""Remembering what was worked out from an object that never changes, such as a pinned definition."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar


K = TypeVar("K")
T = TypeVar("T")


class PerObject(Generic[K, T]):
    """A function whose results are remembered by the identity of its argument, which need not be hashable.

    Args:
        make: Works a result out; pure, and whoever gets the result leaves it as it is.
        most: Results that are remembered; with one more all are forgotten.
    """

    def __init__(self, make: Callable[[K], T], most: int = 256) -> None:
        self._make = make
        self._most = most
        self._known: dict[int, tuple[K, T]] = {}

    def __call__(self, one: K) -> T:
        """The result for an object; it is kept alive with it, so that no other can have its identity."""
        try:
            return self._known[id(one)][1]
        except KeyError:
            pass
        made = self._make(one)
        if len(self._known) >= self._most:
            self._known.clear()
        self._known[id(one)] = (one, made)
        return made

    def forget(self) -> None:
        """Work everything out again."""
        self._known.clear()
