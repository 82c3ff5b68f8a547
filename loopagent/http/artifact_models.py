"""Artifacts as they go over the wire."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import Field

from loopagent.http.body import View


if TYPE_CHECKING:
    from loopagent.artifact_port import ArtifactRow
    from loopagent.core.state import Artifact


class ArtifactView(View):
    """A stored text or file of a run."""

    handle: str
    """The letters by which the model knows it."""
    artifact_id: str
    """SHA-256 of its content."""
    name: str
    """File name; empty for a result."""
    version: int = Field(ge=1)
    """Which one of its name."""
    kind: str
    """Which tools fit it: `text`, `json`, `csv`, `tables`, `pdf`, `docx`, `xlsx`, `image`, `binary`."""
    media_type: str
    """Its type; empty for a result."""
    size: int = Field(ge=0)
    """Bytes of a file, characters of a result."""


class ArtifactList(View):
    """The artifacts of a run."""

    artifacts: list[ArtifactView]


class ArtifactEntry(ArtifactView):
    """An artifact as one run knows it, and how it came there."""

    run_id: str
    agent: str
    turn: int = Field(ge=0)
    """The turn in which the run got to know it; 0 before the first."""
    call_id: str
    """The effect that brought it; empty where it was given to the run."""
    created_at: float
    """Seconds since the epoch."""


class ArtifactPage(View):
    """A page of artifacts, newest first."""

    artifacts: list[ArtifactEntry]
    next_cursor: str | None = None


class Look(View):
    """What a look into an artifact brought."""

    tool: str
    result: Any
    """As the tool brings it to a model; `next` in it is where to go on."""


class TextChanges(View):
    """What differs between two texts."""

    same: bool
    cut: bool
    """Whether there are more lines than are told."""
    lines: list[str]
    """A unified difference, with three lines around each change."""


def artifact_view(one: Artifact) -> ArtifactView:
    """An artifact of a run's state."""
    return ArtifactView(
        handle=one.handle,
        artifact_id=one.artifact_id,
        name=one.name,
        version=one.version,
        kind=one.kind,
        media_type=one.media_type,
        size=one.chars,
    )


def artifact_entry(row: ArtifactRow) -> ArtifactEntry:
    """A row of a list."""
    return ArtifactEntry.model_validate(row, from_attributes=True)
