"""Artifacts and what runs know of them, in memory."""

from __future__ import annotations

import hashlib
from itertools import islice
from typing import TYPE_CHECKING

from loopagent.stores import records
from loopagent.stores.artifact_rows import artifact_rows


if TYPE_CHECKING:
    from collections.abc import Iterable
    from collections.abc import Set as AbstractSet

    from loopagent.artifact_port import ArtifactFilter, ArtifactRow
    from loopagent.ports import Commit, StoredArtifact


class MemoryArtifacts:
    """The part of a store in memory that keeps artifacts; see `ArtifactStore`."""

    def __init__(self) -> None:
        super().__init__()
        self._contents: dict[str, dict[str, StoredArtifact]] = {}
        self._artifact_rows: list[tuple[int, str, ArtifactRow]] = []
        self._last_artifact = 0

    def _keep_artifacts(self, first: Commit) -> None:
        """Make room for a new run's, and keep what it begins with."""
        self._contents[first.state.id] = {one.artifact_id: one for one in first.artifacts}

    def _know_artifacts(self, commit: Commit) -> None:
        for one in artifact_rows(commit):
            self._last_artifact += 1
            self._artifact_rows.append((self._last_artifact, commit.state.tenant, one))

    def _forget_artifacts(self, run_ids: AbstractSet[str]) -> None:
        self._contents = {key: one for key, one in self._contents.items() if key not in run_ids}
        self._artifact_rows = [one for one in self._artifact_rows if one[2].run_id not in run_ids]

    async def put_artifact(self, run_id: str, artifact: StoredArtifact) -> None:
        """Keep a text for a run; see `Store.put_artifact`."""
        check_contents((artifact,))
        if run_id not in self._contents:
            raise records.gone(run_id)
        self._contents[run_id].setdefault(artifact.artifact_id, artifact)

    async def artifact(self, run_id: str, artifact_id: str) -> StoredArtifact | None:
        """A text of this run; see `Store.artifact`."""
        return self._contents.get(run_id, {}).get(artifact_id)

    async def artifacts(
        self, wanted: ArtifactFilter, *, cursor: str | None = None, limit: int = 50
    ) -> tuple[list[ArtifactRow], str | None]:
        """A page of what runs know, newest first; see `ArtifactStore.artifacts`."""
        before, size = records.decode_cursor("artifacts", cursor), records.page_size(limit)
        fitting = (
            one
            for one in reversed(self._artifact_rows)
            if (before is None or one[0] < before)
            and wanted.tenant in (None, one[1])
            and _fits(wanted, one[2])
        )
        found = list(islice(fitting, size + 1))
        rows = [row for _, _, row in found[:size]]
        return rows, records.next_cursor("artifacts", found, size)


def _fits(wanted: ArtifactFilter, row: ArtifactRow) -> bool:
    return (
        wanted.run_id in (None, row.run_id)
        and wanted.artifact_id in (None, row.artifact_id)
        and wanted.kind in (None, row.kind)
        and (wanted.name or "").casefold() in row.name.casefold()
        and row.size >= (wanted.min_size or 0)
        and (wanted.max_size is None or row.size <= wanted.max_size)
    )


def check_contents(artifacts: Iterable[StoredArtifact]) -> None:
    """Refuse content under a wrong id.

    Raises:
        StoreError: There is some.
    """
    for one in artifacts:
        records.check_artifact(one, hashlib.sha256(one.content).hexdigest())
