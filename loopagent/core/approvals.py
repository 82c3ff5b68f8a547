"""Approvals of calls: whether a person is asked, what the card shows, and what is remembered of the answer.

A remembered approval never widens: it is for one agent, one action with its definition as it was, and the very same
parameters, as canonical JSON. Whatever differs is asked about again. How reading is waived under a plan: `plan_reads`.

Source: decision seat D2.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, cast

from loopagent.core import call_questions, ending
from loopagent.core.abilities import supplied_by, usable_action
from loopagent.core.action_spec import ActionSpec
from loopagent.core.approval_state import Refused, Remembered
from loopagent.core.asking import Asking, holds
from loopagent.core.child_payload import differences, member
from loopagent.core.effects import AskHuman, RunAction, SetTimer, key_of
from loopagent.core.facts import ActionCompleted
from loopagent.core.facts_approval import (
    ApprovalForgotten,
    ApprovalRemembered,
    ApprovalWaived,
    RequestExpired,
)
from loopagent.core.hashing import json_hash
from loopagent.core.json_values import compact_json
from loopagent.core.outcome import INTERRUPTED, Outcome
from loopagent.core.payload_writer import ABSENT
from loopagent.core.people import DUE, request_id
from loopagent.core.plan_card import approved_revision


if TYPE_CHECKING:
    from loopagent.core.action_spec import CallSpec
    from loopagent.core.effects import CallClientTool
    from loopagent.core.events import ApprovalRevoked
    from loopagent.core.state import RunState
    from loopagent.core.tx import Tx


EXPIRED: Final = "expired"
"""Code of a call that nobody approved in time, and the reason of a run that failed so."""
NO_TERMS: Final = Asking()
SHOWN_CHANGES: Final = 50
"""Differences to the refused call before that a card shows."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a person is asked about a call, and why."""

    asks: bool
    rule: str
    """`action`, `agent`, `when`, `unclear`, or `remembered`."""
    text: str
    approval_id: str | None = None


def terms_of(spec: CallSpec | None) -> Asking:
    """What an action says about its approvals; client tools say nothing."""
    own = spec.asking if isinstance(spec, ActionSpec) else None
    return own or NO_TERMS


def verdict(run: RunState, call: RunAction | CallClientTool, spec: CallSpec) -> Verdict:
    """Whether a call is put to a person, where the policy is to ask.

    A condition that cannot be worked out asks; so does an agent or operator who wants to be asked about every call.
    """
    terms = terms_of(spec)
    asked = _asked_by(run, spec) if terms.when is None else _by_condition(run, call, spec, terms)
    if asked.asks and isinstance(call, RunAction) and isinstance(spec, ActionSpec):
        kept = _kept(run, call, spec)
        if kept is not None:
            what = "the very same call" if kept.plan is None else f"plan revision {kept.plan}"
            text = f"{kept.by} approved {what} and did not want to be asked again."
            return Verdict(False, "remembered", text, kept.id)
    return asked


def _asked_by(run: RunState, spec: CallSpec) -> Verdict:
    if spec.name in run.spec.approval.actions:
        return Verdict(True, "agent", "The agent asks about every call of this action.")
    if spec.approval == "ask":
        return Verdict(True, "action", "The action asks about every call.")
    return Verdict(True, "agent", f"The agent asks about actions with {spec.effects} effects.")


def _by_condition(
    run: RunState, call: RunAction | CallClientTool, spec: CallSpec, terms: Asking
) -> Verdict:
    when = terms.when or ""
    if spec.name in run.spec.approval.actions:
        return _asked_by(run, spec)
    try:
        found = holds(when, call.params)
    except ValueError as error:
        return Verdict(True, "unclear", f"Whether {when} cannot be worked out: {error}")
    text = f"{when} {'holds' if found else 'does not hold'}."
    return Verdict(found, "when", text)


def definition_of(spec: ActionSpec) -> str:
    """Digest of an action as a run knows it, with that of what carries it out."""
    return json_hash(spec.model_dump(mode="json", by_alias=True))


def _kept(run: RunState, call: RunAction, spec: ActionSpec) -> Remembered | None:
    """What was remembered that lets a call through."""
    if not any(one.action == call.action for one in run.remembered):
        return None
    if terms_of(spec).remember == "never":
        return None
    same = (run.spec.name, call.action, call.params, definition_of(spec), approved_revision(run))
    fitting = (one for one in run.remembered if one.fits(*same))
    # Several calls that are decided together are none that was approved by itself.
    return next((one for one in fitting if one.plan is not None or not call.batch), None)


# --- the card --------------------------------------------------------------------------------------


