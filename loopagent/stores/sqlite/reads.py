"""Everything that is read from the database. Each function sees one moment of it."""

from __future__ import annotations

import heapq
import json
import sqlite3
from bisect import bisect_right
from collections.abc import Iterator
from itertools import islice
from typing import Any

from loopagent.core.agent_spec import AgentSpec
from loopagent.core.log import decode_all
from loopagent.core.state import Message
from loopagent.core.state_bytes import SPILLED, apart_of, load_state
from loopagent.ports import (
    LogEntry,
    RememberedAnswer,
    Snapshot,
    StoredArtifact,
)
from loopagent.stores import records
from loopagent.stores.sqlite import artifacts
from loopagent.stores.sqlite.writes import log_key
from loopagent.stores.written import read_state


KEPT_SPECS = 256
"""Definitions kept parsed; thousands of runs share a few."""


class Specs:
    """Pinned definitions by key, parsed once.

    Args:
        keep: How many are kept.
    """

    def __init__(self, keep: int = KEPT_SPECS) -> None:
        self._keep = keep
        self._kept: dict[int, AgentSpec] = {}

    def get(self, key: int, connection: sqlite3.Connection) -> AgentSpec:
        """The definition of this key."""
        spec = self._kept.get(key)
        if spec is None:
            (body,) = connection.execute("SELECT body FROM spec WHERE key = ?", (key,)).fetchone()
            spec = AgentSpec.model_validate_json(body)
            if len(self._kept) >= self._keep:
                self._kept.clear()
            self._kept[key] = spec
        return spec


def load(connection: sqlite3.Connection, run_id: str, specs: Specs) -> Snapshot | None:
    """The run as last committed."""
    found = connection.execute(
        """
        SELECT run.key, run.spec, run.state, payload.body, run.version, coalesce(root.seq, run.seq)
        FROM run LEFT JOIN run AS root ON root.key = run.root
        LEFT JOIN payload ON payload.run = run.key WHERE run.id = ?
        """,
        (run_id,),
    ).fetchone()
    if found is None:
        return None
    key, spec, body, payload, version, seq = found
    state = read_state(
        run_id,
        lambda: load_state(
            body,
            specs.get(spec, connection),
            _spilled(connection, key, body),
            payload=payload,
            artifacts=artifacts.known(connection, key, apart_of(body).artifacts),
        ),
    )
    return Snapshot(state, version, seq)


def _spilled(connection: sqlite3.Connection, key: int, body: bytes) -> list[bytes]:
    """Results of the open step that are stored apart, if there may be any."""
    if SPILLED not in body:
        return []
    rows = connection.execute("SELECT body FROM outcome WHERE run = ? ORDER BY first", (key,))
    return [one for (one,) in rows]


# ---------------------------------------------------------------------- log


def transcript(
    connection: sqlite3.Connection, run_id: str, first: int, last: int | None
) -> list[Message]:
    """Messages by their numbers."""
    run = _run(connection, run_id)
    if run is None:
        return []
    found: list[Message] = []
    for entry in _entries(connection, run, column="first_message", value=first):
        if last is not None and entry.messages and entry.messages[0].number > last:
            break
        found.extend(
            one
            for one in entry.messages
            if one.number >= first and (last is None or one.number <= last)
        )
    return found


def log(connection: sqlite3.Connection, run_id: str) -> list[LogEntry]:
    """Everything committed for a run."""
    run = _run(connection, run_id)
    return [] if run is None else list(_entries(connection, run))


def events(
    connection: sqlite3.Connection, run_id: str, after: int, limit: int
) -> list[dict[str, Any]]:
    """Public events of a run, or of the whole tree of a root."""
    sources = connection.execute(
        """
        SELECT run.key, run.version, run.log_from, run.id, coalesce(root.id, run.id), parent.id
        FROM run LEFT JOIN run AS root ON root.key = run.root
        LEFT JOIN run AS parent ON parent.key = run.parent
        WHERE run.id = ?1 OR run.root = (SELECT key FROM run WHERE id = ?1)
        """,
        (run_id,),
    ).fetchall()
    parts = [_events_of(connection, source, after) for source in sources]
    return list(islice(heapq.merge(*parts, key=lambda one: one["seq"]), max(limit, 0)))


