"""Where the plan of a run stands: its revision, its text, and who decided what about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal


PlanStatus = Literal["none", "draft", "approved", "rejected"]
Mode = Literal["plan", "act"]


@dataclass(frozen=True, slots=True)
class PlanState:
    """The plan of record. A new revision takes the place of the one before, with its approval.

    `text` is the plan as proposed or, once a person edited it, as approved; `sha256` is its hash. `unlocked` names
    the actions that change something and that the card showed: an approval allows these and no others.
    """

    revision: int = 0
    text: str = ""
    sha256: str = ""
    status: PlanStatus = "none"
    edited: bool = False
    effects: tuple[str, ...] = ()
    """What the model said the plan will change."""
    unlocked: tuple[str, ...] = ()
    approver: str = ""
    """Who approved or rejected it."""
    decided_at: float | None = None
    """When, in seconds since the epoch."""
    mode: Mode | None = None
    """What a person or client switched the run to; None: as the agent's definition says."""
    told: Mode | None = None
    """Mode that the model was last told of; None: that of the definition, which is in its prompt."""

    def public(self) -> dict[str, Any]:
        """The same as camelCase JSON."""
        return {
            "revision": self.revision,
            "text": self.text,
            "sha256": self.sha256,
            "status": self.status,
            "edited": self.edited,
            "effects": list(self.effects),
            "unlocked": list(self.unlocked),
            "decidedBy": self.approver or None,
            "decidedAt": self.decided_at,
        }
