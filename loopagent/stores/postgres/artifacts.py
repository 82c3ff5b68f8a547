"""What runs know of artifacts, in the database."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING

from loopagent.artifact_port import ArtifactRow
from loopagent.stores import records
from loopagent.stores.artifact_rows import COLUMNS
from loopagent.stores.postgres.more_methods import Finding
from loopagent.stores.postgres.statements import where


if TYPE_CHECKING:
    from collections.abc import Sequence

    from loopagent.artifact_port import ArtifactFilter
    from loopagent.stores.postgres.connections import Db
    from loopagent.stores.postgres.statements import Statement

_KINDS = {
    "version": "integer[]",
    "turn": "integer[]",
    "size": "bigint[]",
    "created_at": "double precision[]",
}
_READ = (
    f"SELECT entry.key, run.id, run.agent, {', '.join(f'entry.{one}' for one in COLUMNS)}"
    " FROM artifact_entry AS entry JOIN run ON run.key = entry.run"
)


class PostgresArtifacts(Finding):
    """Lists artifacts in the database of a store; see `ArtifactStore`."""

    async def artifacts(
        self, wanted: ArtifactFilter, *, cursor: str | None = None, limit: int = 50
    ) -> tuple[list[ArtifactRow], str | None]:
        """A page of what runs know, newest first; see `ArtifactStore.artifacts`."""
        before, size = records.decode_cursor("artifacts", cursor), records.page_size(limit)
        return await self._find(([], None), lambda db, _: _listed(db, wanted, before, size))


async def _listed(
    db: Db, wanted: ArtifactFilter, before: int | None, size: int
) -> tuple[list[ArtifactRow], str | None]:
    given = {
        "entry.tenant = @": wanted.tenant,
        "entry.run = (SELECT key FROM run WHERE id = @)": wanted.run_id,
        "entry.artifact_id = @": wanted.artifact_id,
        "entry.kind = @": wanted.kind,
        "strpos(entry.folded, @) > 0": wanted.name and wanted.name.casefold(),
        "entry.size >= @": wanted.min_size,
        "entry.size <= @": wanted.max_size,
        "entry.key < @": before,
    }
    conditions, values = where(given)
    found = await db.fetch(
        f"{_READ} {conditions} ORDER BY entry.key DESC LIMIT {size + 1}", *values
    )
    rows = [ArtifactRow(*tuple(one)[1:]) for one in found[:size]]
    return rows, records.next_cursor("artifacts", found, size, itemgetter("key"))


def add(made: Statement, tenant: str, rows: Sequence[ArtifactRow]) -> None:
    """Keep what a commit says of artifacts, as a part of it."""
    columns = [
        made.value([_text(getattr(row, one)) for row in rows], _KINDS.get(one, "text[]"))
        for one in COLUMNS
    ]
    folded = made.value([_text(one.name.casefold()) for one in rows], "text[]")
    names = ", ".join(COLUMNS)
    made.add(
        "known",
        f"""
        INSERT INTO artifact_entry (run, tenant, {names}, folded)
        SELECT place.key, {made.value(tenant, "text")}, {", ".join(f"new.{one}" for one in COLUMNS)}, new.folded
        FROM place, unnest({", ".join(columns)}, {folded}) WITH ORDINALITY
          AS new ({names}, folded, number)
        ORDER BY new.number
        """,
    )


def _text(value: object) -> object:
    """A value as a column takes it: no text of this database holds NUL."""
    return value.replace("\0", "\ufffd") if isinstance(value, str) else value
