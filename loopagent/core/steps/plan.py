"""Plan: put a plan to the person before acting on it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from loopagent.core.facts_plan import (
    PlanApproved,
    PlanEdited,
    PlanProposed,
    PlanRejected,
    RunModeChanged,
)
from loopagent.core.plan_card import card
from loopagent.core.problems import Problem
from loopagent.core.protocol.base import NonBlank
from loopagent.core.steps import Done, NextStep, Wait


if TYPE_CHECKING:
    from loopagent.core.agent_spec import AgentSpec
    from loopagent.core.outcome import Outcome
    from loopagent.core.state import MessageKind, RunState


class Plan(NextStep):
    """Put a plan to a person, who approves, edits or rejects it before anything is done."""

    type: Literal["Plan"]
    plan: NonBlank
    """The plan, Markdown."""
    effects: list[str] | None = None
    """What it will change, one line each."""
    body: ClassVar = ("plan",)
    events: ClassVar = (PlanProposed, PlanApproved, PlanEdited, PlanRejected, RunModeChanged)
    example: ClassVar[dict[str, Any]] = {
        "taskComplete": False,
        "nextStep": {
            "type": "Plan",
            "plan": "1. Find the open orders.\n2. Remind each customer.",
            "effects": ["mails about 12 customers"],
        },
    }

    @classmethod
    def tidy(cls, fields: dict[str, Any]) -> dict[str, Any]:
        """Take one effect as a list of one, and effects written as objects as their JSON."""
        listed = fields.get("effects")
        if listed is None:
            return fields
        several: list[Any] = listed if isinstance(listed, list) else [listed]
        return {**fields, "effects": [_line(one) for one in several]}

    @classmethod
    def offered(cls, agent: AgentSpec) -> bool:
        """Agents with a person who can approve, unless plans are off."""
        return agent.interactive and agent.plan_mode != "off"

    @classmethod
    def shown(cls, agent: AgentSpec) -> bool:
        """Named in the prompt only where a plan is required."""
        return cls.offered(agent) and agent.plan_mode == "required"

    def resolve(self, run: RunState) -> tuple[Self, list[Problem], list[str]]:
        """A plan must be short enough to be kept in every prompt, and something new."""
        plan, limits = run.plan, run.spec.limits
        problems: list[str] = []
        if len(self.plan) > limits.max_plan_chars:
            problems.append(
                f"must be at most {limits.max_plan_chars} characters long, has {len(self.plan)}"
            )
        if plan.revision >= limits.max_plan_revisions:
            problems.append(f"no more than {limits.max_plan_revisions} plans may be put in a run")
        elif plan.status == "approved" and self.plan == plan.text:
            problems.append("exactly this plan is approved already; carry it out")
        elif plan.status == "rejected" and self.plan == plan.text:
            problems.append("exactly this plan was rejected; change it as you were told")
        return self, [Problem("nextStep.plan", one) for one in problems], []

    def resume(self, run: RunState, results: Mapping[str, Outcome]) -> Wait | Done:
        """Show the card; an approval pins the plan, a rejection brings the person's words."""
        decided = results.get("plan")
        if decided is None:
            return Wait((card(run, f"{run.turn}:plan", self.plan, self.effects or []),))
        feedback = str(decided.value["feedback"])
        heard: tuple[tuple[MessageKind, str], ...] = ()
        if feedback.strip():
            heard = (("person", feedback),)
        if not decided.value["approved"]:
            text = f"Plan revision {run.plan.revision} was rejected by a person. Nothing of it may be done."
            return Done(said=heard, notices=(text,), progress=False)
        return Done(said=(("plan", pinned(run)), *heard), notices=(_go_ahead(run),))


def pinned(run: RunState) -> str:
    """The plan of record as the message that stays in every later prompt: JSON, so its text is only data."""
    plan = run.plan
    shown = {"revision": plan.revision, "status": plan.status, "text": plan.text}
    if plan.edited:
        shown["edited"] = "by a person"
    return json.dumps({"plan": shown}, ensure_ascii=False, separators=(",", ":"))


def _go_ahead(run: RunState) -> str:
    plan = f"plan revision {run.plan.revision}"
    if run.plan.edited:
        return f"A person edited {plan} and approved it as edited. Carry out the edited text."
    return f"A person approved {plan}. Carry it out."


def _line(effect: Any) -> Any:
    """One foreseen effect as text."""
    return json.dumps(effect, ensure_ascii=False) if isinstance(effect, dict) else effect
