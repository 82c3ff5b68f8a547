"""What commits change of notifications."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopagent.stores.sql.notices import COLUMNS, notice_values
from loopagent.stores.sqlite.tables import done_for_all


if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from loopagent.notification_port import Notice

_PUT = (
    f"INSERT OR IGNORE INTO notice ({', '.join(COLUMNS)})"  # noqa: S608
    f" VALUES ({', '.join('?' * len(COLUMNS))})"
)
_FORGET = "DELETE FROM notice WHERE run = (SELECT id FROM run WHERE key = $1)"


def put(db: sqlite3.Connection, notices: Sequence[Notice]) -> None:
    """Keep new notifications, inside the transaction of the commit that they come from."""
    done_for_all(db, _PUT, [notice_values(one) for one in notices])


def forget_run(db: sqlite3.Connection, key: int) -> None:
    """Remove the notifications of a run that is being removed."""
    done_for_all(db, _FORGET, [(key,)])
