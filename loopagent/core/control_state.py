"""What people did to a run as a whole: that it is paused, which limits were raised, what it was forked from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from loopagent.core.values import value_object


if TYPE_CHECKING:
    from collections.abc import Mapping

    from loopagent.core.agent_spec import AgentSpec


@value_object(frozen=True, slots=True)
class Paused:
    """That a run stands still until somebody lets it go on. `at` is in seconds since the epoch."""

    by: str
    reason: str = ""
    at: float = 0.0
    above: bool = False
    """Because a run above it is paused; it goes on with that one."""

    def public(self) -> dict[str, Any]:
        """The same as camelCase JSON."""
        return {"by": self.by, "reason": self.reason, "at": self.at, "above": self.above}


@value_object(frozen=True, slots=True)
class ForkedFrom:
    """The run that a forked one is a copy of, and the turn that it was copied before."""

    run_id: str
    turn: int
    conversation: str = ""
    """The conversation that the other run continued; the copy continues none."""

    def public(self) -> dict[str, Any]:
        """The same as camelCase JSON."""
        return {"runId": self.run_id, "turn": self.turn}


RAISABLE: Final[dict[str, str]] = {
    "maxTurns": "max_turns",
    "maxSeconds": "max_seconds",
    "maxTokens": "max_tokens",
    "maxCostUsd": "max_cost_usd",
}
"""Limits of a run that may be raised while it exists: name on the wire → field of `Limits`."""


def with_raised(spec: AgentSpec, raised: Mapping[str, Any]) -> AgentSpec:
    """A definition with other limits; `raised` goes by the names of fields."""
    if not raised:
        return spec
    return spec.model_copy(update={"limits": spec.limits.model_copy(update=dict(raised))})
