"""Everything that is read from the database. Each function sees one moment of it."""

from __future__ import annotations

import heapq
import json
import sqlite3
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from loopagent.core.agent_spec import AgentSpec
from loopagent.core.log import decode
from loopagent.core.state import Message
from loopagent.core.state_bytes import SPILLED, apart_of, load_state
from loopagent.ports import (
    LogEntry,
    RememberedAnswer,
    RequestRow,
    RunRow,
    Snapshot,
    StoredArtifact,
)
from loopagent.stores import records
from loopagent.stores.sqlite import artifacts
from loopagent.stores.sqlite.conditions import where
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

    Versions have no gaps and both columns only grow, so the place is found by halving.
    """
    key, version, log_from = run

    def column_of(one: int) -> int:
        (found,) = connection.execute(
            f"SELECT {column} FROM log WHERE key = ?",  # noqa: S608 - one of two names
            (log_key(key, one),),
        ).fetchone()
        return int(found)

    kept = range(log_from, version + 1)
    start = log_from + max(bisect_right(kept, value, key=column_of) - 1, 0)
    rows = connection.execute(
        "SELECT key, first_seq, body FROM log WHERE key BETWEEN ? AND ? ORDER BY key",
        (log_key(key, start), log_key(key, version)),
    )
    base = log_key(key, 0)
    for entry_key, first_seq, body in rows:
        entry = decode(body)
        yield LogEntry(
            entry_key - base, first_seq, entry.at, entry.events, entry.facts, entry.messages
        )


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


# ---------------------------------------------------------------------- lists


_RUN = """
SELECT run.key, run.id, run.agent, run.status, run.shown, run.turn, run.title, run.created_at,
       run.updated_at, run.metadata, parent.id, run.tenant
FROM run LEFT JOIN run AS parent ON parent.key = run.parent
"""


_OF_TREE = " WHERE run.id = ?1 OR run.root = (SELECT key FROM run WHERE id = ?1) ORDER BY run.key"


def runs(
    connection: sqlite3.Connection,
    wanted: Mapping[str, str | None],
    before: int | None,
    size: int,
    *,
    roots: bool,
) -> tuple[list[RunRow], str | None]:
    """A page of runs, newest first; `wanted` are the values of columns."""
    fixed = ("run.root IS NULL",) if roots else ()
    named = {f"run.{name} = ?": one for name, one in wanted.items()}
    conditions, values = where({**named, "run.key < ?": before}, *fixed)
    found = connection.execute(
        f"{_RUN} {conditions} ORDER BY run.key DESC LIMIT ?", (*values, size + 1)
    ).fetchall()
    rows = [_row(*one) for one in found[:size]]
    return rows, records.next_cursor("runs", found, size)


def tree(connection: sqlite3.Connection, run_id: str) -> list[RunRow]:
    """A root run and every run below it, in the order they were made."""
    found = connection.execute(
        _RUN + _OF_TREE,
        (run_id,),
    )
    return [_row(*one) for one in found]


def _row(_: int, run_id: str, agent: str, status: str, shown: str, *rest: Any) -> RunRow:
    turn, title, created_at, updated_at, metadata, parent_id, tenant = rest
    return RunRow(
        id=run_id,
        agent=agent,
        status=status,
        state=shown,
        turn=turn,
        title=title,
        created_at=created_at,
        updated_at=updated_at,
        metadata=_json(metadata),
        parent_id=parent_id,
        tenant=tenant,
    )


def tenant_of(connection: sqlite3.Connection, run_id: str) -> str | None:
    """The tenant that a run belongs to; None when there is no such run."""
    found = connection.execute("SELECT tenant FROM run WHERE id = ?", (run_id,)).fetchone()
    return None if found is None else str(found[0])


REQUEST = """
SELECT request.key, request.id, run.id, run.agent, request.status, request.created_at,
       request.body, request.resolved_at, request.resolution, run.tenant, request.holder,
       request.held_at
FROM request JOIN run ON run.key = request.run
"""


def requests(
    connection: sqlite3.Connection,
    status: str | None,
    of: Mapping[str, str | None],
    behind: int | None,
    size: int,
    *,
    newest: bool,
) -> tuple[list[RequestRow], str | None]:
    """A page of requests to people, oldest or newest first; `of` are the values of their runs' columns."""
    # Named outright where it can be, because a partial index does not serve a placeholder.
    fixed = ("request.status = 'open'",) if status == "open" else ()
    other = None if status == "open" else status
    named = {f"run.{name} = ?": one for name, one in of.items()}
    after, order = ("<", "DESC") if newest else (">", "ASC")
    wanted = {"request.status = ?": other, **named, f"request.key {after} ?": behind}
    conditions, values = where(wanted, *fixed)
    found = connection.execute(
        f"{REQUEST} {conditions} ORDER BY request.key {order} LIMIT ?", (*values, size + 1)
    ).fetchall()
    return [request_row(one) for one in found[:size]], records.next_cursor("requests", found, size)


def request(connection: sqlite3.Connection, request_id: str) -> RequestRow | None:
    """One request."""
    found = connection.execute(f"{REQUEST} WHERE request.id = ?", (request_id,)).fetchone()
    return None if found is None else request_row(found)


def request_row(row: tuple[Any, ...]) -> RequestRow:
    """A request from the columns of `REQUEST`."""
    _, request_id, run_id, agent, status, created_at, *rest = row
    body, resolved_at, resolution, tenant, holder, held_at = rest
    return RequestRow(
        id=request_id,
        run_id=run_id,
        agent=agent,
        status=status,
        created_at=created_at,
        body=_json(body),
        resolved_at=resolved_at,
        resolution=_json(resolution) if resolution else None,
        tenant=tenant,
        holder=holder,
        held_at=held_at,
    )


def _json(text: str | None) -> dict[str, Any]:
    """A stored JSON object; null is an empty one."""
    found: dict[str, Any] = json.loads(text) if text else {}
    return found


_COUNT = "SELECT count(*) FROM request"


def open_requests(connection: sqlite3.Connection, tenant: str | None) -> int:
    """How many requests are open; of all tenants it reads the index alone."""
    joined = "" if tenant is None else "JOIN run ON run.key = request.run"
    conditions, values = where({"run.tenant = ?": tenant}, "request.status = 'open'")
    (count,) = connection.execute(f"{_COUNT} {joined} {conditions}", values).fetchone()
    return int(count)


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
    return RememberedAnswer(fingerprint, status, body, _json(headers))
