"""What goes over the wire about runs as a whole: paused, forked, allowed more, compared."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue

from loopagent.http.body import Body, View


class PauseRun(Body):
    """Why a run is paused."""

    reason: str = Field(default="", max_length=2_000)


class RaiseLimits(Body):
    """Limits of a run: what is allowed in all from now on; null is no limit. What is left out stays as it is."""

    max_turns: int | None = Field(default=None, ge=1)
    max_seconds: float | None = Field(default=None, gt=0)
    max_tokens: int | None = Field(default=None, ge=1)
    max_cost_usd: float | None = Field(default=None, gt=0)


class ForkRun(Body):
    """How a copy of a run differs from it."""

    turn: int | None = Field(default=None, ge=1)
    """The turn that is taken anew; null for the last one."""
    message: str | None = None
    """What is said to the copy before that."""
    payload: JsonValue = None
    """Working data that it has instead; null leaves it as it was."""
    limits: RaiseLimits | None = None
    """Limits that it has instead."""
    metadata: dict[str, JsonValue] | None = None
    """Anything to find the copy by; never shown to a model."""


class PauseView(View):
    """That a run stands still until it is resumed."""

    by: str
    reason: str
    at: float
    """Seconds since the epoch."""
    above: bool
    """Because a run above it is paused; resume that one."""


class ForkView(View):
    """What a forked run is a copy of."""

    run_id: str
    turn: int
    """The turn that it took anew."""


class LimitsView(View):
    """Limits that may be raised while a run exists; null is no limit."""

    max_turns: int
    max_seconds: float | None = None
    max_tokens: int | None = None
    max_cost_usd: float | None = None


class ComparedRun(View):
    """One of two runs that are compared, as a whole."""

    id: str
    agent: str
    model: str
    status: str
    reason: str | None = None
    message: str | None = None
    turns: int
    usage: dict[str, JsonValue]
    forked_from: ForkView | None = None


class ComparedTurn(View):
    """How a turn was in one of them."""

    turn: int
    reply: Literal["accepted", "rejected", "truncated", ""]
    type: str
    """What an accepted reply asked for."""
    message: str
    step: JsonValue = None
    """The `nextStep` of the reply as it came."""
    calls: list[dict[str, JsonValue]]
    """`{name, ok}` of each call."""
    patch: list[dict[str, JsonValue]]
    """What it changed in the payload, as RFC 6902 operations."""
    usage: dict[str, JsonValue]
    outcome: str


class TurnPair(View):
    """A turn of two runs, side by side."""

    turn: int
    same: bool
    differs: list[Literal["decision", "calls", "payload", "usage", "outcome"]]
    a: ComparedTurn | None = None
    """Null where the run has no such turn."""
    b: ComparedTurn | None = None


class Comparison(View):
    """Two runs side by side."""

    a: ComparedRun
    b: ComparedRun
    shared: int
    """How many turns from the first on are the same."""
    turns: list[TurnPair]
    payload: list[dict[str, JsonValue]]
    """What leads from the last payload of `a` to that of `b`: `{path, op, value?, was?}` each."""
