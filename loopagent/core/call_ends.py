"""How calls of actions end: told to the public, kept as a result, learned from by the circuit breaker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loopagent.core import approvals, breaker, call_questions, ending, hooks
from loopagent.core.abilities import name_skill, usable_action
from loopagent.core.effects import RunAction, key_of
from loopagent.core.facts import ActionCompleted
from loopagent.core.facts_context import ModelCalled
from loopagent.core.json_values import copied
from loopagent.core.outcome import INTERRUPTED, NOT_MADE, Outcome
from loopagent.core.people import ask
from loopagent.core.spending import NOTHING


if TYPE_CHECKING:
    from loopagent.core.state import RunState
    from loopagent.core.steps import MadeCall
    from loopagent.core.tx import Tx

NOT_THE_ACTIONS_FAULT = NOT_MADE | {INTERRUPTED}
"""Codes of failures that say nothing about the action; the circuit breaker does not count them."""


def action_settled(tx: Tx, call: RunAction, outcome: Outcome) -> None:
    """Record how a call ended: its result and the counts."""
    state = tx.state
    key = key_of(call.id)
    if state.asking:
        call_questions.closed(tx, call)
    if outcome.error is not None:
        asks = outcome.error.code == INTERRUPTED and call.on_unknown == "ask"
        if asks and state.spec.interactive:
            ask(tx, approvals.in_doubt(call, usable_action(state, call.action)), f"{key}.ask")
            return
        settled = call_questions.put(tx, call, outcome)
        if settled is None:
            return
        outcome = settled
    stop = None
    if outcome.hooks:
        outcome, stop = hooks.around(tx, call, outcome)
    if outcome.model_calls:
        count_model_calls(tx, outcome, key)
    tx.tell(ActionCompleted, _completed(state, call, outcome), key=key)
    tx.result(key, outcome)
    if outcome.ok:
        state.succeeded = {**state.succeeded, call.action: state.succeeded.get(call.action, 0) + 1}
    if stop is not None:
        ending.fail(tx, hooks.STOPPED, stop, by="policy")


def _completed(run: RunState, call: RunAction, outcome: Outcome) -> dict[str, Any]:
    """Data of the event that a call ended."""
    completed: dict[str, Any] = {"callId": call.id, "action": call.action, "ok": outcome.ok}
    value = outcome.value
    if call.whole and value is not None:
        completed["result"] = _told(outcome, run)
    elif value is not None:
        completed["result"] = value if type(value) is str else copied(value)
    if outcome.error is not None:
        completed["error"] = outcome.error.public()
    completed["durationMs"] = float(outcome.duration_ms)
    completed["attempts"] = outcome.attempts
    if run.skills:
        name_skill(run, call.action, completed)
    if outcome.early_ms:
        completed["startedEarlyMs"] = outcome.early_ms
    return completed


def count_model_calls(tx: Tx, outcome: Outcome, key: str) -> None:
    """Count what the models cost that an action asked, and let it be seen."""
    for call in outcome.model_calls:
        spent = NOTHING.plus(call["usage"]) if call.get("usage") else NOTHING
        tx.state.usage = tx.state.usage.together(spent)
        asked = ModelCalled(
            purpose="action",
            model=str(call.get("model") or tx.state.model),
            usage=spent.told(),
            error=call.get("error"),
        )
        tx.fact(asked, "engine", key=key)


def _told(outcome: Outcome, run: RunState) -> Any:
    """What the public is told of a result that only the engine works on: a long one is cut to its beginning."""
    text, most = outcome.text(), run.spec.limits.max_result_chars
    short = len(text) <= most
    return copied(outcome.value) if short else {"chars": len(text), "head": text[: most // 4]}


def learn(tx: Tx, calls: tuple[MadeCall, ...]) -> None:
    """Tell the circuit breaker how the calls of a step ended, and the model what that means.

    They are told in the order they were asked for, so that the order they ended in makes no difference.
    """
    state = tx.state
    if not state.breaker.actions:
        for one in calls:
            if not one.outcome.ok:
                break
        else:
            return  # nothing failed, and nothing has to be forgiven
    made = [
        one
        for one in calls
        if one.outcome.error is None or one.outcome.error.code not in NOT_THE_ACTIONS_FAULT
    ]
    for one in made:
        fatal = bool(one.outcome.error and one.outcome.error.fatal)
        state.breaker = breaker.record(
            state.breaker, one.action, one.params, ok=one.outcome.ok, fatal=fatal
        )
    bounds = state.spec.limits.breaker
    texts = [
        breaker.guidance(state.breaker, one.action, one.params, bounds)
        for one in made
        if not one.outcome.ok
    ]
    for text in dict.fromkeys(one for one in texts if one):
        tx.notice(text)
