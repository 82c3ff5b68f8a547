"""Public events about reading the conversation that a run continues."""

from __future__ import annotations

from typing import Any

from loopagent.core.facts import FactData


class ConversationRead(FactData):
    """The model looked something up in the conversation."""

    fact = "conversation.read"
    tool: str
    ok: bool
    error: dict[str, Any] | None = None
    """Why not, as `{code, message}`."""
