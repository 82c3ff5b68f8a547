"""Plan: put a plan to the person before acting on it."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import field_validator

from loopagent.core.steps import NextStep


class Plan(NextStep):
    """Put a plan to the person for approval before anything is done."""

    type: Literal["Plan"]
    plan: str
    """The plan, Markdown."""
    body: ClassVar = ("plan",)
    runs: ClassVar = False
    example: ClassVar[dict[str, Any]] = {
        "taskComplete": False,
        "nextStep": {"type": "Plan", "plan": "1. Find the open orders.\n2. Remind each customer."},
    }

    @field_validator("plan")
    @classmethod
    def _not_blank(cls, plan: str) -> str:
        if not plan.strip():
            message = "must not be blank"
            raise ValueError(message)
        return plan
