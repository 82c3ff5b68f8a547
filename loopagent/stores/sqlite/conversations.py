"""Conversations in the database. Each function runs inside a transaction."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from loopagent.conversation_port import ConversationRow
from loopagent.core.conversation import Role, Said
from loopagent.stores import records


if TYPE_CHECKING:
    from collections.abc import Sequence

    from loopagent.ports import Commit

Place = tuple[str, str, str]
"""Tenant, user and id of a conversation."""
NO_LAST = 2**62
"""More than any number of a message."""
_ROW = """
SELECT key, id, user, tenant, title, created_at, updated_at,
       (SELECT count(*) FROM said WHERE conversation = conversation.key), last
FROM conversation
"""


def key_of(connection: sqlite3.Connection, place: Place) -> int | None:
    """The key of a user's conversation, or None."""
    found = connection.execute(
        "SELECT key FROM conversation WHERE tenant = ? AND user = ? AND id = ?", place
    ).fetchone()
    return None if found is None else int(found[0])


def enter(connection: sqlite3.Connection, commit: Commit) -> int | None:
    """The key of the conversation that a new run continues, made where it is missing; None when it continues none.

    Raises:
        RequestError: `conversation_busy`.
    """
    state = commit.state
    if not state.conversation:
        return None
    place = (state.tenant, state.user, state.conversation)
    connection.execute(
        """
        INSERT OR IGNORE INTO conversation (tenant, user, id, title, created_at, updated_at, last)
        VALUES (?, ?, ?, ?, ?, ?, 0)
        """,
        (*place, records.title(commit), commit.at, commit.at),
    )
    key = key_of(connection, place)
    assert key is not None
    before = _active(connection, key)
    if before and not records.in_line(state):
        raise records.conversation_busy(before[0])
    return key


def add(
    connection: sqlite3.Connection, run: int, said: Sequence[tuple[Role, str]], at: float
) -> None:
    """Append what was said in a run to its conversation."""
    (key,) = connection.execute("SELECT conversation FROM run WHERE key = ?", (run,)).fetchone()
    ((last,),) = connection.execute(
        "UPDATE conversation SET last = last + ?, updated_at = ? WHERE key = ? RETURNING last",
        (len(said), at, key),
    ).fetchall()
    connection.executemany(
        "INSERT INTO said (conversation, sequence, run, role, at, body) VALUES (?, ?, ?, ?, ?, ?)",
        [
            (key, number, run, role, at, text)
            for number, (role, text) in enumerate(said, last - len(said) + 1)
        ],
    )


def _active(connection: sqlite3.Connection, key: int) -> tuple[str, ...]:
    found = connection.execute(
        "SELECT id FROM run WHERE conversation = ? AND status = 'running' ORDER BY key", (key,)
    )
    return tuple(one for (one,) in found)


def conversation(connection: sqlite3.Connection, place: Place) -> ConversationRow | None:
    """One conversation of a user."""
    found = connection.execute(f"{_ROW} WHERE tenant = ? AND user = ? AND id = ?", place).fetchone()
    return None if found is None else _row(connection, found)


def conversations(
    connection: sqlite3.Connection, whose: tuple[str, str], before: int | None, size: int
) -> tuple[list[ConversationRow], str | None]:
    """A page of a user's conversations, the newest first."""
    found = connection.execute(
        f"{_ROW} WHERE tenant = ? AND user = ? AND key < ? ORDER BY key DESC LIMIT ?",
        (*whose, NO_LAST if before is None else before, size + 1),
    ).fetchall()
    rows = [_row(connection, one) for one in found[:size]]
    return rows, records.next_cursor("conversations", found, size)


def _row(connection: sqlite3.Connection, found: tuple[Any, ...]) -> ConversationRow:
    key, *rest = found
    return replace(ConversationRow(*rest), active=_active(connection, key))


def said(connection: sqlite3.Connection, place: Place, first: int, last: int | None) -> list[Said]:
    """Messages by their numbers."""
    found = connection.execute(
        """
        SELECT said.sequence, said.role, said.body, run.id, said.at
        FROM conversation JOIN said ON said.conversation = conversation.key
        JOIN run ON run.key = said.run
        WHERE conversation.tenant = ? AND conversation.user = ? AND conversation.id = ?
        AND said.sequence BETWEEN ? AND ?
        ORDER BY said.sequence
        """,
        (*place, first, NO_LAST if last is None else last),
    )
    return [Said(*one) for one in found]


def runs_of(connection: sqlite3.Connection, key: int) -> list[int]:
    """Keys of the runs of a conversation, and of those below them.

    Raises:
        RequestError: `conversation_busy`, one of them has not ended.
    """
    active = _active(connection, key)
    if active:
        raise records.conversation_open(active[0])
    found = connection.execute(
        """
        SELECT key FROM run WHERE conversation = ?1
        OR root IN (SELECT key FROM run WHERE conversation = ?1)
        """,
        (key,),
    )
    return [one for (one,) in found.fetchall()]


def forget(connection: sqlite3.Connection, key: int) -> None:
    """Remove a conversation whose runs are gone."""
    connection.execute("DELETE FROM said WHERE conversation = ?", (key,))
    connection.execute("DELETE FROM conversation WHERE key = ?", (key,))
