"""The card that puts a plan to a person: what it shows, and which answers hold.

The card binds the answer to one revision and one text; its content hash is the SHA-256 of the plan as UTF-8, which
anybody can compute again.
"""

from __future__ import annotations

import difflib
import hashlib
from typing import TYPE_CHECKING, Any, Final

from loopagent.core.abilities import usable_actions, usable_children
from loopagent.core.effects import AskHuman
from loopagent.core.lineage import strongest_effects
from loopagent.core.policy import unlockable
from loopagent.core.problems import Problem, shorten


if TYPE_CHECKING:
    from loopagent.core.action_spec import ActionSpec
    from loopagent.core.state import RunState

MAX_DIFF_LINES: Final = 500
"""Longest text, in lines, that is compared line by line; of a longer one the changed middle is shown as a whole."""
NO_PERSON: Final = frozenset({"", "model", "engine", "policy"})
"""Names of those who can decide nothing about a plan: the agent, and what acts for it."""


def text_hash(text: str) -> str:
    """SHA-256 of a text as UTF-8, as hex."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def card(run: RunState, effect_id: str, text: str, effects: list[str]) -> AskHuman:
    """The request that puts the next revision of the plan.

    Args:
        run: The run.
        effect_id: Id of the request.
        text: The plan, Markdown.
        effects: What the model says it will change, one line each.
    """
    revision = run.plan.revision + 1
    digest = text_hash(text)
    subject = {
        "message": run.step.message if run.step else "",
        "sha256": digest,
        "revision": revision,
        "previous": run.plan.revision or None,
        "diff": difference(run.plan.text, text, revision) if run.plan.revision else "",
        "effects": effects,
        "unlocks": [
            {"action": one.name, "effects": one.effects, "approval": run.spec.approval_of(one)}
            for one in unlockable(run)
        ]
        + _agents(run),
        "maxChars": run.spec.limits.max_plan_chars,
        **_reads(run),
    }
    return AskHuman(
        id=effect_id,
        ask="plan",
        title=f"Plan, revision {revision}",
        text=text,
        decisions=("approve", "reject", "terminate"),
        subject=subject,
        content_hash=digest,
        revision=revision,
    )


def approved_revision(run: RunState) -> int | None:
    """The revision of the plan that is approved; None while none is."""
    return run.plan.revision if run.plan.status == "approved" else None


def quiet(run: RunState, spec: ActionSpec) -> bool:
    """Whether somebody who approves a plan may say that calls of an action are not asked about under it.

    They only read, the action lets approvals be remembered, and whoever decides about them is not somebody else.
    An agent or operator who wants to be asked about every call is.
    """
    terms = spec.asking
    if spec.effects != "read" or run.spec.approval_of(spec) != "ask" or terms is None:
        return False
    named = spec.name in run.spec.approval.actions
    return terms.remember != "never" and not terms.approvers and not named


def _reads(run: RunState) -> dict[str, Any]:
    found = [one.name for one in usable_actions(run) if quiet(run, one)]
    if not found:
        return {}
    return {"reads": [{"action": one, "effects": "read"} for one in found], "remember": ["run"]}


def _agents(run: RunState) -> list[dict[str, str]]:
    """Sub-agents that came with a skill; the others have always been there."""
    brought = [
        (one.name, strongest_effects(run, one)) for one in usable_children(run) if one.with_skill
    ]
    return [
        {"action": name, "effects": effects, "approval": "auto"}
        for name, effects in brought
        if effects != "read"
    ]


def difference(old: str, new: str, revision: int, *, labels: tuple[str, str] | None = None) -> str:
    """A unified diff from one plan to the next.

    Args:
        old: Text of the revision before.
        new: Text of the revision.
        revision: Number of the new one.
        labels: What the two are called, where it is not two revisions.

    Returns:
        The diff without a line break at its end; empty when nothing changed.
    """
    before, after = old.splitlines(), new.splitlines()
    names = labels or (f"revision {revision - 1}", f"revision {revision}")
    if max(len(before), len(after)) > MAX_DIFF_LINES:
        return _coarse(before, after, names)
    return "\n".join(difflib.unified_diff(before, after, *names, lineterm=""))


def _coarse(before: list[str], after: list[str], names: tuple[str, str]) -> str:
    """A diff in linear time: what is the same at the start and the end is left out, the rest is replaced."""
    if before == after:
        return ""
    shorter = min(len(before), len(after))
    head = next((i for i in range(shorter) if before[i] != after[i]), shorter)
    rest = shorter - head
    tail = next((i for i in range(rest) if before[-1 - i] != after[-1 - i]), rest)
    gone, come = before[head : len(before) - tail], after[head : len(after) - tail]
    hunk = f"@@ -{head + 1},{len(gone)} +{head + 1},{len(come)} @@"
    lines = [*(f"-{one}" for one in gone), *(f"+{one}" for one in come)]
    return "\n".join([f"--- {names[0]}", f"+++ {names[1]}", hunk, *lines])


def read_decision(request: AskHuman, body: dict[str, Any]) -> tuple[dict[str, Any], list[Problem]]:
    """Check a decision about a plan.

    Args:
        request: The card.
        body: The answer as JSON; its decision is one that the card offers.

    Returns:
        The answer, without an edit that changes nothing, and every problem.
    """
    if str(body.get("by", "")) in NO_PERSON:
        return body, [Problem("by", "a plan is decided by a person", str(body.get("by", "")))]
    edited = body.get("edited")
    if edited is None:
        return body, []
    if body["decision"] != "approve":
        return body, [Problem("edited", "only an approval can change the plan", shorten(edited))]
    if not isinstance(edited, str) or not edited.strip():
        return body, [Problem("edited", "must be the whole plan as text", shorten(edited))]
    most = int(request.subject["maxChars"])
    if len(edited) > most:
        message = f"must be at most {most} characters long, has {len(edited)}"
        return body, [Problem("edited", message, shorten(edited))]
    return {**body, "edited": None if edited == request.text else edited}, []
