"""What commits say of artifacts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopagent.stores.artifact_rows import COLUMNS


if TYPE_CHECKING:
    from collections.abc import Sequence

    from loopagent.artifact_port import ArtifactRow
    from loopagent.stores.postgres.statements import Statement

_KINDS = {
    "version": "integer[]",
    "turn": "integer[]",
    "size": "bigint[]",
    "created_at": "double precision[]",
}


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
