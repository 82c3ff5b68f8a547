"""Everything that changes the database. Each function runs inside a transaction of the writer."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

from pydantic_core import to_json

from loopagent.errors import StoreError
from loopagent.stores import records
from loopagent.stores.sqlite import artifacts, conversations, notices
from loopagent.stores.written import first_message


if TYPE_CHECKING:
    from collections.abc import Sequence

    from loopagent.core.state import RunState
    from loopagent.ports import Commit, RememberedAnswer, StoredArtifact
    from loopagent.stores.written import Row

VERSION_BITS = 24
"""Bits of a log key that hold the version; the rest is the run's key."""
MAX_VERSION = (1 << VERSION_BITS) - 1


# ---------------------------------------------------------------------- runs


def create(connection: sqlite3.Connection, row: Row) -> int:
    """Add a run; returns the `seq` of its first fact."""
    state, facts = row.commit.state, len(row.commit.facts)
    if connection.execute("SELECT 1 FROM run WHERE id = ?", (state.id,)).fetchone():
        raise records.exists(state.id)
    talk = conversations.enter(connection, row.commit)
    root, parent = _family(connection, state)
    facts += sum(len(one.facts) for one in row.commit.history)
    seq = facts if root is None else _count_at_root(connection, root, facts)
    cursor = connection.execute(
        """
        INSERT INTO run (id, root, parent, spec, agent, status, due, version, seq, shown, turn,
                         created_at, updated_at, conversation, tenant, title, metadata, state)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        """,
        (
            state.id,
            root,
            parent,
            _spec(connection, row),
            state.spec.name,
            state.status,
            records.due(state),
            row.commit.version + 1,
            facts,
            records.shown(state),
            state.turn,
            row.commit.at,
            row.commit.at,
            talk,
            state.tenant,
            records.title(row.commit),
            row.metadata,
            row.state,
        ),
    )
    key = cursor.lastrowid or 0
    connection.executemany(
        "INSERT INTO log (key, first_seq, first_message, body) VALUES (?, ?, ?, ?)",
        [(log_key(key, at), *one) for at, one in enumerate(row.history, 1)],
    )
    first_seq = seq - len(row.commit.facts) + 1
    _log(connection, key, first_seq, row.commit, row.body)
    _keep_parts(connection, key, row)
    for one in row.commit.artifacts:
        put_artifact(connection, state.id, one)
    return first_seq


def _family(connection: sqlite3.Connection, state: RunState) -> tuple[int | None, int | None]:
    """Keys of the root and the parent; nothing for a root."""
    root_id = records.root_of(state)
    if root_id == state.id:
        return None, None
    root = key_of(connection, root_id)
    if root is None:
        raise records.gone(root_id)
    return root, key_of(connection, state.parent_id or root_id)


def _spec(connection: sqlite3.Connection, row: Row) -> int:
    """Key of the pinned definition; equal definitions are stored once."""
    assert row.spec is not None
    connection.execute("INSERT OR IGNORE INTO spec (hash, body) VALUES (?, ?)", row.spec)
    found = connection.execute("SELECT key FROM spec WHERE hash = ?", row.spec[:1]).fetchone()
    return int(found[0])


def commit(connection: sqlite3.Connection, commits: Sequence[Commit], rows: Sequence[Row]) -> int:
    """Move a run on, if it is still where the first commit saw it; returns the `seq` of its first fact."""
    first, last, row = commits[0], commits[-1], rows[-1]
    state, facts = last.state, 0
    for one in commits:
        facts += len(one.facts)
    if last.version >= MAX_VERSION:
        raise StoreError(f"Run {state.id!r} has {MAX_VERSION} transactions; there is no room.")
    found = connection.execute(
        "SELECT key, root, seq, status, due, shown FROM run WHERE id = ? AND version = ?",
        (state.id, first.version),
    ).fetchone()
    if found is None:
        raise records.moved_on(state.id, first.version)
    key, root, seq, *listed = found
    now = [state.status, records.due(state), records.shown(state)]
    if listed != now:  # indexed and seldom changed, so not part of every update
        connection.execute(
            "UPDATE run SET status = ?, due = ?, shown = ? WHERE key = ?", (*now, key)
        )
    connection.execute(
        "UPDATE run SET version = ?, seq = ?, turn = ?, updated_at = ?, state = ? WHERE key = ?",
        (last.version + 1, seq + facts, state.turn, last.at, row.state, key),
    )
    first_seq: int = seq + 1
    if root is not None:
        first_seq = _count_at_root(connection, root, facts) - facts + 1
    _log(connection, key, first_seq, first, row.body)
    for part in rows:
        _keep_parts(connection, key, part)
    return first_seq


