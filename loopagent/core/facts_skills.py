"""Public events about skills."""

from __future__ import annotations

from typing import Literal

from loopagent.core.facts import FactData


class SkillActivated(FactData):
    """A skill became active; what it brought may be used from now on."""

    fact = "skill.activated"
    skill: str
    """Name of the skill."""
    hash: str
    """SHA-256 of the content that was activated."""
    activated_by: Literal["user", "model"]
    """Who asked for it."""
    reason: str | None = None
    """Why, in the model's words."""
    gates: dict[str, str | bool]
    """How the gates stood: `agent` and `skill` (`requested` or `auto`), and `reviewed`."""
    actions: list[str]
    """Actions that may be called now and could not before."""
    agents: list[str]
    """Sub-agents that may be called now."""
    message: int
    """Number of the message that holds its instructions."""


class SkillRefused(FactData):
    """A skill was asked for and not activated."""

    fact = "skill.refused"
    skill: str
    requested_by: Literal["user"] = "user"
    """Who asked for it; what a model asks for in vain is in `reply.rejected`."""
    reason: str
