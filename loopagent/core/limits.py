"""Turns, time, tokens and money: looked at before every model call and every action."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from loopagent.core import ending
from loopagent.core.facts import GuardLimit


if TYPE_CHECKING:
    from loopagent.core.state import RunState
    from loopagent.core.tx import Tx


@dataclass(frozen=True, slots=True)
class Reached:
    """A limit, how much was used and how much was allowed."""

    limit: str
    value: float
    maximum: float


def reached(state: RunState, *, turn: bool = False) -> Reached | None:
    """The first limit that leaves no room for another effect, or with `turn` for another planner call."""
    limits, usage = state.spec.limits, state.usage
    table = (
        ("maxTurns", state.turn if turn else -1, limits.max_turns),
        ("maxSeconds", state.active_ms / 1000.0, limits.max_seconds),
        ("maxTokens", usage.input_tokens + usage.output_tokens, limits.max_tokens),
        ("maxCostUsd", usage.cost_usd or 0.0, limits.max_cost_usd),
    )
    for name, value, maximum in table:
        if maximum is not None and value >= maximum:
            return Reached(name, value, maximum)
    return None


def stop(tx: Tx, limit: Reached) -> None:
    """End the run at a limit; what was done so far is kept."""
    tx.fact(GuardLimit(limit=limit.limit, value=limit.value, maximum=limit.maximum), "policy")
    text = f"{limit.limit} reached: {limit.value:g} of {limit.maximum:g}. Raise the limit to go on."
    ending.fail(tx, "limit", text, by="policy", limit=limit.limit)


def timeout_ms(state: RunState, wanted_ms: int | None) -> int | None:
    """How long an effect may take: what it wants, cut to the working time that is left."""
    maximum = state.spec.limits.max_seconds
    if maximum is None:
        return wanted_ms
    left = max(1, int(maximum * 1000 - state.active_ms))
    return left if wanted_ms is None else min(wanted_ms, left)


def left(state: RunState) -> dict[str, float]:
    """What is left of each limit that is set, for the prompt."""
    limits, usage = state.spec.limits, state.usage
    table = (
        ("turns", limits.max_turns, state.turn),
        ("seconds", limits.max_seconds, state.active_ms / 1000.0),
        ("tokens", limits.max_tokens, usage.input_tokens + usage.output_tokens),
        ("usd", limits.max_cost_usd, usage.cost_usd or 0.0),
    )
    return {name: max(0, round(top - used, 2)) for name, top, used in table if top is not None}