def request_for(
    run: RunState,
    effect_id: str,
    call: RunAction | CallClientTool,
    spec: CallSpec,
    *,
    why: Verdict,
    shared: dict[str, Any] | None = None,
    skill: str | None = None,
) -> AskHuman:
    """The request that lets a person approve, edit or reject one call; it shows the exact parameters.

    Args:
        run: The run.
        effect_id: Id of the request's effect.
        call: The call, or the first of several that are decided together.
        spec: Its action or client tool.
        why: Why a person is asked.
        shared: What to show of calls that are decided together; those cannot be edited.
        skill: The skill that brought the action, unless the agent has it by itself.
    """
    what, name = (
        ("action", call.action) if isinstance(call, RunAction) else ("clientTool", call.tool)
    )
    terms = terms_of(spec)
    shown = _alone(call, spec, terms) if shared is None else shared
    subject: dict[str, Any] = {what: name, "effects": spec.effects, **shown}
    if skill is not None:
        subject["skill"] = skill
    subject |= _said(terms, why)
    if shared is None and isinstance(call, RunAction):
        subject |= _about_one(run, call, spec, terms)
    most = "up to " if shared is not None and "condition" in shared else ""
    times = "" if shared is None else f", {most}{shared['passes']} times"
    due = 0.0 if terms.expires_seconds is None else run.clock + terms.expires_seconds
    return AskHuman(
        id=effect_id,
        ask="approval",
        title=f"Run {name}{times}?",
        text=spec.description,
        decisions=("approve", "reject", "terminate"),
        subject=subject,
        content_hash=json_hash(subject),
        expires_at=due,
    )


def _alone(call: RunAction | CallClientTool, spec: CallSpec, terms: Asking) -> dict[str, Any]:
    shown: dict[str, Any] = {"params": call.params}
    return {**shown, "schema": spec.parameters} if terms.allow_edit else {**shown, "fixed": True}


def _said(terms: Asking, why: Verdict) -> dict[str, Any]:
    """Why a person is asked, and what the action says about its approvals."""
    said: dict[str, Any] = {"why": {"rule": why.rule, "text": why.text}}
    if terms.approvers:
        said["approvers"] = list(terms.approvers)
    if terms.expires_seconds is not None:
        said["onExpiry"] = terms.on_expiry
    return said


def _about_one(run: RunState, call: RunAction, spec: CallSpec, terms: Asking) -> dict[str, Any]:
    """What only a card of a single call shows."""
    said: dict[str, Any] = {}
    shown = [one for one in terms.show if one in call.params]
    if shown:
        said["show"] = shown
    if terms.remember != "never" and spec.effects != "irreversible":
        lasting = terms.remember == "session" and run.conversation
        said["remember"] = ["run", "session"] if lasting else ["run"]
    before = run.refused.get(call.action)
    if before is not None:
        changes = _changes(before.params, call.params)
        said["before"] = {
            "decision": before.decision,
            "feedback": before.feedback,
            "changes": changes[:SHOWN_CHANGES],
        }
    return said


def _changes(old: dict[str, Any], new: dict[str, Any]) -> list[dict[str, Any]]:
    """Where parameters differ: `{path, old?, new?}`, without what is not there."""
    found: list[dict[str, Any]] = []
    for change in differences(old, new):
        values = {"old": _at(old, change["path"]), "new": _at(new, change["path"])}
        there = {name: one for name, one in values.items() if one is not ABSENT}
        found.append({"path": change["path"], **there})
    return found


def _at(value: Any, path: list[str | int]) -> Any:
    for key in path:
        value = member(value, key)
    return value


def in_doubt(call: RunAction, spec: ActionSpec | None) -> AskHuman:
    """The request about a call that was started before a crash and may have taken effect."""
    subject: dict[str, Any] = {"action": call.action, "params": call.params, "inDoubt": True}
    if terms_of(spec).approvers:
        subject["approvers"] = list(terms_of(spec).approvers)
    return AskHuman(
        id=f"{call.id}.ask",
        ask="approval",
        title=f"Run {call.action} again?",
        text="The call was started and then interrupted. It may have taken effect already.",
        decisions=("approve", "reject", "terminate"),
        subject=subject,
        content_hash=json_hash(subject),
    )


# --- answers ---------------------------------------------------------------------------------------


def decided(tx: Tx, request: AskHuman, answer: dict[str, Any]) -> None:
    """Take a decision on calls into the open step; remember what is to be remembered."""
    step = tx.state.step
    if step is None:
        return
    key = key_of(request.id).removesuffix(".ask")
    tx.state.step = replace(step, decisions={**step.decisions, key: answer})
    _note_refusal(tx, request, answer)
    if answer.get("remember") in request.subject.get("remember", ()):
        _remember(tx, request, answer)


