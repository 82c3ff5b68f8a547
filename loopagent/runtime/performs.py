"""Who turns effects into outcomes, as the engine knows it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Protocol


if TYPE_CHECKING:
    from loopagent.core.effects import Effect
    from loopagent.core.outcome import Outcome
    from loopagent.runtime.live import Live

Report = Callable[[Any, dict[str, Any]], Awaitable[None]]
"""Records something that happens while an effect is performed: what it is, and its data."""


class Performs(Protocol):
    """Turns effects into outcomes."""

    async def perform(self, live: Live, effect: Effect, report: Report) -> Outcome:
        """Do what an effect asks for; failures are outcomes, only cancellation comes out as an exception."""
        ...
