"""What a store knows of the artifacts of runs, beside their content; a part of `ports.Store`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class ArtifactRow:
    """What a list of artifacts shows: an artifact as one run knows it, and how it came there."""

    run_id: str
    agent: str
    handle: str
    artifact_id: str
    name: str
    """File name; empty for a result."""
    kind: str
    version: int
    media_type: str
    """Of an image or file; empty for a text."""
    size: int
    """Bytes of a file, characters of a result."""
    turn: int
    """The turn in which the run got to know it; 0 before the first."""
    call_id: str
    """The effect that brought it; empty where it was given to the run."""
    created_at: float
    """Seconds since the epoch."""


@dataclass(frozen=True, slots=True)
class ArtifactFilter:
    """Which artifacts a list is of; None leaves a condition out."""

    tenant: str | None = None
    run_id: str | None = None
    kind: str | None = None
    name: str | None = None
    """What stands somewhere in the name, whatever the case."""
    min_size: int | None = None
    max_size: int | None = None
    artifact_id: str | None = None


class ArtifactStore(Protocol):
    """Lists what runs know of stored texts and files."""

    async def artifacts(
        self, wanted: ArtifactFilter, *, cursor: str | None = None, limit: int = 50
    ) -> tuple[list[ArtifactRow], str | None]:
        """A page of what runs know, newest first, and the cursor of the next page."""
        ...