def _note_refusal(tx: Tx, request: AskHuman, answer: dict[str, Any]) -> None:
    """Keep what was refused, so that the next card can show what is different; forget it once one is approved."""
    action, params = request.subject.get("action"), request.subject.get("params")
    if action is None or params is None or "passes" in request.subject:
        return
    others = {name: one for name, one in tx.state.refused.items() if name != action}
    limits = tx.state.spec.limits
    if answer["decision"] == "reject" and len(compact_json(params)) <= limits.max_result_chars:
        decision = EXPIRED if answer.get(EXPIRED) else "reject"
        others[action] = Refused(params, decision, str(answer.get("feedback") or ""))
    if others or tx.state.refused:
        most = limits.max_remembered_approvals
        tx.state.refused = dict(list(others.items())[-most:]) if most else {}


def _remember(tx: Tx, request: AskHuman, answer: dict[str, Any]) -> None:
    state = tx.state
    action = str(request.subject["action"])
    spec = usable_action(state, action)
    if spec is None or answer["decision"] != "approve" or answer.get("edited") is not None:
        return
    kept = Remembered(
        id=request_id(state, request),
        agent=state.spec.name,
        action=action,
        params=request.subject["params"],
        definition=definition_of(spec),
        scope=answer["remember"],
        by=str(answer.get("by") or "client"),
        at=tx.at,
    )
    most = state.spec.limits.max_remembered_approvals
    state.remembered = (*state.remembered, kept)[-most:] if most else ()
    fact = ApprovalRemembered(
        approval_id=kept.id, action=action, params=kept.params, scope=kept.scope, by=kept.by
    )
    tx.fact(fact, "human", key=key_of(request.id))


def waived(tx: Tx, call: RunAction, spec: ActionSpec) -> None:
    """Tell that a call is made without asking, where somebody might expect to be asked."""
    step = tx.state.step
    own = step is not None and key_of(call.id) in step.decisions
    if own or tx.state.spec.approval_of(spec) != "ask":
        return
    found = verdict(tx.state, call, spec)
    if not found.asks:
        rule = cast("Any", found.rule)
        fact = ApprovalWaived(
            call_id=call.id,
            action=call.action,
            rule=rule,
            text=found.text,
            approval_id=found.approval_id,
        )
        tx.fact(fact, "human" if rule == "remembered" else "policy", key=key_of(call.id))


def not_again(tx: Tx, request: AskHuman, feedback: str) -> None:
    """Record that a person does not want a call in doubt to be made again: it stays interrupted, not refused."""
    key = key_of(request.id).removesuffix(".ask")
    said = f" and said: {feedback}" if feedback else "."
    text = f"{request.text} A person decided not to run it again{said}"
    outcome = Outcome.failed(INTERRUPTED, text, may_have_run=True)
    action = str(request.subject["action"])
    fact = ActionCompleted(
        call_id=request.id.removesuffix(".ask"),
        action=action,
        ok=False,
        error=outcome.error.public() if outcome.error else None,
        skill=supplied_by(tx.state, action),
    )
    tx.fact(fact, "human", key=key)
    tx.result(key, outcome)


def revoked(tx: Tx, event: ApprovalRevoked) -> None:
    """Forget an approval that was remembered, also in a run that has ended: the next one takes it over from there."""
    kept = next((one for one in tx.state.remembered if one.id == event.approval), None)
    if kept is None:
        return
    tx.clock(event.at)
    tx.state.remembered = tuple(one for one in tx.state.remembered if one.id != event.approval)
    fact = ApprovalForgotten(approval_id=kept.id, action=kept.action, by=event.by)
    tx.fact(fact, "human")


# --- deadlines -------------------------------------------------------------------------------------


def time_out(tx: Tx, timer: SetTimer) -> bool:
    """End the request whose time is up; False when the timer belongs to none."""
    request = tx.state.pending.get(timer.id.removesuffix(DUE))
    if not timer.id.endswith(DUE) or not isinstance(request, AskHuman):
        return False
    tx.drop(request.id)
    foreign = call_questions.is_foreign(request)
    then = str(request.subject.get("onExpiry") or "reject")
    fact = RequestExpired(request_id=request_id(tx.state, request), then=then)
    tx.fact(fact, "policy", key=key_of(request.id))
    if foreign:
        call_questions.answered(tx, request, None)
    elif then == "fail":
        ending.fail(tx, EXPIRED, f"Nobody answered in time: {request.title}", by="policy")
    else:
        decided(tx, request, {"decision": "reject", EXPIRED: True, "by": "policy"})
    return True
