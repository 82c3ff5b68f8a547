"""Public events about what the model sees of the conversation."""

from __future__ import annotations

from typing import Any, Literal

from loopagent.core.facts import FactData


class ContextCompacted(FactData):
    """Room was made in what the model sees; the messages themselves stay as they are."""

    fact = "context.compacted"
    reason: Literal["lifetime", "superseded", "window", "overflow"]
    """Results had become old or were replaced by later ones, the model's window was nearly full, or the model refused
    the prompt as too long."""
    how: Literal["stubs", "summary"]
    """Results are shown as stubs, or a summary stands for whole turns."""
    up_to: int
    """Messages up to this number are concerned."""
    messages: int
    """How many of them are shown differently now."""
    freed_bytes: int
    """How much shorter the prompt gets, about."""
    tokens: int
    """Size of the next prompt, about."""
    window_tokens: int
    """The longest prompt that the model takes, as far as is known."""


class ModelCalled(FactData):
    """A model was asked for something other than the next step."""

    fact = "model.call"
    purpose: str
    """What for: `summary`, `verifier`, `conversation`, `embedding`, `action`."""
    model: str
    """`provider:model` that was asked."""
    usage: dict[str, Any]
    """What it cost."""
    error: str | None = None
    """Why nothing came of it."""


class ContextExpanded(FactData):
    """The model was shown an earlier message in full."""

    fact = "context.expanded"
    number: int
    """Stable number of the message."""
    chars: int
    """Its length, in characters."""
