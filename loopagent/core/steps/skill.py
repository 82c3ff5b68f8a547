"""Skill: bring the instructions of a skill into the run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import Field

from loopagent.core.names import resolve_name
from loopagent.core.problems import Problem
from loopagent.core.protocol.base import NonBlank, Wire
from loopagent.core.skills import refusal
from loopagent.core.steps import Done, NextStep, Wait


if TYPE_CHECKING:
    from loopagent.core.agent_spec import AgentSpec
    from loopagent.core.outcome import Outcome
    from loopagent.core.state import RunState


class SkillRequest(Wire):
    """One skill."""

    name: NonBlank
    """Name of the skill."""
    reason: str | None = None
    """One sentence for the record."""


class Skill(NextStep):
    """Activate skills by name; their instructions and actions are yours for the rest of the run."""

    type: Literal["Skill"]
    skills: list[SkillRequest] = Field(min_length=1)
    """Skills to activate."""
    body: ClassVar = ("skills",)
    example: ClassVar[dict[str, Any]] = {
        "taskComplete": False,
        "nextStep": {
            "type": "Skill",
            "skills": [{"name": "budgeting", "reason": "The task is about a budget."}],
        },
    }

    @classmethod
    def offered(cls, agent: AgentSpec) -> bool:
        """Only where the model may activate a skill by itself."""
        return bool(agent.skills.offered)

    def resolve(self, run: RunState) -> tuple[Self, list[Problem], list[str]]:
        """Resolve names and ask the gates, all skills of the step together."""
        problems: list[Problem] = []
        warnings: list[str] = []
        taken: dict[str, SkillRequest] = {}
        for index, asked in enumerate(self.skills):
            path = f"nextStep.skills[{index}].name"
            name, problem, warned = _resolved(run, asked.name, list(taken), path)
            warnings.extend(warned)
            if problem is not None:
                problems.append(problem)
            elif name in taken:
                warnings.append(f"{path}: {name} was asked for twice")
            elif name is not None:
                if any(one.name == name for one in run.skills):
                    warnings.append(f"{path}: {name} is active already")
                same = name == asked.name and asked.reason != ""
                taken[name] = (
                    asked if same else SkillRequest(name=name, reason=asked.reason or None)
                )
        skills = list(taken.values())
        unchanged = skills == self.skills or problems
        return self if unchanged else type(self)(type="Skill", skills=skills), problems, warnings

    def resume(self, run: RunState, results: Mapping[str, Outcome]) -> Wait | Done:
        """Activate the skills that are not active yet; nothing has to be waited for."""
        del results
        active = {one.name: one.message for one in run.skills}
        notices = tuple(
            f"The skill {one.name} is active already; its instructions are in message #{active[one.name]}."
            for one in self.skills
            if one.name in active
        )
        fresh = tuple((one.name, one.reason) for one in self.skills if one.name not in active)
        return Done(skills=fresh, notices=notices, progress=bool(fresh))


def _resolved(
    run: RunState, asked: str, before: list[str], path: str
) -> tuple[str | None, Problem | None, tuple[str, ...]]:
    """The skill that is meant, or why it cannot be had; names that the model may not use are not listed."""
    offered = [one.name for one in run.spec.skills.offered]
    active = [one.name for one in run.skills if one.name not in offered]
    match = resolve_name(asked, [*offered, *active], path, "skill")
    name = match.name
    if name is None:
        every = [one.name for one in run.spec.skills.available]
        name = resolve_name(asked, every, path, "skill").name
    skill = None if name is None else run.spec.skill(name)
    if skill is None:
        return None, match.problem, ()
    reason = refusal(run, skill, before, by_model=True)
    if reason is not None:
        return None, Problem(path, f"{skill.name} cannot be activated: {reason}", ""), ()
    return skill.name, None, match.warnings
