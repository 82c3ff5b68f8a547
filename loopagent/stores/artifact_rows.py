"""What every store keeps, beside the content, of the artifacts that a run gets to know."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final

from loopagent.artifact_port import ArtifactRow


if TYPE_CHECKING:
    from collections.abc import Sequence

    from loopagent.core.facts import Fact
    from loopagent.core.state import RunState
    from loopagent.ports import Commit

COLUMNS: Final = tuple(one.name for one in fields(ArtifactRow))[2:]
"""What a row says beside whose it is, in the order in which `ArtifactRow` takes it."""
STATE_COLUMNS: Final = "handle, artifact_id, size, media_type, kind, name, version"
"""What the run itself knows of an artifact, in the order in which `core.state.Artifact` takes it."""


def artifact_rows(commit: Commit) -> list[ArtifactRow]:
    """What a commit says of artifacts; the first one of a forked run also says what was known before."""
    before = [one for entry in commit.history for one in _rows(commit.state, entry.facts, entry.at)]
    return [*before, *_rows(commit.state, commit.facts, commit.at)]


def _rows(state: RunState, facts: Sequence[Fact], at: float) -> list[ArtifactRow]:
    return [_row(state, one, at) for one in facts if one.type == "artifact.created"]


def _row(state: RunState, fact: Fact, at: float) -> ArtifactRow:
    data: dict[str, Any] = fact.data
    return ArtifactRow(
        run_id=state.id,
        agent=state.spec.name,
        handle=data["handle"],
        artifact_id=data["artifactId"],
        name=data.get("name") or "",
        kind=data.get("kind") or "text",
        version=data.get("version") or 1,
        media_type=data.get("mediaType") or "",
        size=data["chars"],
        turn=fact.turn or 0,
        call_id=data.get("callId") or "",
        created_at=at,
    )


def values_of(row: ArtifactRow) -> tuple[Any, ...]:
    """The values of `COLUMNS`."""
    return tuple(getattr(row, one) for one in COLUMNS)
