"""Public events about plans: what was proposed, what a person made of it, and who decided."""

from __future__ import annotations

from pydantic import Field

from loopagent.core.facts import FactData
from loopagent.core.plan_state import Mode  # pydantic reads it


class RunModeChanged(FactData):
    """The run was switched between planning and acting."""

    fact = "run.mode_changed"
    before: Mode
    mode: Mode
    by: str


class PlanProposed(FactData):
    """The model put a plan to a person."""

    fact = "plan.proposed"
    request_id: str
    """The card."""
    revision: int
    sha256: str
    """SHA-256 of the text as UTF-8."""
    text: str
    """The plan, Markdown."""
    effects: list[str] = Field(default_factory=list)
    """What the model says it will change."""
    diff: str = ""
    """Unified diff from the revision before."""


class PlanEdited(FactData):
    """A person changed the plan while approving it."""

    fact = "plan.edited"
    revision: int
    sha256: str
    """SHA-256 of the changed text as UTF-8."""
    by: str
    text: str
    """The changed plan, which is now the plan of record."""
    diff: str
    """Unified diff from what was proposed."""


class PlanApproved(FactData):
    """A person approved a plan; revision and hash say exactly which."""

    fact = "plan.approved"
    revision: int
    sha256: str
    by: str
    edited: bool = False


class PlanRejected(FactData):
    """A person rejected a plan."""

    fact = "plan.rejected"
    revision: int
    sha256: str
    by: str
    feedback: str = ""
