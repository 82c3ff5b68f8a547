"""Public events about what the model sees of the conversation."""

from __future__ import annotations

from loopagent.core.facts import FactData


class ContextExpanded(FactData):
    """The model was shown an earlier message in full."""

    fact = "context.expanded"
    number: int
    """Stable number of the message."""
    chars: int
    """Its length, in characters."""
