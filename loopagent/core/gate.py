"""The one gate in front of every call of an action, whatever asked for it: approval, limits, counts, breaker."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from loopagent.core import (
    approvals,
    breaker,
    call_questions,
    client_calls,
    ending,
    hooks,
    limits,
    plans,
    policy,
    sub_agents,
)
from loopagent.core.abilities import supplied_by, usable_action
from loopagent.core.effects import (
    AskHuman,
    CallClientTool,
    CallHook,
    Effect,
    RunAction,
    StartRun,
    key_of,
)
from loopagent.core.facts import ActionCompleted, ActionRejected, ActionStarted
from loopagent.core.facts_context import ModelCalled
from loopagent.core.outcome import INTERRUPTED, NOT_MADE, Outcome
from loopagent.core.people import ask
from loopagent.core.spending import NOTHING
from loopagent.core.steps import open_step
from loopagent.core.told import event_json


NOT_THE_ACTIONS_FAULT = NOT_MADE | {INTERRUPTED}
"""Codes of failures that say nothing about the action; the circuit breaker does not count them."""

if TYPE_CHECKING:
    from collections.abc import Iterable

    from loopagent.core.action_spec import CallSpec
    from loopagent.core.facts import DecidedBy
    from loopagent.core.state import RunState
    from loopagent.core.steps import MadeCall
    from loopagent.core.tx import Tx


Call: TypeAlias = RunAction | CallClientTool
"""Effects that pass the gate before they are asked for."""
CALLS = (RunAction, CallClientTool)


def issue(tx: Tx, wanted: Iterable[Effect]) -> bool:
    """Ask for what an open step still needs and has not asked for yet.

    Calls that need a person's approval are asked for first; while one of them is open, no call of the step
    starts, so that a batch runs as one (decision seat D1).

    Returns:
        True when a result became known without an effect (a refused call): the step must be looked at again.
    """
    changed = False
    calls: list[Call] = []
    for one in wanted:
        if call_questions.go_on(tx, one) or _known(tx, one):
            continue
        if isinstance(one, CALLS):
            calls.append(one)
        else:
            changed |= _issue_other(tx, one)
    if not calls:
        return changed
    refused = False
    if tx.state.spec.hooks:
        calls, refused = _past_hooks(tx, calls)
    ready = [one for one in calls if not _ask_or_refuse(tx, one)]
    changed |= refused or len(ready) < len(calls)
    if tx.state.pending and _waits(tx):
        return changed
    for call in ready:
        changed |= _start(tx, call)
    return changed


def _waits(tx: Tx) -> bool:
    """Whether a person or a hook has not yet said what becomes of a call."""
    return any(
        (isinstance(one, AskHuman) and one.ask == "approval")
        or (isinstance(one, CallHook) and one.point == "before_action")
        for one in tx.state.pending.values()
    )


def _past_hooks(tx: Tx, calls: list[Call]) -> tuple[list[Call], bool]:
    """The calls that hooks let pass, once all are asked; and whether they refused one."""
    passed: list[Call] = []
    refused = False
    for call in calls:
        found = hooks.asked(tx, call)
        if isinstance(found, str):
            refused |= _reject(tx, call, hooks.DENIED, found, "policy")
        elif found is not None:
            passed.append(found)
    return ([] if _waits(tx) else passed), refused


def _known(tx: Tx, effect: Effect) -> bool:
    step = tx.state.step
    key = key_of(effect.id)
    state = tx.state
    asked = effect.id in state.pending or effect.id in state.asking
    return asked or (step is not None and key in step.results)


def _issue_other(tx: Tx, effect: Effect) -> bool:
    """Hand over what is no call of an action; True when the policy refused it."""
    key = key_of(effect.id)
    if isinstance(effect, AskHuman):
        if effect.ask == "plan":
            plans.proposed(tx, effect)
        ask(tx, effect, key)
        return False
    effects = policy.class_of(effect)
    held = None if effects is None else policy.allowed(tx.state, effects)
    if held is None:
        if isinstance(effect, StartRun):
            sub_agents.begin(tx, effect)
            return False
        tx.issue(effect)
        return False
    fact = ActionRejected(
        call_id=effect.id, action=effect.kind, reason=held.message, code=policy.CODE
    )
    tx.fact(fact, "policy", key=key)
    tx.result(key, Outcome.failed(policy.CODE, held.message))
    return True


def _spec_of(run: RunState, call: Call) -> CallSpec | None:
    if isinstance(call, RunAction):
        return usable_action(run, call.action)
    return run.spec.client_tool(call.tool)


def _brought_by(run: RunState, call: Call) -> str | None:
    """The skill that brought what is called, unless the agent has it by itself."""
    return supplied_by(run, call.action) if isinstance(call, RunAction) else None


def _decided_at(call: Call) -> str:
    """Key of the decision that a call needs; calls of one batch share it."""
    batch = call.batch if isinstance(call, RunAction) else ""
    return batch or key_of(call.id)


def _ask_or_refuse(tx: Tx, call: Call) -> bool:
    """Put the request for a call that needs one; True when the call was refused instead."""
    spec = tx.state.spec
    known = _spec_of(tx.state, call)
    if known is not None and _at_once(tx, known):
        return False
    held = policy.allowed(tx.state, known.effects, name=known.name) if known else None
    if held is not None:
        return _reject(tx, call, policy.CODE, held.message, "policy")
    key = _decided_at(call)
    decision = _decision(tx, call)
    if decision is not None:
        return decision["decision"] == "reject" and _refused_by_person(tx, call, decision)
    if known is None or spec.approval_of(known) != "ask":
        return False
    return _ask(tx, call, known, key)


def _ask(tx: Tx, call: Call, known: CallSpec, key: str) -> bool:
    """Put the request for a call whose action asks, unless this very call needs none; True when it was refused."""
    why = approvals.verdict(tx.state, call, known)
    if not why.asks:
        return False
    if not tx.state.spec.interactive:
        text = "This call needs a person's approval and nobody can be asked."
        return _reject(tx, call, "no_approver", text, "policy")
    batch = call.batch if isinstance(call, RunAction) else ""
    handler = open_step(tx.state) if batch else None
    shared = handler.batch(tx.state, batch) if handler else None
    asked_id, skill = f"{tx.state.turn}:{key}.ask", _brought_by(tx.state, call)
    request = approvals.request_for(
        tx.state, asked_id, call, known, why=why, shared=shared, skill=skill
    )
    if request.id not in tx.state.pending:
        ask(tx, request, f"{key}.ask")
    return False


def _at_once(tx: Tx, known: CallSpec) -> bool:
    """Whether a call changes nothing and nobody is or was asked, as with most; then no policy can hold it."""
    step = tx.state.step
    decided = step is not None and step.decisions
    return known.effects == "read" and not decided and tx.state.spec.approval_of(known) != "ask"


def _decision(tx: Tx, call: Call) -> dict[str, Any] | None:
    """What a person decided on a call: on this one, as after a crash, else on all that it shares an approval with."""
    step = tx.state.step
    if step is None or not step.decisions:
        return None
    own = step.decisions.get(key_of(call.id))
    return own or step.decisions.get(_decided_at(call))


def _refused_by_person(tx: Tx, call: Call, decision: dict[str, Any]) -> bool:
    if decision.get(approvals.EXPIRED):
        return _reject(tx, call, approvals.EXPIRED, "Nobody approved this call in time.", "policy")
    said = decision.get("feedback", "")
    text = "A person refused this call" + (f" and said: {said}" if said else ".")
    return _reject(tx, call, "rejected", text, "human")


def _start(tx: Tx, call: Call) -> bool:
    """Hand a call over, or refuse it; True when it was refused."""
    state = tx.state
    if state.ended:
        return False
    reached = limits.reached(state)
    if reached is not None:
        limits.stop(tx, reached)
        return False
    return _run(tx, call) if isinstance(call, RunAction) else _put(tx, call)


def _put(tx: Tx, call: CallClientTool) -> bool:
    """Put a call to the client."""
    hooks.used(tx, call)
    call = _as_approved(tx, call)
    allowed_ms = limits.timeout_ms(tx.state, call.timeout_ms)
    client_calls.hand_over(tx, replace(call, timeout_ms=allowed_ms or call.timeout_ms))
    return False


def _run(tx: Tx, call: RunAction) -> bool:
    """Hand a call to its action, or refuse it."""
    state = tx.state
    spec = usable_action(state, call.action)
    if spec is None:
        return _reject(tx, call, "unknown_action", f"There is no action {call.action!r}.", "engine")
    maximum = spec.max_calls
    if maximum is not None and state.calls.get(call.action, 0) >= maximum:
        return _reject(
            tx, call, "max_calls", f"This action may be called {maximum} times in a run.", "policy"
        )
    if spec.asking is not None:
        approvals.waived(tx, call, spec)
    call = _as_approved(tx, call)
    hooks.used(tx, call)
    if state.breaker.actions:
        bounds = state.spec.limits.breaker
        blocked = breaker.blocked(state.breaker, call.action, call.params, bounds)
        if blocked is not None:
            return _reject(tx, call, "blocked", blocked, "engine")
    state.calls = {**state.calls, call.action: state.calls.get(call.action, 0) + 1}
    left_ms = limits.timeout_ms(state, call.timeout_ms) or call.timeout_ms
    tx.issue(call if left_ms == call.timeout_ms else replace(call, timeout_ms=left_ms))
    started = {
        "callId": call.id,
        "action": call.action,
        "params": call.params,
        "skill": supplied_by(state, call.action),
    }
    tx.tell(ActionStarted, event_json(started), "model", key=key_of(call.id))
    return False


C = TypeVar("C", RunAction, CallClientTool)


def _as_approved(tx: Tx, call: C) -> C:
    """The call with the parameters that a person approved, where they edited them."""
    decision = _decision(tx, call)
    if decision is None or decision.get("edited") is None:
        return call
    return replace(call, params=decision["edited"])


def _reject(tx: Tx, call: Call, code: str, reason: str, by: DecidedBy) -> bool:
    key = key_of(call.id)
    outcome = Outcome.failed(code, reason)
    fact = (
        ActionRejected(
            call_id=call.id,
            action=call.action,
            reason=reason,
            code=code,
            skill=_brought_by(tx.state, call),
        )
        if isinstance(call, RunAction)
        else client_calls.completed(tx.state, call, "rejected", outcome)
    )
    tx.fact(fact, by, key=key)
    tx.result(key, outcome)
    return True


def action_settled(tx: Tx, call: RunAction, outcome: Outcome) -> None:
    """Record how a call ended: its result and the counts."""
    state = tx.state
    key = key_of(call.id)
    call_questions.closed(tx, call)
    error = outcome.error
    if (
        error is not None
        and error.code == INTERRUPTED
        and call.on_unknown == "ask"
        and state.spec.interactive
    ):
        ask(tx, approvals.in_doubt(call, usable_action(state, call.action)), f"{key}.ask")
        return
    settled = call_questions.put(tx, call, outcome)
    if settled is None:
        return
    outcome, stop = hooks.around(tx, call, settled)
    error = outcome.error
    completed = {
        "callId": call.id,
        "action": call.action,
        "ok": outcome.ok,
        "result": _told(call, outcome, state.spec.limits.max_result_chars),
        "error": error.public() if error else None,
        "durationMs": float(outcome.duration_ms),
        "attempts": outcome.attempts,
        "skill": supplied_by(state, call.action),
        "startedEarlyMs": outcome.early_ms or None,
    }
    if outcome.model_calls:
        count_model_calls(tx, outcome, key)
    tx.tell(ActionCompleted, event_json(completed), key=key)
    tx.result(key, outcome)
    if outcome.ok:
        state.succeeded = {**state.succeeded, call.action: state.succeeded.get(call.action, 0) + 1}
    if stop is not None:
        ending.fail(tx, hooks.STOPPED, stop, by="policy")


def count_model_calls(tx: Tx, outcome: Outcome, key: str) -> None:
    """Count what the models cost that an action asked, and let it be seen."""
    for call in outcome.model_calls:
        spent = NOTHING.plus(call["usage"]) if call.get("usage") else NOTHING
        tx.state.usage = tx.state.usage.together(spent)
        asked = ModelCalled(
            purpose="action",
            model=str(call.get("model") or tx.state.model),
            usage={name: amount for name, amount in spent.public().items() if amount},
            error=call.get("error"),
        )
        tx.fact(asked, "engine", key=key)


def _told(call: RunAction, outcome: Outcome, max_chars: int) -> Any:
    """What the public is told of a result: one that only the engine works on is cut to its beginning."""
    if not call.whole or outcome.value is None:
        return outcome.value
    text = outcome.text()
    short = len(text) <= max_chars
    return outcome.value if short else {"chars": len(text), "head": text[: max_chars // 4]}


def learn(tx: Tx, calls: tuple[MadeCall, ...]) -> None:
    """Tell the circuit breaker how the calls of a step ended, and the model what that means.

    They are told in the order they were asked for, so that the order they ended in makes no difference.
    """
    state = tx.state
    if not state.breaker.actions and all(one.outcome.ok for one in calls):
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
