"""What runs know of artifacts, in a database."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from loopagent.artifact_port import ArtifactRow
from loopagent.stores.artifact_rows import COLUMNS
from loopagent.stores.sql.tables import Listing, Tables


if TYPE_CHECKING:
    from collections.abc import Sequence

    from loopagent.artifact_port import ArtifactFilter


class ArtifactTables(Tables):
    """Lists artifacts in the database of a store; see `ArtifactStore`."""

    async def artifacts(
        self, wanted: ArtifactFilter, *, cursor: str | None = None, limit: int = 50
    ) -> tuple[list[ArtifactRow], str | None]:
        """A page of what runs know, newest first; see `ArtifactStore.artifacts`."""
        given = {
            "entry.tenant = @": wanted.tenant,
            "entry.run = (SELECT key FROM run WHERE id = @)": wanted.run_id,
            "entry.artifact_id = @": wanted.artifact_id,
            "entry.kind = @": wanted.kind,
            f"{self._dialect.within}(entry.folded, @) > 0": wanted.name and wanted.name.casefold(),
            "entry.size >= @": wanted.min_size,
            "entry.size <= @": wanted.max_size,
        }
        return await self._page(_LISTED, given, cursor=cursor, limit=limit)


def _row(row: Sequence[Any]) -> ArtifactRow:
    return ArtifactRow(*tuple(row)[1:])


_LISTED: Final = Listing(
    "artifacts",
    f"SELECT entry.key, run.id, run.agent, {', '.join(f'entry.{one}' for one in COLUMNS)}"
    " FROM artifact_entry AS entry JOIN run ON run.key = entry.run",
    "entry.key",
    _row,
)
