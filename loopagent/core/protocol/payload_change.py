"""Changes to the payload, the working data of a run."""

from __future__ import annotations

from typing import Any

from pydantic import ConfigDict

from loopagent.core.protocol.base import Wire


class AgentPayloadChangeRequest(Wire):
    """A delta: each part mirrors the shape of the payload."""

    model_config = ConfigDict(extra="allow")
    new_elements: dict[str, Any] | None = None
    """What did not exist; arrays append."""
    update_elements: dict[str, Any] | None = None
    """What changes."""
    replace_elements: dict[str, Any] | None = None
    """What is swapped out whole."""
    remove_elements: dict[str, Any] | None = None
    """What goes, marked with "__DELETE__"."""
    reasoning: str | None = None
