"""Skill: bring the instructions of a skill into the run."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field

from loopagent.core.protocol.base import NonBlank, Wire
from loopagent.core.steps import NextStep


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
    runs: ClassVar = False
    example: ClassVar[dict[str, Any]] = {
        "taskComplete": False,
        "nextStep": {
            "type": "Skill",
            "skills": [{"name": "budgeting", "reason": "The task is about a budget."}],
        },
    }
