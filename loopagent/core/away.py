"""What a run is told that goes on after a long pause: how long it was, and that things may have changed.

What came in meanwhile follows by itself: results, interrupted calls, a changed mode, messages of people. Source:
decision seat B8.
"""

from __future__ import annotations

from typing import TYPE_CHECKING


if TYPE_CHECKING:
    from loopagent.core.tx import Tx

UNITS = (("day", 86_400), ("hour", 3_600), ("minute", 60))


def tell(tx: Tx) -> None:
    """Say how long ago the last reply was, where that is long."""
    state = tx.state
    if not state.replied_at:
        return
    gone_seconds = tx.at - state.replied_at
    if gone_seconds < state.spec.context.away_seconds:
        return
    text = (
        f"{duration(gone_seconds)} passed since your last reply. What happened meanwhile is in the results and "
        "messages of this turn; what you knew before may be out of date."
    )
    state.notices = (text, *state.notices)


def duration(seconds: float) -> str:
    """A length of time in its two largest units: `2 days 3 hours`."""
    left = int(seconds)
    parts: list[str] = []
    for name, size in UNITS:
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count} {name}{'s' if count > 1 else ''}")
    return " ".join(parts[:2]) or f"{int(seconds)} seconds"
