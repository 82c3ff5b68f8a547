"""How long ended runs are kept: first their logs go, later the runs themselves."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from loopagent.core.spec import Spec
from loopagent.errors import RequestError, StoreError
from loopagent.library_port import SPARED_SECONDS
from loopagent.logs import log


if TYPE_CHECKING:
    from loopagent.ports import Store

DAY_SECONDS = 86_400.0
BATCH = 100
"""Runs that are looked for at a time; each is removed in a transaction of its own."""


class Retention(Spec):
    """How long what has ended is kept. Runs that go on or wait are never touched."""

    log_days: Annotated[float, Field(gt=0)] | None = None
    """Days after which an ended run's log is removed: events, transcript, results. What it came to stays."""
    run_days: Annotated[float, Field(gt=0)] | None = None
    """Days after which an ended run is removed with everything that belongs to it."""
    every_seconds: Annotated[float, Field(ge=1)] = 600.0
    """Seconds between two looks."""

    @property
    def any(self) -> bool:
        """Whether anything is ever removed."""
        return self.log_days is not None or self.run_days is not None


@dataclass(slots=True)
class Removed:
    """What a look removed."""

    runs: int = 0
    logs: int = 0
    definitions: int = 0
    """Of actions of the library, that no run has any more."""

    @property
    def any(self) -> bool:
        """Whether it removed anything."""
        return bool(self.runs or self.logs or self.definitions)


async def remove_old(store: Store, rules: Retention, now: float) -> Removed:
    """Remove what is older than the rules say; done again, it finds nothing.

    Raises:
        StoreError: The store failed; what was removed until then is removed.
    """
    removed = Removed()
    if rules.run_days is not None:
        before = now - rules.run_days * DAY_SECONDS
        while found := await store.ended(before=before, limit=BATCH):
            gone = [await _unless_changed(store.delete, one) for one in found]
            removed.runs += sum(gone)
            if not any(gone):
                break
    if rules.log_days is not None:
        before = now - rules.log_days * DAY_SECONDS
        while found := await store.ended(before=before, logged=True, limit=BATCH):
            gone = [await _unless_changed(store.forget_log, one) for one in found]
            removed.logs += sum(gone)
            if not any(gone):
                break
    while pruned := await store.prune_definitions(before=now - SPARED_SECONDS):
        removed.definitions += pruned
    return removed


async def _unless_changed(remove: Callable[[str], Awaitable[bool]], run_id: str) -> bool:
    try:
        return await remove(run_id)
    except RequestError:  # it goes on again since it was found
        return False


async def keep_away(store: Store, rules: Retention, clock: Callable[[], float]) -> None:
    """Remove what is too old, again and again; run it as a task."""
    while True:
        try:
            removed = await remove_old(store, rules, clock())
        except StoreError as error:
            log.error("retention.failed", error)
        else:
            if removed.any:
                log.info("retention.removed", **asdict(removed))
        await asyncio.sleep(rules.every_seconds)
