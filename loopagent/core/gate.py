"""The one gate in front of every call of an action, whatever asked for it: approval, limits, counts, breaker."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from loopagent.core import (
    approvals,
    breaker,
    call_questions,
    client_calls,
    hooks,
    limits,
    plans,
    policy,
    sub_agents,
)
from loopagent.core.abilities import name_skill, supplied_by, usable_action
from loopagent.core.effects import (
    AskHuman,
    CallClientTool,
    CallHook,
    Effect,
    RunAction,
    StartRun,
    key_of,
)
from loopagent.core.facts import ActionRejected, ActionStarted
from loopagent.core.json_values import copied
from loopagent.core.outcome import Outcome
from loopagent.core.people import ask
from loopagent.core.steps import open_step


if TYPE_CHECKING:
    from collections.abc import Iterable

    from loopagent.core.action_spec import ActionSpec, CallSpec
    from loopagent.core.facts import DecidedBy
    from loopagent.core.state import RunState
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
    state = tx.state
    calls, changed = _new_calls(tx, wanted)
    if not calls:
        return changed
    refused = False
    if state.spec.hooks:
        calls, refused = _past_hooks(tx, calls)
    ready = _ready(tx, calls)
    changed |= refused or len(ready) < len(calls)
    if state.pending and _waits(tx):
        return changed
    return _start(tx, ready) or changed


def _ready(tx: Tx, calls: list[Call]) -> list[tuple[Call, Any]]:
    """The calls that nobody is asked about and that are not refused, each with its spec.

    Most only read, and nobody was asked about one of their step: no policy can hold those. That is seen once for all
    calls of an action.
    """
    state = tx.state
    asked = state.step is not None and state.step.decisions
    ready: list[tuple[Call, Any]] = []
    plain: dict[str, CallSpec] = {}
    for call in calls:
        name = call.action if isinstance(call, RunAction) else ""
        spec = plain.get(name)
        if spec is None:
            spec = _spec_of(state, call)
            if (
                name
                and spec is not None
                and spec.effects == "read"
                and not asked
                and state.spec.approval_of(spec) != "ask"
            ):
                plain[name] = spec
            elif _ask_or_refuse(tx, call, spec):
                continue
        ready.append((call, spec))
    return ready


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


def _new_calls(tx: Tx, wanted: Iterable[Effect]) -> tuple[list[Call], bool]:
    """Calls that were not asked for yet; what is no call is handed over. And whether one of those was refused."""
    changed = False
    state = tx.state
    known = None if state.step is None else state.step.results
    if not known:
        known = None  # asked once, as it is a call
    calls: list[Call] = []
    for one in wanted:
        if one.id in state.pending or (state.asking and _asked(tx, one)):
            continue
        if known is not None and key_of(one.id) in known:
            continue
        if isinstance(one, CALLS):
            calls.append(one)
        else:
            changed |= _issue_other(tx, one)
    return calls, changed


def _asked(tx: Tx, effect: Effect) -> bool:
    """Whether a call has asked something; with the last answer it is made again."""
    return call_questions.go_on(tx, effect) or effect.id in tx.state.asking


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


def _ask_or_refuse(tx: Tx, call: Call, known: CallSpec | None) -> bool:
    """Put the request for a call that needs one; True when the call was refused instead."""
    held = policy.allowed(tx.state, known.effects, name=known.name) if known else None
    if held is not None:
        return _reject(tx, call, policy.CODE, held.message, "policy")
    key = _decided_at(call)
    decision = _decision(tx, call)
    if decision is not None:
        return decision["decision"] == "reject" and _refused_by_person(tx, call, decision)
    if known is None or tx.state.spec.approval_of(known) != "ask":
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


def _start(tx: Tx, ready: list[tuple[Call, Any]]) -> bool:
    """Hand calls over that nothing holds, each with its spec, or refuse them; True when one was refused."""
    state = tx.state
    if not ready or state.status != "running":
        return False
    reached = limits.reached(state)
    if reached is not None:
        limits.stop(tx, reached)
        return False
    refused = False
    most_ms = limits.timeout_ms(state, None)
    for wanted, spec in ready:
        call = wanted
        if state.step is not None and (state.step.decisions or state.step.hooked):
            call = _as_decided(tx, wanted)
        if most_ms is not None and most_ms < call.timeout_ms:
            call = replace(call, timeout_ms=most_ms)
        if isinstance(call, RunAction):
            refused |= _run(tx, call, spec)
        else:
            client_calls.hand_over(tx, call)
    return refused


def _run(tx: Tx, call: RunAction, spec: ActionSpec | None) -> bool:
    """Hand a call to its action, or refuse it."""
    state, name = tx.state, call.action
    if spec is None:
        return _reject(tx, call, "unknown_action", f"There is no action {name!r}.", "engine")
    before = state.calls.get(name, 0)
    if spec.max_calls is not None and before >= spec.max_calls:
        text = f"This action may be called {spec.max_calls} times in a run."
        return _reject(tx, call, "max_calls", text, "policy")
    if spec.asking is not None:
        approvals.waived(tx, call, spec)
    if state.breaker.actions:
        bounds = state.spec.limits.breaker
        blocked = breaker.blocked(state.breaker, name, call.params, bounds)
        if blocked is not None:
            return _reject(tx, call, "blocked", blocked, "engine")
    state.calls = {**state.calls, name: before + 1}
    tx.issue(call)
    started = {"callId": call.id, "action": name, "params": copied(call.params)}
    if state.skills:
        name_skill(state, name, started)
    tx.tell(ActionStarted, started, "model", key=key_of(call.id))
    return False


def _as_decided(tx: Tx, call: Call) -> Call:
    """The call with the parameters that a person approved, where they edited them; what hooks said is used up."""
    hooks.used(tx, call)
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
