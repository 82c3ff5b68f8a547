"""Turns, time, tokens and money: looked at before every model call and every action."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from loopagent.core import ending, people
from loopagent.core.control_state import RAISABLE
from loopagent.core.facts_guards import GuardLimit
from loopagent.core.lineage import ABOVE


if TYPE_CHECKING:
    from collections.abc import Iterator

    from loopagent.core.effects import AskHuman
    from loopagent.core.facts import DecidedBy
    from loopagent.core.state import RunState
    from loopagent.core.tx import Tx


@dataclass(frozen=True, slots=True)
class Reached:
    """A limit, how much was used and how much was allowed."""

    limit: str
    value: float
    maximum: float
    own: bool = True
    """Whether it is the run's, not that of one above it."""


def reached(state: RunState, *, turn: bool = False) -> Reached | None:
    """The first limit, of the run or of one above it, that leaves no room for another effect.

    With `turn` the question is whether there is room for another planner call.
    """
    if _only_turns(state) and state.turn + state.below.turns < state.spec.limits.max_turns:
        return None
    for at, (name, value, maximum) in enumerate(_table(state)):
        if maximum is not None and value >= maximum and (turn or name != "maxTurns"):
            return Reached(name, value, maximum, own=at < len(RAISABLE))
    return None


def _only_turns(state: RunState) -> bool:
    """Whether no limit holds but that of the turns, as for most runs."""
    limits = state.spec.limits
    return not (limits.max_seconds or limits.max_tokens or limits.max_cost_usd or state.ancestors)


def _table(state: RunState) -> Iterator[tuple[str, float, float | None]]:
    """Every limit that holds for the run: its name, how much was used, how much is allowed.

    What ended children spent is the run's own; a run above counts with everything below it.
    """
    limits, usage, active = state.spec.limits, state.usage, state.active_ms / 1000.0
    turns = state.turn + state.below.turns
    tokens, cost = usage.input_tokens + usage.output_tokens, usage.cost_usd or 0.0
    yield "maxTurns", turns, limits.max_turns
    yield "maxSeconds", active, limits.max_seconds
    yield "maxTokens", tokens, limits.max_tokens
    yield "maxCostUsd", cost, limits.max_cost_usd
    for one in state.ancestors:
        yield "maxTurns", one.spent.turns + turns, one.max_turns
        yield "maxSeconds", active, one.seconds
        yield "maxTokens", one.spent.tokens + tokens, one.max_tokens
        yield "maxCostUsd", one.spent.cost_usd + cost, one.max_cost_usd


def stop(tx: Tx, limit: Reached) -> None:
    """End the run at a limit, or ask a person to raise it; what was done so far is kept."""
    state = tx.state
    if limit.own and state.spec.interactive and state.spec.limits.when_reached == "ask":
        _ask(tx, limit)
        return
    tx.fact(GuardLimit(limit=limit.limit, value=limit.value, maximum=limit.maximum), "policy")
    more = {} if limit.own else {ABOVE: True}
    fail(tx, limit.limit, limit.value, limit.maximum, "policy", **more)


def fail(tx: Tx, name: str, used: float, maximum: float, by: DecidedBy, **more: bool) -> None:
    """End the run at a limit."""
    text = f"{name} reached: {used:g} of {maximum:g}. Raise the limit to go on."
    ending.fail(tx, "limit", text, by=by, limit=name, **more)


def _ask(tx: Tx, limit: Reached) -> None:
    """Put the raise to a person, once; nothing begins until that is decided."""
    if open_request(tx.state) is not None:
        return
    tx.fact(GuardLimit(limit=limit.limit, value=limit.value, maximum=limit.maximum), "policy")
    request = people.limit(f"{tx.state.turn}:limit", limit.limit, limit.value, limit.maximum)
    people.ask(tx, request, "limit")


def open_request(state: RunState) -> AskHuman | None:
    """The open request to raise a limit, if there is one."""
    return next((one for one in state.asks if one.ask == "limit"), None)


def timeout_ms(state: RunState, wanted_ms: int | None) -> int | None:
    """How long an effect may take: what it wants, cut to the working time that is left."""
    if not state.ancestors and state.spec.limits.max_seconds is None:
        return wanted_ms  # most runs have no such limit
    allowed = [*(one.seconds for one in state.ancestors), state.spec.limits.max_seconds]
    known = [one for one in allowed if one is not None]
    if not known:
        return wanted_ms
    # Rounded up: an effect that the limit cuts off must not end a moment before the limit is reached.
    most = max(0, int(min(known) * 1000.0 - state.active_ms)) + 1
    return most if wanted_ms is None else min(wanted_ms, most)


SHORT = {"maxTurns": "turns", "maxSeconds": "seconds", "maxTokens": "tokens", "maxCostUsd": "usd"}
"""Names of the limits in the prompt."""


def left(state: RunState) -> dict[str, float]:
    """What is left of each limit that is set, for the prompt: the least, where several hold."""
    if _only_turns(state):
        return {"turns": max(0, state.spec.limits.max_turns - state.turn - state.below.turns)}
    found: dict[str, float] = {}
    for name, used, top in _table(state):
        if top is not None:
            rest = max(0, round(top - used, 2))
            found[SHORT[name]] = min(rest, found.get(SHORT[name], rest))
    return found
