"""Public events about looking into artifacts."""

from __future__ import annotations

from typing import Any

from loopagent.core.facts import FactData


class ArtifactRead(FactData):
    """The model looked into an artifact."""

    fact = "artifact.read"
    handle: str
    """As the model named it."""
    tool: str
    ok: bool
    error: dict[str, Any] | None = None
    """Why not, as `{code, message}`."""
