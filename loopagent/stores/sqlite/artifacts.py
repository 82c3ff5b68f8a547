"""What runs know of artifacts, as commits change it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopagent.core.state import Artifact
from loopagent.stores.artifact_rows import COLUMNS, STATE_COLUMNS, values_of


if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from loopagent.artifact_port import ArtifactRow

_INSERT = (
    f"INSERT INTO artifact_entry (run, tenant, folded, {', '.join(COLUMNS)})"  # noqa: S608
    f" VALUES (?, ?, ?, {', '.join('?' * len(COLUMNS))})"
)


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
