"""How a run ends: completed, failed or cancelled, with nothing left open."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast

from loopagent.core import client_calls
from loopagent.core.artifact_handles import handle_of
from loopagent.core.call_questions import waiting_calls
from loopagent.core.changes import commit_payload
from loopagent.core.effects import AskHuman, CallClientTool, CallHook, RunAction, StartRun, key_of
from loopagent.core.facts import (
    ActionCompleted,
    DecidedBy,
    RequestCancelled,
    RunCancelled,
    RunCompleted,
    RunFailed,
    RunTaskComplete,
)
from loopagent.core.facts_sub_agents import stopped
from loopagent.core.hashing import json_hash
from loopagent.core.hook_spec import at
from loopagent.core.loop_state import publish_state
from loopagent.core.loop_view import GOES_ON
from loopagent.core.outcome import Outcome
from loopagent.core.people import request_id
from loopagent.core.results import results_text
from loopagent.core.state import Farewell, Result, Status
from loopagent.core.steps import open_step


if TYPE_CHECKING:
    from collections.abc import Collection

    from loopagent.core.effects import Effect
    from loopagent.core.steps import Done
    from loopagent.core.tx import Tx


STOPPED: Final = (
    "Your last step was stopped in its middle, as the run was. Its results are above; what is not among them was not"
    " begun."
)
CUT_OFF: Final = Outcome.failed(
    "cancelled", "Stopped; it may have taken effect.", may_have_run=True
)
"""The outcome of a call that was under way when a run ended that may go on."""


def complete(
    tx: Tx, message: str, commands: list[dict[str, Any]], form: dict[str, Any] | None
) -> None:
    """End the run well: the claim was accepted."""
    result = Result("completed", message, tuple(commands), form)
    if _farewell(tx, Farewell("completed", result)):
        return
    tx.close_turn("complete")
    done = RunTaskComplete(
        message=message, payload_hash=json_hash(tx.state.payload), commands=commands, form=form
    )
    tx.fact(done, "model")
    _end(tx, "completed", result)
    tx.fact(RunCompleted(message=message, usage=tx.state.usage.public()))


def fail(tx: Tx, reason: str, message: str, *, by: DecidedBy = "engine", **detail: Any) -> None:
    """End the run because it cannot go on; everything done so far is kept."""
    result = Result(reason, message, detail=detail)
    goes_on = reason in GOES_ON and tx.state.parent_id is None
    pending = [*tx.state.pending.values(), *waiting_calls(tx.state)]
    if not goes_on:
        close_effects(tx, reason)
    else:
        _close_all(tx, reason)
        _tell_stopped(tx, pending)
    if _farewell(tx, Farewell("failed", result, by)):
        return
    tx.close_turn("failed")
    state = tx.state
    waiting = (state.mail, state.notices, state.inline)
    _end(tx, "failed", result)
    if goes_on:
        state.mail, state.notices, state.inline = waiting
    tx.fact(RunFailed(reason=reason, message=message, usage=tx.state.usage.public()), by)


def cancel(tx: Tx, reason: str, by: DecidedBy) -> None:
    """End the run because somebody wants it; nothing that was asked for starts any more."""
    close_effects(tx, "cancelled")
    result = Result("cancelled", reason)
    if _farewell(tx, Farewell("cancelled", result, by)):
        return
    tx.close_turn("cancelled")
    _end(tx, "cancelled", result)
    tx.fact(RunCancelled(reason=reason, by=by, usage=tx.state.usage.public()), by)


def leave(tx: Tx) -> None:
    """End the run as was said before its hooks were asked; they are asked once."""
    last = tx.state.farewell
    assert last is not None  # nothing else asks them
    result, by = last.result, cast("DecidedBy", last.by)
    if last.status == "completed":
        complete(tx, result.message, list(result.commands), result.form)
    elif last.status == "failed":
        fail(tx, result.reason, result.message, by=by, **result.detail)
    else:
        cancel(tx, result.message, by)


def _farewell(tx: Tx, last: Farewell) -> bool:
    """Let the hooks after the run hear how it ends; True when that has to be waited for."""
    state = tx.state
    if state.farewell is not None or not at(state.spec.hooks, "after_run"):
        return False
    state.farewell = last
    state.pending, state.step, state.handler, state.claim = {}, None, None, None
    result = last.result
    data = {"status": last.status, "reason": result.reason, "message": result.message}
    tx.issue(CallHook(f"{state.turn}:hook.end", "after_run", data))
    return True


def close_effects(tx: Tx, reason: str) -> None:
    """Take back everything pending: requests are closed, running work is stopped and given an end."""
    _close_all(tx, reason)
    _keep_partial(tx)


def _close_all(tx: Tx, reason: str) -> None:
    for effect in [*tx.state.pending.values(), *waiting_calls(tx.state)]:
        _close(tx, effect, reason)
    tx.state.pending, tx.state.asking = {}, {}


def _tell_stopped(tx: Tx, pending: Collection[Effect]) -> None:
    """Keep for the model what its open step brought: no call without a result, should the run go on."""
    tx.state.inline = tuple(
        one if one.outcome is not None else replace(one, outcome=CUT_OFF) for one in tx.state.inline
    )
    if tx.state.step is None:
        return
    for effect in pending:
        if isinstance(effect, RunAction | CallClientTool | StartRun):
            tx.result(key_of(effect.id), CUT_OFF)
    brought = _keep_partial(tx)
    if brought is not None and brought.results:
        text = results_text(brought.results, handle=lambda one: handle_of(tx, one))
        tx.say("user", "results", text)
    tx.notice(STOPPED)


def _keep_partial(tx: Tx) -> Done | None:
    """What the open step has brought so far stays with the run."""
    step, handler = tx.state.step, open_step(tx.state)
    brought = handler.abandon(tx.state, step.results) if step and handler else None
    if brought is None:
        return None
    if brought.payload is not None:
        commit_payload(tx, brought.payload)
    for key, fact in brought.facts:
        tx.fact(fact, key=key)
    return brought


def _close(tx: Tx, effect: Effect, reason: str) -> None:
    if isinstance(effect, AskHuman):
        tx.fact(RequestCancelled(request_id=request_id(tx.state, effect), reason=reason))
        return
    if isinstance(effect, CallClientTool):
        outcome = Outcome.failed("cancelled", f"Taken back: {reason}.", may_have_run=True)
        ended_call = client_calls.completed(tx.state, effect, "cancelled", outcome)
        tx.fact(ended_call, key=key_of(effect.id))
        return
    tx.take_back(effect)
    if isinstance(effect, StartRun):
        tx.fact(stopped(tx.state, effect), key=key_of(effect.id))
    if isinstance(effect, RunAction):
        error = {
            "code": "cancelled",
            "message": "Stopped; it may have taken effect.",
            "mayHaveRun": True,
        }
        ended = ActionCompleted(call_id=effect.id, action=effect.action, ok=False, error=error)
        tx.fact(ended, key=key_of(effect.id))


def _end(tx: Tx, status: Status, result: Result) -> None:
    state = tx.state
    state.status, state.result = status, result
    waiting = [key for key, one in state.asked.items() if not one.stopped]
    state.unheard = (*state.unheard, *waiting, *([state.parent_id] if state.parent_id else []))
    state.asked = {key: one for key, one in state.asked.items() if one.stopped}
    state.pending, state.step, state.handler, state.mail, state.notices = {}, None, None, (), ()
    state.inline, state.claim, state.farewell, state.paused = (), None, None, None
    publish_state(tx)
