"""What differs between two texts, line by line."""

from __future__ import annotations

from difflib import unified_diff
from typing import TYPE_CHECKING, Any

from loopagent.artifacts.source import ToolError
from loopagent.artifacts.texts import cut_line, lines_of


if TYPE_CHECKING:
    from loopagent.artifacts.source import Source

KINDS = frozenset({"text", "json", "csv"})
"""Kinds that are compared."""
MAX_LINES = 10_000
"""Lines that are compared, of each, behind those that are the same at both ends."""
MAX_SHOWN = 2_000
"""Lines of a difference."""
CONTEXT = 3
"""Unchanged lines that are shown around each change."""


def changes(before: Source, after: Source) -> dict[str, Any]:
    """A unified difference.

    Returns:
        `lines` of the difference, each with its sign; `cut`, whether there are more; `same`, whether there are none.

    Raises:
        ToolError: One of them is no text, or too much differs.
    """
    if not {before.kind, after.kind} <= KINDS:
        raise ToolError("only texts, JSON and CSV are compared")
    old, new = lines_of(before.text()), lines_of(after.text())
    head = _shared(old, new)
    tail = _shared(old[head:][::-1], new[head:][::-1])
    first, last = max(0, head - CONTEXT), max(0, tail - CONTEXT)
    old_part, new_part = (one[first : len(one) - last] for one in (old, new))
    if max(len(old_part), len(new_part)) > MAX_LINES:
        raise ToolError(
            f"they differ over more than {MAX_LINES} lines; download both to compare them"
        )
    after.check_time()
    found = list(unified_diff(old_part, new_part, lineterm="", n=CONTEXT))[2:]
    lines = [cut_line(_placed(one, first)) for one in found[:MAX_SHOWN]]
    return {"lines": lines, "cut": len(found) > MAX_SHOWN, "same": old == new}


def _shared(one: list[str], other: list[str]) -> int:
    """How many lines are the same from the first on."""
    pairs = zip(one, other, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _placed(line: str, before: int) -> str:
    """A line of a difference; one that tells of places counts from the beginning of the whole texts."""
    if not before or not line.startswith("@@"):
        return line
    return " ".join(_moved(one, before) for one in line.split(" "))


def _moved(word: str, by: int) -> str:
    if word[0] not in "-+":
        return word
    start, comma, count = word[1:].partition(",")
    return f"{word[0]}{int(start) + by}{comma}{count}"
