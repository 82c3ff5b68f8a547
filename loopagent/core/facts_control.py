"""The public events of what people do to a run as a whole: pausing it, raising its limits, forking it."""

from __future__ import annotations

from loopagent.core.facts import FactData


class RunPaused(FactData):
    """The run stands still: what is under way is finished and kept, and nothing new is begun until it is resumed."""

    fact = "run.paused"
    by: str
    reason: str = ""
    above: bool = False
    """Because a run above it was paused."""


class RunResumed(FactData):
    """The run goes on."""

    fact = "run.resumed"
    reason: str | None = None
    """Why it stood still: `paused`, `limit`, `model`; absent where an answer was waited for."""


class RunLimitsRaised(FactData):
    """Limits of the run were raised."""

    fact = "run.limits_raised"
    limits: dict[str, float | None]
    """Name of the limit → how much is allowed now; null for any amount."""
    before: dict[str, float | None]
    by: str


class RunForked(FactData):
    """The run is a copy of another one as it was before one of its turns, and goes its own way from here."""

    fact = "run.forked"
    from_run_id: str
    turn: int
    """The turn that this run takes anew."""
    by: str
    message: str | None = None
    """What was said to the copy."""
    new_payload: bool = False
    """Whether it was given another payload."""
    approval_dropped: bool = False
    """Whether the approval of its plan does not hold for the copy, because something else was changed."""
