"""What happens to the plan of a run: a revision is put forward, and a person approves, edits or rejects it.

Only an explicit `approve` of a person about the open revision opens the gate; everything else leaves it closed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from loopagent.core import policy
from loopagent.core.effects import key_of
from loopagent.core.facts_plan import (
    PlanApproved,
    PlanEdited,
    PlanProposed,
    PlanRejected,
    RunModeChanged,
)
from loopagent.core.outcome import Outcome
from loopagent.core.people import request_id
from loopagent.core.plan_card import NO_PERSON, difference, text_hash
from loopagent.core.plan_state import PlanState


if TYPE_CHECKING:
    from loopagent.core.effects import AskHuman
    from loopagent.core.events import ModeChanged
    from loopagent.core.facts import DecidedBy
    from loopagent.core.plan_state import Mode
    from loopagent.core.tx import Tx

TOLD: Final[dict[Mode, str]] = {
    "plan": 'Only read-only effects run until a person approves a plan: {"type": "Plan", "plan": "…"}.',
    "act": "No plan is needed any more.",
}
"""What a mode means, for the model."""


def proposed(tx: Tx, request: AskHuman) -> None:
    """Open a new revision; an approval of the one before ends with it."""
    subject = request.subject
    tx.state.plan = PlanState(
        revision=request.revision,
        text=request.text,
        sha256=request.content_hash,
        status="draft",
        effects=tuple(subject["effects"]),
        unlocked=tuple(one["action"] for one in subject["unlocks"]),
    )
    fact = PlanProposed(
        request_id=request_id(tx.state, request),
        revision=request.revision,
        sha256=request.content_hash,
        text=request.text,
        effects=subject["effects"],
        diff=subject["diff"],
    )
    tx.fact(fact, "model", key=key_of(request.id))


def answered(tx: Tx, request: AskHuman, answer: dict[str, Any]) -> None:
    """Take a person's decision about the open revision."""
    by = str(answer.get("by", ""))
    approved = answer["decision"] == "approve" and by not in NO_PERSON
    if approved:
        _edit(tx, request, answer, by)
    plan = tx.state.plan
    tx.state.plan = replace(
        plan, status="approved" if approved else "rejected", approver=by, decided_at=tx.at
    )
    feedback = str(answer.get("feedback") or "")
    said, digest = plan.revision, plan.sha256
    fact = (
        PlanApproved(revision=said, sha256=digest, by=by, edited=plan.edited)
        if approved
        else PlanRejected(revision=said, sha256=digest, by=by, feedback=feedback)
    )
    tx.fact(fact, "human", key=key_of(request.id))
    tx.result(key_of(request.id), Outcome.done({"approved": approved, "feedback": feedback}))


def switched(tx: Tx, event: ModeChanged, by: DecidedBy) -> bool:
    """Switch between planning and acting; what was approved or rejected before counts no more.

    Returns:
        Whether anything changed. It does not while a card is open: that is to be decided first.
    """
    plan, before = tx.state.plan, policy.mode(tx.state)
    if plan.status == "draft" or (event.mode == before and plan.status == "none"):
        return False
    if event.mode == before == "plan" and plan.status == "rejected":
        return False
    tx.state.plan = replace(plan, mode=event.mode, status="none", unlocked=())
    tx.fact(RunModeChanged(before=before, mode=event.mode, by=event.by), by)
    return True


def tell_mode(tx: Tx) -> None:
    """Tell the model of a switch, once, right before it is asked; one that was taken back leaves no trace."""
    plan = tx.state.plan
    if plan.mode is None and plan.told is None:
        return  # never switched
    now = policy.mode(tx.state)
    before = plan.told or policy.defined_mode(tx.state)
    if now == before:
        return
    tx.state.plan = replace(plan, told=now)
    tx.notice(f"The mode was changed from {before} to {now}. {TOLD[now]}")


def _edit(tx: Tx, request: AskHuman, answer: dict[str, Any], by: str) -> None:
    """Make the person's text the plan of record, where it differs from what was proposed."""
    text = answer.get("edited")
    if text is None or text == request.text:
        return
    digest = text_hash(text)
    tx.state.plan = replace(tx.state.plan, text=text, sha256=digest, edited=True)
    labels = ("proposed", "edited")
    fact = PlanEdited(
        revision=request.revision,
        sha256=digest,
        by=by,
        text=text,
        diff=difference(request.text, text, request.revision, labels=labels),
    )
    tx.fact(fact, "human", key=key_of(request.id))
