"""Cursors of the list of decisions, which stands in the order of time."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from loopagent.stores.records import bad_cursor, unwrapped, wrapped


if TYPE_CHECKING:
    from collections.abc import Sequence

    from loopagent.ports import RequestRow

_PLACE = re.compile(r"decided:([0-9]{1,12}\.[0-9]{1,17}):([0-9]{1,18})")
Place = tuple[float, int]
"""When something was decided, and the key of its row."""


def place_of(cursor: str | None) -> Place | None:
    """The place in a cursor.

    Raises:
        RequestError: `bad_cursor` (400), it is none.
    """
    if cursor is None:
        return None
    found = _PLACE.fullmatch(unwrapped(cursor))
    if found is None:
        raise bad_cursor()
    return float(found[1]), int(found[2])


def page_of(
    found: Sequence[tuple[int, RequestRow]], size: int
) -> tuple[list[RequestRow], str | None]:
    """A page of keys and rows, of which one more was looked for, and the cursor behind it."""
    rows = [row for _, row in found[:size]]
    if len(found) <= size:
        return rows, None
    key, last = found[size - 1]
    return rows, wrapped(f"decided:{last.resolved_at or 0.0!r}:{key}")
