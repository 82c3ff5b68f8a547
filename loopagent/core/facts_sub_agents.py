"""The public events about work given to sub-agents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import Field

from loopagent.core.facts import FactData
from loopagent.core.lineage import child_id


if TYPE_CHECKING:
    from loopagent.core.effects import StartRun
    from loopagent.core.state import RunState


class SubAgentStarted(FactData):
    """A sub-agent was given work; its run's own events follow under `runId`."""

    fact = "subagent.started"
    call_id: str
    agent: str
    run_id: str
    """The child run."""
    message: str
    """The work."""
    resumed: bool = False
    """True when the message answers what that run had asked."""


class SubAgentCompleted(FactData):
    """A sub-agent's work ended, well or badly, or its agent is asked something first (`status` is `asked`)."""

    fact = "subagent.completed"
    call_id: str
    agent: str
    run_id: str
    ok: bool
    status: str
    message: str = ""
    error: dict[str, Any] | None = None
    usage: dict[str, Any] = Field(default_factory=dict[str, Any])
    """What the whole run has used so far, with the runs below it."""
    turns: int = 0
    duration_ms: float = 0.0
    """Working time; waiting for people does not count."""


def run_of(state: RunState, effect: StartRun) -> str:
    """The child run of an effect."""
    return effect.resume_run_id or child_id(state.id, effect.id)


def stopped(state: RunState, effect: StartRun) -> SubAgentCompleted:
    """The end of work that is not needed any more."""
    error = {
        "code": "cancelled",
        "message": "Stopped; it may have taken effect.",
        "mayHaveRun": True,
    }
    run_id = run_of(state, effect)
    return SubAgentCompleted(
        call_id=effect.id,
        agent=effect.agent,
        run_id=run_id,
        ok=False,
        status="cancelled",
        error=error,
    )
