"""Handles of stored texts and files: letters in the order in which a run got to know them, versions by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loopagent.core.artifact_kinds import kind_of
from loopagent.core.facts import ArtifactCreated
from loopagent.core.state import Artifact


if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from loopagent.core.tx import Tx


def handle_of(tx: Tx, stored: Mapping[str, Any]) -> str:
    """The handle of a stored text or file; the same content keeps its handle, unless it comes under another name.

    Args:
        tx: The transition in which the run gets to know it.
        stored: `{artifactId, callId, chars}` of a text, `{artifactId, callId, mediaType, bytes, name}` of a file.
    """
    artifact_id = str(stored["artifactId"])
    media_type, name = str(stored.get("mediaType", "")), str(stored.get("name", ""))
    for one in tx.state.artifacts:
        if one.artifact_id == artifact_id and name in {"", one.name}:
            return one.handle
    made = Artifact(
        handle=letters(len(tx.state.artifacts)),
        artifact_id=artifact_id,
        chars=int(str(stored["bytes" if media_type else "chars"])),
        media_type=media_type,
        kind=str(stored.get("kind") or kind_of(media_type, name)),
        name=name,
        version=1 + sum(bool(name) and one.name == name for one in tx.state.artifacts),
    )
    tx.state.artifacts = (*tx.state.artifacts, made)
    fact = ArtifactCreated(
        handle=made.handle,
        artifact_id=artifact_id,
        call_id=str(stored.get("callId", "")),
        chars=made.chars,
        media_type=media_type or None,
        kind=made.kind,
        name=name or None,
        version=made.version if name else None,
    )
    tx.fact(fact)
    return made.handle


def letters(index: int) -> str:
    """0 → A, 25 → Z, 26 → AA, as spreadsheet columns."""
    name = ""
    index += 1
    while index:
        index, rest = divmod(index - 1, 26)
        name = chr(65 + rest) + name
    return name


def described(artifact: Artifact) -> dict[str, Any]:
    """An artifact as `handle_of` takes it, to hand it down to another run."""
    size = "bytes" if artifact.media_type else "chars"
    about = {"artifactId": artifact.artifact_id, size: artifact.chars, "kind": artifact.kind}
    if artifact.media_type:
        about["mediaType"] = artifact.media_type
    return {**about, "name": artifact.name} if artifact.name else about


def handed_down(artifacts: Sequence[Artifact]) -> tuple[dict[str, Any], ...]:
    """What a child is given of its parent's artifacts."""
    return tuple(described(one) for one in artifacts)