def _count_at_root(connection: sqlite3.Connection, root: int, facts: int) -> int:
    """Take numbers from the root's counter; returns the last."""
    ((seq,),) = connection.execute(
        "UPDATE run SET seq = seq + ? WHERE key = ? RETURNING seq", (facts, root)
    ).fetchall()
    return int(seq)


def _log(
    connection: sqlite3.Connection, key: int, first_seq: int, first: Commit, body: bytes
) -> None:
    """Keep what was committed together, under the version that the first of it made."""
    connection.execute(
        "INSERT INTO log (key, first_seq, first_message, body) VALUES (?, ?, ?, ?)",
        (key << VERSION_BITS | first.version + 1, first_seq, first_message(first), body),
    )


def _keep_parts(connection: sqlite3.Connection, key: int, row: Row) -> None:
    """Keep what lies apart from log and snapshot."""
    if row.payload is not None:
        connection.execute("REPLACE INTO payload (run, body) VALUES (?, ?)", (key, row.payload))
    if row.spilled is not None:
        _spill(connection, key, *row.spilled)
    for change in row.requests:
        _change_request(connection, key, change, row.commit.at)
    if row.said:
        conversations.add(connection, key, row.said, row.commit.at)
    if row.artifacts:
        artifacts.add(connection, key, row.commit.state.tenant, row.artifacts)
    if row.notices:
        notices.put(connection, row.notices)


def _spill(connection: sqlite3.Connection, key: int, first: int, body: bytes) -> None:
    """Add results of the open step; the first part of a step takes the place of an earlier step's."""
    if first == 0:
        connection.execute("DELETE FROM outcome WHERE run = ?", (key,))
    connection.execute(
        "INSERT INTO outcome (run, first, body) VALUES (?, ?, ?)", (key, first, body)
    )


def _change_request(
    connection: sqlite3.Connection, run: int, change: records.RequestChange, at: float
) -> None:
    data = to_json(change.data).decode()
    if change.status == "open":
        connection.execute(
            """
            INSERT INTO request (id, run, status, created_at, body) VALUES (?, ?, 'open', ?, ?)
            ON CONFLICT (id) DO UPDATE SET status = 'open', created_at = excluded.created_at,
              body = excluded.body, resolved_at = NULL, resolution = NULL, holder = '', held_at = NULL
            """,
            (change.request_id, run, at, data),
        )
    elif change.status == "held":
        connection.execute(
            "UPDATE request SET holder = ?, held_at = ? WHERE id = ?",
            (change.holder, at if change.holder else None, change.request_id),
        )
    else:
        connection.execute(
            "UPDATE request SET status = ?, resolved_at = ?, resolution = ? WHERE id = ?",
            (change.status, at, data, change.request_id),
        )


# ---------------------------------------------------------------------- artifacts and answers


def put_artifact(connection: sqlite3.Connection, run_id: str, artifact: StoredArtifact) -> None:
    """Link a text to a run; its content is stored once."""
    key = key_of(connection, run_id)
    if key is None:
        raise records.gone(run_id)
    connection.execute(
        "INSERT OR IGNORE INTO content (hash, body) VALUES (?, ?)",
        (artifact.artifact_id, artifact.content),
    )
    connection.execute(
        "INSERT OR IGNORE INTO artifact (run, content, media_type)"
        " SELECT ?, key, ? FROM content WHERE hash = ?",
        (key, artifact.media_type, artifact.artifact_id),
    )


def remember(
    connection: sqlite3.Connection, key: str, answer: RememberedAnswer, at: float, oldest: float
) -> None:
    """Keep an answer unless one is kept; forget some that are older than `oldest`."""
    connection.execute(
        """
        DELETE FROM answer
        WHERE at < ? AND (name = ? OR key IN (SELECT key FROM answer ORDER BY key LIMIT 20))
        """,
        (oldest, key),
    )
    connection.execute(
        "INSERT OR IGNORE INTO answer (name, at, fingerprint, status, headers, body)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        (
            key,
            at,
            answer.fingerprint,
            answer.status,
            to_json(answer.headers).decode(),
            answer.body,
        ),
    )


# ---------------------------------------------------------------------- keys


def key_of(connection: sqlite3.Connection, run_id: str) -> int | None:
    """The key of a run, or None."""
    found = connection.execute("SELECT key FROM run WHERE id = ?", (run_id,)).fetchone()
    return None if found is None else int(found[0])


def log_key(run: int, version: int) -> int:
    """The key of a run's log entry."""
    return run << VERSION_BITS | version
