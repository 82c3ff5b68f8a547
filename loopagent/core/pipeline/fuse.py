"""Stopping a `map` whose calls keep failing, at the same entry in whatever order its calls settle."""

from __future__ import annotations

from collections.abc import Sequence

from loopagent.core.pipeline.trace import NOT_STARTED, Failure, Ran


class Fuse:
    """Looks at the entries of a `map` in their order and blows when an action keeps failing.

    Entries run side by side and end in any order. So only the unbroken row of ended entries at the beginning
    counts, and no entry starts more than `ahead` behind it: then an entry that far behind the one that blew the
    fuse cannot have started, and all nearer ones do run.

    Args:
        in_a_row: Failures of an action in a row that blow the fuse; one that no later call can mend does so alone.
        ahead: How far behind the row an entry may start.
    """

    __slots__ = ("_ahead", "_failed", "_in_a_row", "_reason", "_seen", "_stop_at")

    def __init__(self, in_a_row: int, *, ahead: int) -> None:
        self._in_a_row = in_a_row
        self._ahead = ahead
        self._seen = 0
        self._failed: dict[str, int] = {}
        self._stop_at: int | None = None
        self._reason = ""

    def follow(self, found: Sequence[Ran | None]) -> None:
        """Look at the entries that have joined the row; None stands for one that has not ended."""
        while self._seen < len(found) and (ran := found[self._seen]) is not None:
            self._seen += 1
            if self._stop_at is None:
                self._look(ran)

    def _look(self, ran: Ran) -> None:
        for call in ran.calls:
            error = call.outcome.error
            if call.outcome.ok:
                self._failed.pop(call.action, None)
                continue
            times = self._failed[call.action] = self._failed.get(call.action, 0) + 1
            if times >= self._in_a_row or (error is not None and error.fatal):
                self._stop_at = self._seen + self._ahead
                self._reason = f"{call.action} failed {times} time(s) in a row"

    def blown(self, index: int, base: Ran) -> Ran | None:
        """The end of an entry that is not started any more."""
        if self._stop_at is None or index < self._stop_at:
            return None
        return Ran("", base, None, error=Failure("", self._reason, NOT_STARTED))

    def is_far(self, index: int) -> bool:
        """Whether an entry is too far ahead to start now."""
        return index > self._seen + self._ahead
