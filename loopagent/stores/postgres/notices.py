"""What commits say of notifications."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopagent.stores.sql.notices import COLUMNS, notice_values


if TYPE_CHECKING:
    from collections.abc import Sequence

    from loopagent.notification_port import Notice
    from loopagent.stores.postgres.statements import Statement

_KINDS = ("text", "text", "text", "integer", *["double precision"] * 2, "text", "text")
"""Those of `COLUMNS`."""


def add(made: Statement, notices: Sequence[Notice]) -> None:
    """Keep new notifications, as a part of the commit that they come from."""
    columns = [list(one) for one in zip(*map(notice_values, notices), strict=True)]
    places = [made.value(one, f"{kind}[]") for one, kind in zip(columns, _KINDS, strict=True)]
    names = ", ".join(COLUMNS)
    made.add(
        "announced",
        f"""
        INSERT INTO notice ({names})
        SELECT {", ".join(f"new.{one}" for one in COLUMNS)}
        FROM place, unnest({", ".join(places)}) WITH ORDINALITY AS new ({names}, number)
        ORDER BY new.number
        ON CONFLICT (id) DO NOTHING
        """,
    )
