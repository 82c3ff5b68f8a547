"""The loop, as one pure function: a state and what happened in, a transition out.

Events only change what is known; `carry_on` then decides what that makes necessary. That is why a run that
starts, resumes, replays or streams takes the same path, and why outcomes that are ready together can be given
together: they are absorbed one by one, and the open step is looked at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, cast

from loopagent.core import (
    approvals,
    call_questions,
    claims,
    client_calls,
    compaction,
    control,
    ending,
    family,
    forking,
    holding,
    hooks,
    inline,
    plan_reads,
    recall,
    sub_agents,
    turns,
)
from loopagent.core.approval_state import Remembered
from loopagent.core.artifact_handles import handle_of
from loopagent.core.call_ends import action_settled
from loopagent.core.conversation import QUEUED
from loopagent.core.effects import (
    WORK,
    AskHuman,
    AwaitConversation,
    CallClientTool,
    CallHook,
    CallModel,
    CancelEffect,
    Compact,
    Effect,
    KeepValue,
    ReadMemory,
    ReadMessage,
    RunAction,
    SetTimer,
    StartRun,
    Verify,
    key_of,
)
from loopagent.core.events import (
    ApprovalRevoked,
    CancelRequested,
    Event,
    FilesGiven,
    Forked,
    LimitsRaised,
    MessagePosted,
    ModeChanged,
    PauseRequested,
    Reported,
    RequestHeld,
    ResumeRequested,
    Settled,
    Started,
)
from loopagent.core.facts import DecidedBy, ModelRetry, RunCreated, RunMessageQueued, RunStarted
from loopagent.core.facts_context import ContextExpanded
from loopagent.core.facts_streaming import ActionDiscarded
from loopagent.core.loop_state import publish_resumed, publish_state
from loopagent.core.outcome import Outcome
from loopagent.core.people import answer_text, resolved
from loopagent.core.skills import hear
from loopagent.core.state import Mail, RunState
from loopagent.core.stepping import carry_on
from loopagent.core.transition import Transition
from loopagent.core.tx import Tx


def advance(before: RunState, *events: Event) -> Transition:
    """Take what happened and say what follows.

    Args:
        before: The run as last committed; it is not changed.
        events: What happened since, in order; what comes for unknown effects or after the end means nothing.

    Returns:
        The transition; `changed` is False when nothing is to be committed. Never raises for what models, people
        or actions get wrong: an exception here is a bug.
    """
    tx = Tx(before)
    state = tx.state
    for event in events:
        if state.status == "running" or family.counts_after_end(event):
            ABSORB[type(event)](tx, event)
    if not tx.touched:
        return Transition(before, changed=False)
    if state.status == "running":
        if state.shown_asks:
            publish_resumed(tx)
        if state.paused is None:
            carry_on(tx)
    if state.status == "running":
        if state.asks_parent:
            family.note_question(tx)
        publish_state(tx)
    return tx.done()


def _started(tx: Tx, event: Started) -> None:
    tx.clock(event.at)
    if event.spent:
        family.learn_budgets(tx, event.spent)
    state = tx.state
    created = RunCreated(
        agent=state.spec.name,
        spec_hash=state.spec.said_hash(),
        model=state.model,
        message=event.message,
        trigger=None if state.origin is None else state.origin.body(),
        conversation_id=state.conversation or None,
    )
    tx.fact(created, _by(event.by))
    for one in event.artifacts:
        handle_of(tx, one)
    if event.queued:
        most = state.spec.limits.max_queue_seconds
        due = 0.0 if most is None else event.at + most
        tx.issue(AwaitConversation(QUEUED, event.message, event.by, due))
    else:
        shown = {"context": event.context, "carried": event.carried}
        _begin(tx, event.message, event.by, **shown, remembered=event.remembered)


def _begin(
    tx: Tx,
    message: str,
    by: str,
    *,
    context: str,
    carried: str,
    remembered: Iterable[dict[str, Any]] = (),
) -> None:
    tx.fact(RunStarted())
    tx.state.remembered = tuple(Remembered(**one) for one in remembered)
    if carried:
        tx.carry(carried)
    if context:
        tx.say("user", "context", context)
    if by == "model" or tx.state.parent_id is not None or tx.state.origin is not None:
        tx.say("user", "task", message)  # a parent's, or an event's: it must not pass for a person
    else:
        hear(tx, "task", message, by=_by(by))
    if not hooks.holds_run(tx, message):
        recall.ask(tx, message)


def _let_in(tx: Tx, effect: AwaitConversation, outcome: Outcome) -> None:
    if effect.due and tx.at >= effect.due:
        text = "The runs of the conversation before it took too long; it never began."
        ending.fail(tx, "limit", text, by="policy", limit="maxQueueSeconds")
        return
    past = cast("dict[str, Any]", outcome.value) if isinstance(outcome.value, dict) else {}
    shown = {name: str(past.get(name) or "") for name in ("context", "carried")}
    _begin(tx, effect.message, effect.by, **shown, remembered=past.get("remembered") or ())


def _settled(tx: Tx, event: Settled) -> None:
    state = tx.state
    effect = state.pending.get(event.effect_id)
    if effect is None:
        return
    kind = type(effect)
    tx.clock(event.at, worked=kind in WORK)
    del state.pending[effect.id]
    if not (state.inline and inline.settled(tx, effect, event.outcome)):
        SETTLE[kind](tx, effect, event.outcome)


def _reported(tx: Tx, event: Reported) -> None:
    if event.what == "started":
        _mark_started(tx, event)
    elif event.what == "discarded":
        tx.clock(event.at)
        for one in event.data["calls"]:
            tx.fact(ActionDiscarded.model_validate(one))
    elif event.what == "asks":
        tx.clock(event.at)
        call_questions.hold(tx, event.data)
    elif event.what in family.HEARD:
        family.HEARD[event.what](tx, event)
    elif event.data.get("effect") in tx.state.pending:
        tx.clock(event.at)
        tx.fact(ModelRetry.model_validate(event.data))


def _mark_started(tx: Tx, event: Reported) -> None:
    named = set(cast("list[str]", event.data["effects"]))
    marked: dict[str, Effect] = {
        key: replace(one, started=True)
        for key, one in tx.state.pending.items()
        if key in named and isinstance(one, RunAction | StartRun)
    }
    if marked:
        tx.clock(event.at)
        tx.state.pending = {**tx.state.pending, **marked}
        if tx.state.paused is not None:  # a child that was begun in that moment has not heard of it
            control.tell_below(tx)


def _message_posted(tx: Tx, event: MessagePosted) -> None:
    tx.clock(event.at)
    waiting_for = next((one for one in tx.state.asks if hears(one)), None)
    if waiting_for is not None:
        # Words are never an approval: said to a plan's card, they reject it and tell why.
        decision = "reject" if waiting_for.ask == "plan" else "answer"
        answer = {"decision": decision, "feedback": event.text, "by": event.by}
        tx.drop(waiting_for.id)
        _answered(tx, waiting_for, Outcome.done(answer))
        return
    _queue(tx, event)
    if event.delivery == "steer" and _interrupt(tx, "steered") and event.partial:
        tx.notice(
            f"Your reply was interrupted by the next message; the person had seen: {event.partial!r}"
        )


def hears(request: AskHuman) -> bool:
    """Whether a message answers a request."""
    return request.ask not in DEAF and not call_questions.is_foreign(request)


def _queue(tx: Tx, event: MessagePosted) -> None:
    mail = Mail(event.text, event.delivery)
    same = [one for one in tx.state.mail if one.text == event.text]
    if same and (event.delivery == "queue" or same[0].delivery == "steer"):
        mail_box = tx.state.mail
    else:
        others = tuple(one for one in tx.state.mail if one.text != event.text)
        mail_box = (mail, *others) if event.delivery == "steer" else (*others, mail)
    tx.state.mail = mail_box
    tx.fact(
        RunMessageQueued(text=event.text, delivery=event.delivery, merged=bool(same)), _by(event.by)
    )


def _interrupt(tx: Tx, outcome: str) -> bool:
    """Abort the running model call only, if there is one; actions that are running finish."""
    calling = tx.state.calling
    if calling is None:
        return False
    tx.drop(calling.id)
    tx.effects.append(CancelEffect(f"{calling.id}.cancel", calling.id))
    tx.close_turn(outcome)
    return True


def _mode_changed(tx: Tx, event: ModeChanged) -> None:
    if plan_reads.switched(tx, event, _by(event.by)):
        tx.clock(event.at)
        _interrupt(tx, "mode_changed")


def _files_given(tx: Tx, event: FilesGiven) -> None:
    tx.clock(event.at)
    known = {(one.artifact_id, one.name) for one in tx.state.artifacts}
    new = [one for one in event.files if (one["artifactId"], one["name"]) not in known]
    listed = ", ".join(f"{handle_of(tx, one)} ({one['name']})" for one in new)
    if listed:
        tx.notice(f"You were given files: {listed}. They are among your artifacts.")


def _cancel_requested(tx: Tx, event: CancelRequested) -> None:
    tx.clock(event.at)
    if tx.state.farewell is not None:  # it ends anyway, and hooks have been told how
        ending.close_effects(tx, "cancelled")
        ending.leave(tx)
        return
    ending.cancel(tx, event.reason, _by(event.by))


def _pause_requested(tx: Tx, event: PauseRequested) -> None:
    control.pause(tx, event, _by(event.by))


def _resume_requested(tx: Tx, event: ResumeRequested) -> None:
    control.resume(tx, event, _by(event.by))


def _limits_raised(tx: Tx, event: LimitsRaised) -> None:
    control.raise_limits(tx, event, _by(event.by))


def _approval_revoked(tx: Tx, event: ApprovalRevoked) -> None:
    approvals.revoked(tx, event)


def _forked(tx: Tx, event: Forked) -> None:
    forking.begin(tx, event, _by(event.by))


def _known_now(tx: Tx, effect: ReadMessage | KeepValue | SetTimer, outcome: Outcome) -> None:
    key = key_of(effect.id)
    if isinstance(effect, ReadMessage) and isinstance(outcome.value, dict):
        chars = len(str(cast("dict[str, Any]", outcome.value).get("text", "")))
        tx.fact(ContextExpanded(number=effect.number, chars=chars), "model", key=key)
    tx.result(key, outcome)


def _time_is_up(tx: Tx, timer: SetTimer, outcome: Outcome) -> None:
    if not (client_calls.time_out(tx, timer) or approvals.time_out(tx, timer)):
        _known_now(tx, timer, outcome)


def _answered(tx: Tx, request: AskHuman, outcome: Outcome) -> None:
    answer = cast("dict[str, Any]", outcome.value)
    resolved(tx, request, answer)
    if answer["decision"] == "terminate":
        ending.cancel(tx, answer.get("feedback") or "Stopped by a person.", "human")
        return
    ANSWERED[request.ask](tx, request, answer)


def _approval_answered(tx: Tx, request: AskHuman, answer: dict[str, Any]) -> None:
    if request.subject.get("inDoubt") and answer["decision"] == "reject":
        approvals.not_again(tx, request, answer.get("feedback") or "")
    else:
        approvals.decided(tx, request, answer)


def _question_answered(tx: Tx, request: AskHuman, answer: dict[str, Any]) -> None:
    if call_questions.is_foreign(request):
        call_questions.answered(tx, request, answer)
        return
    value = {"text": answer_text(request, answer), "values": answer.get("values", {})}
    tx.result(key_of(request.id), Outcome.done(value))


def _guard_answered(tx: Tx, request: AskHuman, answer: dict[str, Any]) -> None:
    del request
    tx.count(mistakes=0, refusals_in_a_row=0, repeats=0)
    guidance = answer.get("feedback") or "Try another way than the one that failed."
    tx.state.mail = (Mail(guidance, "steer"), *tx.state.mail)


def _by(name: str) -> DecidedBy:
    return (
        cast("DecidedBy", name)
        if name in {"model", "engine", "human", "policy", "client", "trigger"}
        else "human"
    )


DEAF = frozenset({"approval", "limit"})
"""Kinds of requests that no message answers; it waits until they are decided."""
ABSORB: dict[type[Any], Callable[[Tx, Any], None]] = {
    Started: _started,
    Settled: _settled,
    Reported: _reported,
    MessagePosted: _message_posted,
    CancelRequested: _cancel_requested,
    ModeChanged: _mode_changed,
    FilesGiven: _files_given,
    PauseRequested: _pause_requested,
    ResumeRequested: _resume_requested,
    LimitsRaised: _limits_raised,
    Forked: _forked,
    ApprovalRevoked: _approval_revoked,
    RequestHeld: holding.held,
}
SETTLE: dict[type[Any], Callable[[Tx, Any, Outcome], None]] = {
    CallModel: turns.take_reply,
    RunAction: action_settled,
    ReadMessage: _known_now,
    KeepValue: _known_now,
    Compact: compaction.settled,
    Verify: claims.verified,
    SetTimer: _time_is_up,
    StartRun: sub_agents.settled,
    ReadMemory: recall.told,
    AskHuman: _answered,
    CallHook: hooks.settled,
    CallClientTool: hooks.client_answered,
    AwaitConversation: _let_in,
}
ANSWERED: dict[str, Callable[[Tx, AskHuman, dict[str, Any]], None]] = {
    "approval": _approval_answered,
    "question": _question_answered,
    "guard": _guard_answered,
    "limit": control.limit_answered,
    "plan": plan_reads.answered,
}
