"""What runs know of artifacts, in the database."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

from loopagent.artifact_port import ArtifactRow
from loopagent.core.state import Artifact
from loopagent.stores import records
from loopagent.stores.artifact_rows import COLUMNS, STATE_COLUMNS, values_of
from loopagent.stores.sqlite.conditions import where


if TYPE_CHECKING:
    from collections.abc import Sequence

    from loopagent.artifact_port import ArtifactFilter
    from loopagent.stores.sqlite.readers import Readers

_INSERT = (
    f"INSERT INTO artifact_entry (run, tenant, folded, {', '.join(COLUMNS)})"  # noqa: S608
    f" VALUES (?, ?, ?, {', '.join('?' * len(COLUMNS))})"
)
_READ = (
    f"SELECT entry.key, run.id, run.agent, {', '.join(f'entry.{one}' for one in COLUMNS)}"  # noqa: S608
    " FROM artifact_entry AS entry JOIN run ON run.key = entry.run"
)


class SqliteArtifacts:
    """Lists artifacts in the database of a store; see `ArtifactStore`."""

    _readers: Readers

    async def artifacts(
        self, wanted: ArtifactFilter, *, cursor: str | None = None, limit: int = 50
    ) -> tuple[list[ArtifactRow], str | None]:
        """A page of what runs know, newest first; see `ArtifactStore.artifacts`."""
        before, size = records.decode_cursor("artifacts", cursor), records.page_size(limit)
        return await self._readers.run(lambda db: _listed(db, wanted, before, size))


def _listed(
    db: sqlite3.Connection, wanted: ArtifactFilter, before: int | None, size: int
) -> tuple[list[ArtifactRow], str | None]:
    given = {
        "entry.tenant = ?": wanted.tenant,
        "entry.run = (SELECT key FROM run WHERE id = ?)": wanted.run_id,
        "entry.artifact_id = ?": wanted.artifact_id,
        "entry.kind = ?": wanted.kind,
        "instr(entry.folded, ?) > 0": wanted.name and wanted.name.casefold(),
        "entry.size >= ?": wanted.min_size,
        "entry.size <= ?": wanted.max_size,
        "entry.key < ?": before,
    }
    conditions, values = where(given)
    query = f"{_READ} {conditions} ORDER BY entry.key DESC LIMIT ?"
    found = db.execute(query, (*values, size + 1)).fetchall()
    rows = [ArtifactRow(*one) for _, *one in found[:size]]
    return rows, records.next_cursor("artifacts", found, size)


def add(db: sqlite3.Connection, run: int, tenant: str, rows: Sequence[ArtifactRow]) -> None:
    """Keep what a commit says of artifacts."""
    values = [(run, tenant, one.name.casefold(), *values_of(one)) for one in rows]
    db.executemany(_INSERT, values)


def known(db: sqlite3.Connection, run: int, count: int) -> list[Artifact]:
    """What a run knows of so many artifacts, the first ones first."""
    query = f"SELECT {STATE_COLUMNS} FROM artifact_entry WHERE run = ? ORDER BY key LIMIT ?"  # noqa: S608
    return [Artifact(*one) for one in db.execute(query, (run, count))] if count else []


def forget_run(db: sqlite3.Connection, run: int) -> None:
    """Remove what a run knew."""
    db.execute("DELETE FROM artifact_entry WHERE run = ?", (run,))
