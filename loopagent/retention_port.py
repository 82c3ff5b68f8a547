"""What a store must be able to do so that old runs do not stay for ever."""

from __future__ import annotations

from typing import Protocol


class RetentionStore(Protocol):
    """Lets go of what has ended. Nothing that still goes on or waits is ever touched."""

    async def ended(self, *, before: float, logged: bool = False, limit: int = 100) -> list[str]:
        """Ids of root runs of which the whole tree has ended, the longest ended first.

        Args:
            before: Only those that last changed before this time, in seconds since the epoch.
            logged: Only those whose log is still kept.
            limit: No more than these.
        """
        ...

    async def forget_log(self, run_id: str) -> bool:
        """Remove the log of an ended root run and of the runs below it: events, messages, results.

        What it came to stays: status, message, payload, usage, requests, artifacts.

        Returns:
            False if there is no such run, or its log has been removed already.

        Raises:
            RequestError: `run_active` or `child_run`, as for `delete`.
        """
        ...

    async def oldest_event(self, run_id: str) -> int:
        """The number from which on events of the run are kept: 1, or one more than the last once its log is gone."""
        ...
