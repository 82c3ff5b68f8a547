"""Hooks: code of the host that is asked at five places of a run, and what its answers mean.

An answer is the outcome of an effect, or part of the outcome of the call that it stands around. So it is in the log,
and going through the log again asks no hook. What goes wrong in a hook counts as a refusal unless the hook says
otherwise. Source: decision seat B10.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from loopagent.core import client_calls, ending, recall
from loopagent.core.abilities import usable_action
from loopagent.core.effects import CallClientTool, CallHook, RunAction, key_of
from loopagent.core.facts_hooks import HookDecided
from loopagent.core.hook_spec import at
from loopagent.core.outcome import Outcome
from loopagent.core.params import check_params
from loopagent.core.values import changed


if TYPE_CHECKING:
    from collections.abc import Callable

    from loopagent.core.hook_spec import HookPoint
    from loopagent.core.tx import Tx

DENIED = "denied"
"""Code of a call that a hook refused."""
STOPPED = "hook"
"""Reason of a run that a hook stopped."""
SAYS = ("context", "stop", "deny", "params", "result", "error")
"""What an answer may hold, in the order in which it is told."""
Answer: TypeAlias = dict[str, Any]
"""What one hook said: `{"hook": name, …}` with some of `SAYS`, `params` an object and the others texts; `ignored`
beside an error that changes nothing."""
Call: TypeAlias = RunAction | CallClientTool


def name_of(call: Call) -> str:
    """What is called."""
    return call.action if isinstance(call, RunAction) else call.tool


def holds_run(tx: Tx, message: str) -> bool:
    """Ask what stands before the run; True when that has to be waited for."""
    if not at(tx.state.spec.hooks, "before_run"):
        return False
    tx.issue(CallHook(f"{tx.state.turn}:hook.run", "before_run", {"message": message}))
    return True


def holds_turn(tx: Tx) -> bool:
    """Ask what stands before the next turn, once; True when that has to be waited for."""
    state = tx.state
    following = state.turn + 1
    if state.hooked_turn >= following or not at(state.spec.hooks, "before_turn"):
        return False
    tx.issue(CallHook(f"{following}:hook.turn", "before_turn", {"turn": following}))
    return True


def asked(tx: Tx, call: Call) -> Call | str | None:
    """Ask what stands before a call, once.

    Returns:
        The call as it may be made; why it may not; None while that is not known.
    """
    step = tx.state.step
    if step is None or not at(tx.state.spec.hooks, "before_action", name_of(call)):
        return call
    said = step.hooked.get(key_of(call.id))
    if said is None:
        effect_id = f"{call.id}.hook"
        if effect_id not in tx.state.pending:
            data = {"callId": call.id, "action": name_of(call), "params": call.params}
            tx.issue(CallHook(effect_id, "before_action", data))
        return None
    if "deny" in said:
        return str(said["deny"])
    return replace(call, params=said["params"]) if "params" in said else call


def used(tx: Tx, call: Call) -> None:
    """Forget what was said before a call that is made now."""
    step = tx.state.step
    if step is not None and step.hooked and key_of(call.id) in step.hooked:
        left = {key: said for key, said in step.hooked.items() if key != key_of(call.id)}
        tx.state.step = changed(step, hooked=left)


def settled(tx: Tx, effect: CallHook, outcome: Outcome) -> None:
    """Absorb what the hooks of a place said."""
    answers = _answers(outcome)
    for one in answers:
        _tell(tx, effect.point, one, effect.data)
    SETTLED[effect.point](tx, effect, answers)


def client_answered(tx: Tx, call: CallClientTool, outcome: Outcome) -> None:
    """Record what a client brought back, with what the hooks after the call said."""
    outcome, stop = around(tx, call, outcome)
    client_calls.answered(tx, call, outcome)
    _stop(tx, stop)


def around(tx: Tx, call: Call, outcome: Outcome) -> tuple[Outcome, str | None]:
    """Absorb what the hooks after a call said.

    Returns:
        The outcome without their answers, and why the run is to stop, if it is.
    """
    if not outcome.hooks:
        return outcome, None
    for one in outcome.hooks:
        _tell(tx, "after_action", one, {"callId": call.id, "action": name_of(call)})
    _note(tx, key_of(call.id), outcome.hooks)
    stops = (str(one["stop"]) for one in outcome.hooks if "stop" in one)
    return replace(outcome, hooks=()), next(stops, None)


def hand_over(tx: Tx, notes: tuple[tuple[str, str], ...]) -> None:
    """Tell the model what hooks added to the calls of a step, in the order of the calls."""
    for _, text in sorted(notes, key=lambda one: _place(one[0])):
        tx.notice(text)


def _place(key: str) -> list[tuple[bool, int, str]]:
    """Sorts `each.10` behind `each.9`."""
    return [(part.isdigit(), int(part) if part.isdigit() else 0, part) for part in key.split(".")]


def _answers(outcome: Outcome) -> tuple[Answer, ...]:
    """The answers; a failure to ask is a refusal."""
    if outcome.ok:
        return tuple(cast("list[Answer]", outcome.value["answers"]))
    why = outcome.error.message if outcome.error else "it could not be asked"
    return ({"hook": "", "error": why},)


def _first(answers: tuple[Answer, ...], name: str) -> str | None:
    """The first text under a name; an error counts as one unless it is ignored."""
    for one in answers:
        if name in one:
            return str(one[name])
        if "error" in one and not one.get("ignored"):
            return f"hook {one['hook']!r} failed: {one['error']}"
    return None


def _contexts(answers: tuple[Answer, ...]) -> list[str]:
    return [str(one["context"]) for one in answers if one.get("context")]


def _tell(tx: Tx, point: HookPoint, answer: Answer, data: dict[str, Any]) -> None:
    for name in SAYS:
        if name not in answer:
            continue
        said: Any = answer[name]
        fact = HookDecided(
            hook=answer["hook"],
            point=point,
            decision=cast("Any", name),
            text=said if isinstance(said, str) else "",
            call_id=data.get("callId"),
            action=data.get("action"),
            params=answer[name] if name == "params" else None,
            ignored=bool(answer.get("ignored")),
        )
        call_id = data.get("callId")
        tx.fact(fact, "policy", key=key_of(call_id) if call_id else None)


def _run_settled(tx: Tx, effect: CallHook, answers: tuple[Answer, ...]) -> None:
    for text in _contexts(answers):
        tx.say("user", "context", text)
    _stop(tx, _first(answers, "stop"))
    if not (tx.state.ended or tx.state.farewell):
        recall.ask(tx, str(effect.data["message"]))


def _turn_settled(tx: Tx, effect: CallHook, answers: tuple[Answer, ...]) -> None:
    tx.state.hooked_turn = int(effect.data["turn"])
    for text in _contexts(answers):
        tx.notice(text)
    _stop(tx, _first(answers, "stop"))


def _call_settled(tx: Tx, effect: CallHook, answers: tuple[Answer, ...]) -> None:
    key, step = key_of(str(effect.data["callId"])), tx.state.step
    if step is None:
        return
    _note(tx, key, answers)
    stop = next((str(one["stop"]) for one in answers if "stop" in one), None)
    if stop is not None:
        _stop(tx, stop)
        return
    said: dict[str, Any] = {}
    refused = _first(answers, "deny")
    params = [one["params"] for one in answers if "params" in one]
    if refused is None and params:
        refused, params[-1] = _checked(tx, str(effect.data["action"]), params[-1])
    if refused is not None:
        said["deny"] = refused
    elif params:
        said["params"] = params[-1]
    now = tx.state.step
    assert now is not None  # only a stop ends the step
    tx.state.step = changed(now, hooked={**now.hooked, key: said})


def _checked(tx: Tx, name: str, params: Any) -> tuple[str | None, Any]:
    """Why a call cannot be made with the parameters a hook wants, and those as they would be used."""
    spec = usable_action(tx.state, name) or tx.state.spec.client_tool(name)
    ready, problems, _ = check_params(spec.parameters if spec else {}, params)
    listed = "; ".join(f"{one.path}: {one.message}" for one in problems)
    return (
        f"a hook changed the parameters, and they do not fit: {listed}" if listed else None
    ), ready


def _end_settled(tx: Tx, effect: CallHook, answers: tuple[Answer, ...]) -> None:
    del effect, answers  # it is told how the run ends, and does not change that
    ending.leave(tx)


def _note(tx: Tx, key: str, answers: tuple[Answer, ...]) -> None:
    step = tx.state.step
    added = tuple((key, text) for text in _contexts(answers))
    if step is not None and added:
        tx.state.step = changed(step, notes=(*step.notes, *added))


def _stop(tx: Tx, reason: str | None) -> None:
    if reason is not None:
        ending.fail(tx, STOPPED, reason, by="policy")


SETTLED: dict[str, Callable[[Tx, CallHook, tuple[Answer, ...]], None]] = {
    "before_run": _run_settled,
    "before_turn": _turn_settled,
    "before_action": _call_settled,
    "after_run": _end_settled,
}
