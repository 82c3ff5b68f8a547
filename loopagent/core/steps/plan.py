"""Plan: put a plan to the person before acting on it."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from loopagent.core.protocol.base import NonBlank
from loopagent.core.steps import NextStep


class Plan(NextStep):
    """Put a plan to the person for approval before anything is done."""

    type: Literal["Plan"]
    plan: NonBlank
    """The plan, Markdown."""
    body: ClassVar = ("plan",)
    runs: ClassVar = False
    example: ClassVar[dict[str, Any]] = {
        "taskComplete": False,
        "nextStep": {"type": "Plan", "plan": "1. Find the open orders.\n2. Remind each customer."},
    }
