"""Everything that is read from the database. Each function is one statement, so it sees one moment."""

from __future__ import annotations

import json
from typing import Any, TypeAlias

from loopagent.core.agent_spec import AgentSpec
from loopagent.core.log import decode
from loopagent.core.state import Artifact, Message
from loopagent.core.state_bytes import load_state
from loopagent.ports import (
    LogEntry,
    RememberedAnswer,
    Snapshot,
    StoredArtifact,
)
from loopagent.stores import records
from loopagent.stores.artifact_rows import STATE_COLUMNS
from loopagent.stores.written import read_state


Db: TypeAlias = Any
KEPT_SPECS = 256
"""Definitions kept parsed; thousands of runs share a few."""
NO_NUMBER = 2**31 - 1
NO_SEQ = 2**63 - 1


class Specs:
    """Pinned definitions by key, parsed once.

    Args:
        keep: How many are kept.
    """

    def __init__(self, keep: int = KEPT_SPECS) -> None:
        self._keep = keep
        self._kept: dict[int, AgentSpec] = {}

    def known(self, key: int) -> AgentSpec | None:
        """The definition of this key, if it was read before."""
        return self._kept.get(key)

    def read(self, key: int, body: str) -> AgentSpec:
        """Parse a definition and keep it."""
        spec = AgentSpec.model_validate_json(body)
        if len(self._kept) >= self._keep:
            self._kept.clear()
        self._kept[key] = spec
        return spec


async def load(db: Db, run_id: str, specs: Specs) -> Snapshot | None:
    """The run as last committed."""
    found = await db.fetchrow(
        f"""
        SELECT run.spec, run.state, run.version, coalesce(root.seq, run.seq) AS seq,
               ARRAY (SELECT body FROM outcome WHERE outcome.run = run.key ORDER BY first) AS spilled,
               payload.body AS payload,
               (SELECT json_agg(json_build_array({STATE_COLUMNS}) ORDER BY key) FROM artifact_entry
                WHERE artifact_entry.run = run.key) AS known
        FROM run LEFT JOIN run AS root ON root.key = run.root
        LEFT JOIN payload ON payload.run = run.key WHERE run.id = $1
        """,
        run_id,
    )
    if found is None:
        return None
    key = found["spec"]
    text = ""
    if specs.known(key) is None:
        text = await db.fetchval("SELECT body FROM spec WHERE key = $1", key)
    state = read_state(
        run_id,
        lambda: load_state(
            found["state"],
            specs.known(key) or specs.read(key, text),
            found["spilled"],
            payload=found["payload"],
            artifacts=[Artifact(*one) for one in json.loads(found["known"] or "[]")],
        ),
    )
    return Snapshot(state, found["version"], found["seq"])


# ---------------------------------------------------------------------- log


async def transcript(db: Db, run_id: str, first: int, last: int | None) -> list[Message]:
    """Messages by their numbers."""
    most = NO_NUMBER if last is None else min(last, NO_NUMBER)
    found = await db.fetch(
        """
        SELECT log.body FROM run JOIN log ON log.run = run.key
        WHERE run.id = $1 AND log.first_message <= $3
        AND log.first_message + log.messages > $2 ORDER BY log.version
        """,
        run_id,
        min(max(first, 0), NO_NUMBER),
        max(most, 0),
    )
    return [
        message
        for (body,) in found
        for message in decode(body).messages
        if first <= message.number <= most
    ]


async def log(db: Db, run_id: str) -> list[LogEntry]:
    """Everything committed for a run."""
    found = await db.fetch(
        """
        SELECT log.version, log.first_seq, log.body FROM run JOIN log ON log.run = run.key
        WHERE run.id = $1 ORDER BY log.version
        """,
        run_id,
    )
    return [_entry(*one) for one in found]


def _entry(version: int, first_seq: int, body: bytes) -> LogEntry:
    entry = decode(body)
    return LogEntry(version, first_seq, entry.at, entry.events, entry.facts, entry.messages)


async def events(db: Db, run_id: str, after: int, limit: int) -> list[dict[str, Any]]:
    """Public events of a run, or of the whole tree of a root. Each entry that is read holds one at least."""
    found = await db.fetch(
        """
        SELECT log.version, log.first_seq, log.body, run.id, root.id, parent.id
        FROM run AS wanted
        JOIN log ON log.root = coalesce(wanted.root, wanted.key)
          AND (wanted.root IS NULL OR log.run = wanted.key)
        JOIN run ON run.key = log.run JOIN run AS root ON root.key = log.root
        LEFT JOIN run AS parent ON parent.key = run.parent
        WHERE wanted.id = $1 AND log.last_seq >= log.first_seq AND log.last_seq > $2
        ORDER BY log.last_seq LIMIT $3
        """,
        run_id,
        min(max(after, -1), NO_SEQ),
        min(max(limit, 0), NO_NUMBER),
    )
    made: list[dict[str, Any]] = []
    for version, first_seq, body, name, root_id, parent_id in found:
        made += records.public_events(
            _entry(version, first_seq, body),
            after=after,
            run_id=name,
            root_id=root_id,
            parent_id=parent_id,
        )
        if len(made) >= limit:
            break
    return made[: max(limit, 0)]


# ---------------------------------------------------------------------- retention


async def ended(db: Db, before: float, limit: int, logged: bool) -> list[str]:
    """Root runs whose whole tree has ended; see `RetentionStore.ended`."""
    found = await db.fetch(
        """
        SELECT id FROM run WHERE root IS NULL AND status <> 'running' AND updated_at < $1
        AND NOT (log_gone AND $2)
        AND NOT EXISTS (SELECT 1 FROM run AS below WHERE below.root = run.key AND below.status = 'running')
        ORDER BY updated_at LIMIT $3
        """,
        before,
        logged,
        limit,
    )
    return [one["id"] for one in found]


async def oldest_event(db: Db, run_id: str) -> int:
    """Number of the first event that is kept; see `RetentionStore.oldest_event`."""
    found = await db.fetchrow(
        """
        SELECT run.log_gone, coalesce(root.seq, run.seq)
        FROM run LEFT JOIN run AS root ON root.key = run.root WHERE run.id = $1
        """,
        run_id,
    )
    return 1 if found is None or not found[0] else int(found[1]) + 1


# ---------------------------------------------------------------------- one value


async def artifact(db: Db, run_id: str, artifact_id: str) -> StoredArtifact | None:
    """A text of this run."""
    found = await db.fetchrow(
        """
        SELECT content.hash, artifact.media_type, length(content.body), content.body
        FROM run JOIN artifact ON artifact.run = run.key
        JOIN content ON content.hash = artifact.hash
        WHERE run.id = $1 AND content.hash = $2
        """,
        run_id,
        artifact_id,
    )
    return None if found is None else StoredArtifact(*found)


async def answer(db: Db, key: str) -> RememberedAnswer | None:
    """The answer kept under an idempotency key."""
    found = await db.fetchrow(
        "SELECT fingerprint, status, body, headers FROM answer WHERE name = $1", key
    )
    if found is None:
        return None
    return RememberedAnswer(found[0], found[1], found[2], json.loads(found[3]))
