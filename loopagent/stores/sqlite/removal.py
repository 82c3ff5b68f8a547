"""Removing ended runs, or only their logs. Each function runs inside a transaction of the writer."""

from __future__ import annotations

import sqlite3

from loopagent.stores import records
from loopagent.stores.sqlite import artifacts, conversations, notices, writes


GIVEN_BACK_PAGES = 5000
"""Free pages that one deletion gives back to the disk at most; what stays is used again."""


def delete(connection: sqlite3.Connection, run_id: str) -> bool:
    """Remove an ended run with its children; the file shrinks by what becomes free."""
    tree = _ended_tree(connection, run_id)
    for one in tree:
        _delete_one(connection, one)
    _give_back(connection)
    return bool(tree)


def _ended_tree(connection: sqlite3.Connection, run_id: str) -> list[int]:
    """Keys of an ended root run and those below it; none if there is no such run."""
    found = connection.execute("SELECT key, root FROM run WHERE id = ?", (run_id,)).fetchone()
    if found is None:
        return []
    key, root = found
    if root is not None:
        raise records.not_deletable(run_id, "child_run")
    tree = connection.execute(
        "SELECT key, status FROM run WHERE key = ?1 OR root = ?1", (key,)
    ).fetchall()
    if any(status == "running" for _, status in tree):
        raise records.not_deletable(run_id, "run_active")
    return [one for one, _ in tree]


def forget_log(connection: sqlite3.Connection, run_id: str) -> bool:
    """Remove the log of an ended run and its children; the file shrinks by what becomes free."""
    gone = 0
    for key in _ended_tree(connection, run_id):
        _delete_log(connection, key)
        gone += connection.execute(
            "UPDATE run SET log_from = version + 1 WHERE key = ? AND log_from <= version", (key,)
        ).rowcount
    _give_back(connection)
    return gone > 0


def _delete_log(connection: sqlite3.Connection, key: int) -> None:
    connection.execute("DELETE FROM outcome WHERE run = ?", (key,))
    connection.execute(
        "DELETE FROM log WHERE key BETWEEN ? AND ?",
        (writes.log_key(key, 0), writes.log_key(key, writes.MAX_VERSION)),
    )


def delete_conversation(connection: sqlite3.Connection, place: conversations.Place) -> bool:
    """Remove a conversation with its runs, all of them ended."""
    talk = conversations.key_of(connection, place)
    if talk is None:
        return False
    for one in conversations.runs_of(connection, talk):
        _delete_one(connection, one)
    conversations.forget(connection, talk)
    _give_back(connection)
    return True


def _give_back(connection: sqlite3.Connection) -> None:
    """Shrink the file. The module takes one step of a statement without columns: one page a call."""
    (free,) = connection.execute("PRAGMA freelist_count").fetchone()
    for _ in range(min(free, GIVEN_BACK_PAGES)):
        connection.execute("PRAGMA incremental_vacuum")


def _delete_one(connection: sqlite3.Connection, key: int) -> None:
    contents = connection.execute("SELECT content FROM artifact WHERE run = ?", (key,)).fetchall()
    connection.execute("DELETE FROM artifact WHERE run = ?", (key,))
    connection.executemany(
        "DELETE FROM content WHERE key = ?1 AND NOT EXISTS"
        " (SELECT 1 FROM artifact WHERE content = ?1)",
        contents,
    )
    connection.execute("DELETE FROM request WHERE run = ?", (key,))
    connection.execute("DELETE FROM said WHERE run = ?", (key,))
    connection.execute("DELETE FROM payload WHERE run = ?", (key,))
    _delete_log(connection, key)
    notices.forget_run(connection, key)
    artifacts.forget_run(connection, key)
    connection.execute("DELETE FROM run WHERE key = ?", (key,))
