"""The store in a PostgreSQL database: many processes share it, and each commit is one trip to the server."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Literal

from loopagent.stores import records, written
from loopagent.stores.postgres import reads, tables, writes
from loopagent.stores.postgres.address import Address, parse
from loopagent.stores.postgres.connections import Connections
from loopagent.stores.postgres.leases import PostgresLeases
from loopagent.stores.postgres.more_methods import PostgresConversations, PostgresRetention
from loopagent.stores.postgres.notes import PostgresNotes
from loopagent.stores.postgres.shared import PostgresTables
from loopagent.stores.postgres.signals import Signals


if TYPE_CHECKING:
    from loopagent.core.state import Message
    from loopagent.ports import (
        Commit,
        LogEntry,
        RememberedAnswer,
        Snapshot,
        StoredArtifact,
    )
    from loopagent.stores.postgres.connections import Db


class PostgresStore(
    PostgresLeases,
    PostgresConversations,
    PostgresRetention,
    PostgresNotes,
    PostgresTables,
):
    """Keeps runs in a schema of a PostgreSQL database that many processes share.

    A server that is away is waited for: what was asked meanwhile is done when it is back.

    Args:
        address: The database, or its URL: `postgresql://user:password@host/database`, with the options
            `schema` (default `loopagent`), `connections` (at most so many at once, 8), `patience_seconds` (how long
            a server that is away is waited for, 30), `timeout_seconds` (for one statement, 60).
        keep_answers_seconds: How long answers under idempotency keys are kept.

    Raises:
        ConfigError: A setting cannot work.
    """

    durability: Literal["effect", "turn"] = "effect"
    """Every commit is safe; see `Store.durability`."""
    hold_seconds: float = 0.0
    """No commit is kept back; see `Store.hold_seconds`."""

    def __init__(
        self,
        address: Address | str,
        *,
        keep_answers_seconds: float = records.KEEP_ANSWERS_SECONDS,
    ) -> None:
        self.address = parse(address) if isinstance(address, str) else address
        self.address.check()
        self._keep_answers_seconds = keep_answers_seconds
        self._connections = Connections(self.address)
        self._signals = Signals(self.address)
        self._run = self._connections.run
        self._specs = reads.Specs()
        self._spec_keys: dict[str, int] = {}

    async def open(self) -> None:
        """Connect, and make the tables where they are missing; see `Store.open`."""
        await self._connections.open()
        try:
            await self._run(lambda db, _: tables.prepare(db, self.address))
        except BaseException:
            await self._connections.aclose()
            raise
        self._signals.open()

    async def aclose(self) -> None:
        """Tell others what is still untold, and let go of the connections."""
        await self._signals.aclose()
        await self._connections.aclose()

    # ------------------------------------------------------------------ runs

    async def create(self, commit: Commit, *, metadata: dict[str, Any] | None = None) -> int:
        """Add a run; see `Store.create`."""
        row = written.prepare_new(commit, metadata)
        for one in commit.artifacts:
            records.check_artifact(one, hashlib.sha256(one.content).hexdigest())
        spec = await self._spec(row)
        seq = await self._run(lambda db, again: writes.create(db, row, spec, again))
        self._told(commit)
        return seq

    async def _spec(self, row: written.Row) -> int:
        """The key of a run's definition, which is stored the first time it is met."""
        assert row.spec is not None
        digest, body = row.spec
        key = self._spec_keys.get(digest)
        if key is None:
            key = await self._run(lambda db, _: writes.spec_key(db, digest, body))
            if len(self._spec_keys) >= reads.KEPT_SPECS:
                self._spec_keys.clear()
            self._spec_keys[digest] = key
        return key

    async def commit(self, commit: Commit, *later: Commit) -> int:
        """Append transitions; see `Store.commit`."""
        commits = records.one_after_the_other((commit, *later))
        rows = [written.prepare(one) for one in commits]
        seq = await self._run(lambda db, again: writes.commit_all(db, rows, again))
        self._told(commits[-1])
        return seq

    async def load(self, run_id: str) -> Snapshot | None:
        """The run as last committed; see `Store.load`."""
        return await self._find(None, lambda db, _: reads.load(db, run_id, self._specs))

    async def transcript(
        self, run_id: str, *, first: int = 1, last: int | None = None
    ) -> list[Message]:
        """Messages by their numbers; see `Store.transcript`."""
        return await self._find([], lambda db, _: reads.transcript(db, run_id, first, last))

    async def log(self, run_id: str) -> list[LogEntry]:
        """Everything committed; see `Store.log`."""
        return await self._find([], lambda db, _: reads.log(db, run_id))

    async def events(
        self, run_id: str, *, after: int = 0, limit: int = 1000
    ) -> list[dict[str, Any]]:
        """Public events; see `Store.events`. A root run's are those of its whole tree."""
        return await self._find([], lambda db, _: reads.events(db, run_id, after, limit))

    # ------------------------------------------------------------------ artifacts and answers

    async def put_artifact(self, run_id: str, artifact: StoredArtifact) -> None:
        """Keep a text for a run; see `Store.put_artifact`."""
        records.check_artifact(artifact, hashlib.sha256(artifact.content).hexdigest())

        async def put(db: Db, _: bool) -> None:
            async with db.transaction():
                await writes.put_artifact(db, run_id, artifact)

        await self._run(put)

    async def artifact(self, run_id: str, artifact_id: str) -> StoredArtifact | None:
        """A text of this run; see `Store.artifact`."""
        return await self._find(None, lambda db, _: reads.artifact(db, run_id, artifact_id))

    async def remember(self, key: str, answer: RememberedAnswer, *, at: float) -> RememberedAnswer:
        """Keep an answer, forget expired ones; see `Store.remember`."""
        oldest = at - self._keep_answers_seconds

        async def remember(db: Db, _: bool) -> RememberedAnswer:
            await writes.remember(db, key, answer, at, oldest)
            return await reads.answer(db, key) or answer

        return await self._run(remember)

    async def recall(self, key: str) -> RememberedAnswer | None:
        """The answer kept under a key; see `Store.recall`."""
        return await self._find(None, lambda db, _: reads.answer(db, key))
