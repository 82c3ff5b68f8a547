"""Work given to sub-agents, as the run sees it: let through, recorded, and paid for at its end."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from loopagent.core import limits
from loopagent.core.child_payload import differences
from loopagent.core.effects import key_of
from loopagent.core.facts_sub_agents import SubAgentCompleted, SubAgentStarted, run_of
from loopagent.core.lineage import MAY_GO_ON, order_of
from loopagent.core.spending import AskedChild, Spent, Usage


if TYPE_CHECKING:
    from loopagent.core.effects import StartRun
    from loopagent.core.outcome import Outcome
    from loopagent.core.state import RunState
    from loopagent.core.tx import Tx


MAX_STOPPED: Final = 10
"""Children that failed and may try again; of more the latest are kept."""


def begin(tx: Tx, work: StartRun) -> None:
    """Have a piece of work done, unless a limit leaves no turn for it."""
    if tx.state.ended:
        return
    reached = limits.reached(tx.state, turn=True)
    if reached is not None:
        limits.stop(tx, reached)
        return
    calls = tx.state.agent_calls
    if work.resume_run_id is None:
        tx.state.agent_calls = {**calls, work.agent: calls.get(work.agent, 0) + 1}
    tx.issue(work)
    started = SubAgentStarted(
        call_id=work.id,
        agent=work.agent,
        run_id=run_of(tx.state, work),
        message=work.message,
        resumed=work.resume_run_id is not None,
    )
    tx.fact(started, "model", key=key_of(work.id))


def settled(tx: Tx, work: StartRun, outcome: Outcome) -> None:
    """Record how a piece of work ended: what it cost, what it changed, what it asks."""
    value: dict[str, Any] = outcome.value if isinstance(outcome.value, dict) else {}
    state, run_id = tx.state, run_of(tx.state, work)
    error = outcome.error
    stopped = error.code if error is not None and MAY_GO_ON in value else ""
    _pay(state, work, run_id, value, stopped)
    completed = SubAgentCompleted(
        call_id=work.id,
        agent=work.agent,
        run_id=run_id,
        ok=outcome.ok,
        status=str(value.get("status", "failed")),
        message=str(value.get("message", "")),
        error=error.public() if error else None,
        usage=value.get("usage", {}),
        turns=int(value.get("turns", 0)),
        duration_ms=float(value.get("activeMs", 0.0)),
    )
    key = key_of(work.id)
    tx.fact(completed, key=key)
    kept = {name: one for name, one in value.items() if name not in {"payload", "activeMs"}}
    if outcome.ok and "payload" in value:
        kept["changes"] = differences(work.payload, value["payload"])
    tx.result(key, replace(outcome, value=kept))


def _pay(state: RunState, work: StartRun, run_id: str, value: dict[str, Any], stopped: str) -> None:
    """Count what the child used, but what was counted when it asked something or failed only once."""
    usage, turns = Usage.read(value.get("usage", {})), int(value.get("turns", 0))
    before = state.asked.get(run_id, AskedChild(work.agent))
    more = usage.less(before.usage)
    state.usage = state.usage.together(more)
    tokens = more.input_tokens + more.output_tokens
    state.below = state.below.plus(Spent(turns - before.turns, tokens, more.cost_usd or 0.0))
    state.active_ms = max(state.active_ms, work.active_ms + float(value.get("activeMs", 0.0)))
    others = {key: one for key, one in state.asked.items() if key != run_id}
    if stopped or value.get("status") == "asked":
        others[run_id] = AskedChild(work.agent, work.payload, usage, turns, stopped)
    failed = sorted((key for key, one in others.items() if one.stopped), key=order_of)
    for key in failed[: len(failed) - MAX_STOPPED]:
        del others[key]
    state.asked = others