def _events_of(
    connection: sqlite3.Connection, source: tuple[int, int, int, str, str, str | None], after: int
) -> Iterator[dict[str, Any]]:
    key, version, log_from, run_id, root_id, parent_id = source
    run = (key, version, log_from)
    for entry in _entries(connection, run, column="first_seq", value=after + 1):
        yield from records.public_events(
            entry, after=after, run_id=run_id, root_id=root_id, parent_id=parent_id
        )


def _run(connection: sqlite3.Connection, run_id: str) -> tuple[int, int, int] | None:
    """Key and version of a run, and the version that its log begins with."""
    found: tuple[int, int, int] | None = connection.execute(
        "SELECT key, version, log_from FROM run WHERE id = ?", (run_id,)
    ).fetchone()
    return found


def _entries(
    connection: sqlite3.Connection,
    run: tuple[int, int, int],
    *,
    column: str = "first_seq",
    value: int = 0,
) -> Iterator[LogEntry]:
    """A run's log from the last entry on whose `column` is at most `value`: the one that holds it.

    A row holds the entries from its version up to the next row's. Both columns only grow, so the place is found by
    halving.
    """
    key, version, log_from = run
    base = log_key(key, 0)

    def row_of(one: int) -> tuple[int, int]:
        found: tuple[int, int] = connection.execute(
            f"SELECT key, {column} FROM log WHERE key BETWEEN ? AND ? ORDER BY key DESC LIMIT 1",  # noqa: S608 - one of two names
            (base, log_key(key, one)),
        ).fetchone()
        return found

    kept = range(log_from, version + 1)
    if not kept:
        return
    behind = bisect_right(kept, value, key=lambda one: row_of(one)[1])
    start, _ = row_of(log_from + max(behind - 1, 0))
    rows = connection.execute(
        "SELECT key, first_seq, body FROM log WHERE key BETWEEN ? AND ? ORDER BY key",
        (start, log_key(key, version)),
    )
    for row_key, seq, body in rows:
        first_seq = seq
        for at, one in enumerate(decode_all(body), row_key - base):
            yield LogEntry(at, first_seq, one.at, one.events, one.facts, one.messages)
            first_seq += len(one.facts)


# ---------------------------------------------------------------------- retention


def ended(connection: sqlite3.Connection, before: float, limit: int, *, logged: bool) -> list[str]:
    """Root runs whose whole tree has ended; see `RetentionStore.ended`."""
    rows = connection.execute(
        """
        SELECT id FROM run WHERE root IS NULL AND status <> 'running' AND updated_at < ?
        AND (log_from <= version OR NOT ?)
        AND NOT EXISTS (SELECT 1 FROM run AS below WHERE below.root = run.key AND below.status = 'running')
        ORDER BY updated_at LIMIT ?
        """,
        (before, logged, limit),
    )
    return [one for (one,) in rows]


def oldest_event(connection: sqlite3.Connection, run_id: str) -> int:
    """Number of the first event that is kept; see `RetentionStore.oldest_event`."""
    found = connection.execute(
        """
        SELECT run.log_from > run.version, coalesce(root.seq, run.seq)
        FROM run LEFT JOIN run AS root ON root.key = run.root WHERE run.id = ?
        """,
        (run_id,),
    ).fetchone()
    return 1 if found is None or not found[0] else int(found[1]) + 1


# ---------------------------------------------------------------------- one value


def artifact(
    connection: sqlite3.Connection, run_id: str, artifact_id: str
) -> StoredArtifact | None:
    """A text of this run."""
    found = connection.execute(
        """
        SELECT content.hash, artifact.media_type, length(content.body), content.body
        FROM run JOIN artifact ON artifact.run = run.key
        JOIN content ON content.key = artifact.content
        WHERE run.id = ? AND content.hash = ?
        """,
        (run_id, artifact_id),
    ).fetchone()
    return None if found is None else StoredArtifact(*found)


def answer(connection: sqlite3.Connection, key: str) -> RememberedAnswer | None:
    """The answer kept under an idempotency key."""
    found = connection.execute(
        "SELECT fingerprint, status, body, headers FROM answer WHERE name = ?", (key,)
    ).fetchone()
    if found is None:
        return None
    fingerprint, status, body, headers = found
    return RememberedAnswer(fingerprint, status, body, json.loads(headers))
