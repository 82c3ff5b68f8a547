"""The circuit breaker: stops calls that keep failing, and tells the model what to do instead.

Three grades: a fatal failure locks an action for the run; the same failing call twice blocks that
call; five failures of an action in a row block the action. Any success clears the action. Only actions
that have failed since their last success are remembered, so successful calls never make it grow.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from loopagent.core.hashing import json_hash
from loopagent.core.spec import Spec


KEPT_CALLS = 20
"""Different failing calls remembered for one action, the latest ones."""


class BreakerLimits(Spec):
    """When calls are blocked."""

    same_call: int = Field(default=2, ge=1)
    """Failures of exactly the same call before it is blocked."""
    in_a_row: int = Field(default=5, ge=1)
    """Failures of an action in a row, with whatever parameters, before it is blocked."""


class ActionRecord(BaseModel):
    """What is remembered about one action that has failed since its last success."""

    model_config = ConfigDict(frozen=True)
    in_a_row: int = 0
    locked: bool = False
    calls: dict[str, int] = Field(default_factory=dict)
    """Failures by hash of the parameters, least recent first."""


class BreakerState(BaseModel):
    """Actions that have failed since their last success; no others are in it."""

    model_config = ConfigDict(frozen=True)
    actions: dict[str, ActionRecord] = Field(default_factory=dict)


DEFAULT_LIMITS = BreakerLimits()


def blocked(
    state: BreakerState,
    action: str,
    params: dict[str, Any],
    limits: BreakerLimits = DEFAULT_LIMITS,
) -> str | None:
    """Why a call may not be made, told to the model; None when it may be made.

    Args:
        state: The breaker as it is.
        action: Name of the action.
        params: Parameters as they would be sent.
        limits: When calls are blocked.
    """
    known = state.actions.get(action)
    if known is None:
        return None
    if known.locked:
        return (
            f"{action} is unavailable for the rest of this run: a credential is missing or its "
            "configuration is wrong, which no parameters can change. Do without it, or say what "
            "has to be set up."
        )
    if known.in_a_row >= limits.in_a_row:
        return (
            f"{action} failed {known.in_a_row} times in a row and is blocked for the rest of this "
            "run. Reach the goal another way, or say what stands in the way."
        )
    if known.calls.get(_call_key(params), 0) >= limits.same_call:
        return (
            f"{action} failed {limits.same_call} times with exactly these parameters; this call is "
            "blocked. Change the parameters as the error says, or do something else."
        )
    return None


def record(
    state: BreakerState, action: str, params: dict[str, Any], *, ok: bool, fatal: bool
) -> BreakerState:
    """The breaker after a call ended.

    Args:
        state: The breaker before.
        action: Name of the action.
        params: Parameters that were sent.
        ok: Whether the call succeeded.
        fatal: Whether its failure means that no later call can work.
    """
    before = state.actions.get(action)
    if ok:
        if before is None or before.locked:
            return state
        others = {name: one for name, one in state.actions.items() if name != action}
        return BreakerState(actions=others)
    before = before or ActionRecord()
    key = _call_key(params)
    others_failing = [(one, times) for one, times in before.calls.items() if one != key]
    calls = {**dict(others_failing[-(KEPT_CALLS - 1) :]), key: before.calls.get(key, 0) + 1}
    after = ActionRecord(in_a_row=before.in_a_row + 1, locked=before.locked or fatal, calls=calls)
    return BreakerState(actions={**state.actions, action: after})


def guidance(
    state: BreakerState,
    action: str,
    params: dict[str, Any],
    limits: BreakerLimits = DEFAULT_LIMITS,
) -> str | None:
    """What the model is told about a call that has just failed and been recorded.

    Returns:
        Why the call or the action is blocked from now on, else how many failures are left; None when
        the action has not failed since its last success.
    """
    known = state.actions.get(action)
    if known is None:
        return None
    stop = blocked(state, action, params, limits)
    if stop is not None:
        return stop
    again = limits.same_call - known.calls.get(_call_key(params), 0)
    return (
        f"{action} failed (failure {known.in_a_row} of {limits.in_a_row} in a row before it is "
        f"blocked). Read the error and change the call; as it was, it may fail {again} more "
        f"{'time' if again == 1 else 'times'}."
    )


def _call_key(params: dict[str, Any]) -> str:
    return json_hash(params)[:16]
