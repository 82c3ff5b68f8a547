"""The store in one SQLite file: one connection writes, a few threads read, and nobody waits for a slow disk."""

from __future__ import annotations

import hashlib
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from loopagent.errors import ConfigError
from loopagent.stores import records, written
from loopagent.stores.sqlite import conversations, reads, removal, writes
from loopagent.stores.sqlite.file import Settings, open_reader, open_writer
from loopagent.stores.sqlite.leases import SqliteLeases
from loopagent.stores.sqlite.notes import SqliteNotes
from loopagent.stores.sqlite.readers import Readers
from loopagent.stores.sqlite.tables import SqliteTables
from loopagent.stores.sqlite.writer import Writer


if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable

    from loopagent.conversation_port import ConversationRow
    from loopagent.core.conversation import Said
    from loopagent.core.state import Message
    from loopagent.ports import (
        Commit,
        LogEntry,
        RememberedAnswer,
        Snapshot,
        StoredArtifact,
    )

T = TypeVar("T")

MAX_HOLD_SECONDS = 1.0
"""The longest that a commit may wait for the next one: what it holds is nowhere but in memory."""


class SqliteStore(
    SqliteLeases,
    SqliteNotes,
    SqliteTables,
):
    """Keeps runs in a SQLite file that several processes may share.

    Args:
        path: The file; created with mode 0600 where it is missing. Its directory must exist.
        synchronous: `FULL` survives a power cut; `NORMAL` is faster and survives a killed process.
        durability: `effect` makes every commit safe as `synchronous` says. `turn` does so for every reply of a
            model, every word of a person, every end, and everything before a call that must not happen twice; a
            power cut may take the latest outcomes of calls that can be repeated, which then are. A reply that
            only asks for calls that read is stored with their outcomes, or after `hold_seconds`; a killed process
            may lose that much, and asks for it again. With `effect` it loses nothing.
        hold_seconds: How long that may wait; 0 for not at all.
        busy_timeout_seconds: How long to wait for another process that holds the write lock.
        max_bytes: The file grows no larger than this; None leaves it to the disk.
        inline_seconds: While most commits take no longer, the event loop waits for them, which is cheaper than
            a thread; 0 has all of them done by the thread.
        readers: Threads that read side by side.
        keep_answers_seconds: How long answers under idempotency keys are kept.

    Raises:
        ConfigError: A setting cannot work.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        synchronous: str = "FULL",
        durability: Literal["effect", "turn"] = "effect",
        hold_seconds: float = 0.02,
        busy_timeout_seconds: float = 30.0,
        max_bytes: int | None = None,
        inline_seconds: float = 0.001,
        readers: int = 2,
        keep_answers_seconds: float = records.KEEP_ANSWERS_SECONDS,
    ) -> None:
        settings = Settings(Path(path), synchronous.upper(), busy_timeout_seconds, max_bytes)
        settings.check()
        if readers < 1:
            raise ConfigError("readers must be at least 1.")
        if not 0 <= inline_seconds <= 3600:  # noqa: PLR2004 - an hour
            raise ConfigError("inline_seconds must be between 0 and 3600.")
        if durability not in ("effect", "turn"):
            raise ConfigError(f"durability must be effect or turn, not {durability!r}.")
        self.path = settings.path
        if not 0 <= hold_seconds <= MAX_HOLD_SECONDS:
            raise ConfigError(f"hold_seconds must be between 0 and {MAX_HOLD_SECONDS:g}.")
        self.hold_seconds = hold_seconds if durability == "turn" else 0.0
        self.durability: Literal["effect", "turn"] = durability
        self._keep_answers_seconds = keep_answers_seconds
        self._specs = reads.Specs()
        self._writer = Writer(
            partial(open_writer, settings),
            settings.path,
            inline_seconds=inline_seconds,
            busy_timeout_seconds=busy_timeout_seconds,
            synchronous=settings.synchronous,
        )
        self._readers = Readers(partial(open_reader, settings), settings.path, count=readers)

    async def open(self) -> None:
        """Open or create the file; see `Store.open`."""
        await self._writer.open()
        self._readers.open()

    async def aclose(self) -> None:
        """Commit what is queued, fold the write-ahead log in, let go of the file."""
        await self._readers.aclose()
        await self._writer.aclose()

    # ------------------------------------------------------------------ runs

    async def create(self, commit: Commit, *, metadata: dict[str, Any] | None = None) -> int:
        """Add a run; see `Store.create`."""

        def prepare() -> Callable[[sqlite3.Connection], int]:
            row = written.prepare_new(commit, metadata)
            for one in commit.artifacts:
                records.check_artifact(one, hashlib.sha256(one.content).hexdigest())
            return lambda db: writes.create(db, row)

        return await self._writer.submit(prepare)

    async def commit(self, commit: Commit, *later: Commit) -> int:
        """Append transitions; see `Store.commit`."""
        commits = records.one_after_the_other((commit, *later)) if later else (commit,)

        def prepare() -> Callable[[sqlite3.Connection], int]:
            rows = written.prepare_all(commits)
            return partial(writes.commit, commits=commits, rows=rows)

        synced = self.durability == "effect"
        for one in commits:
            synced = synced or not one.repeatable
        return await self._writer.submit(prepare, synced=synced, run_id=commit.state.id)

    async def load(self, run_id: str) -> Snapshot | None:
        """The run as last committed; see `Store.load`."""
        return await self._readers.run(lambda db: reads.load(db, run_id, self._specs))

    async def transcript(
        self, run_id: str, *, first: int = 1, last: int | None = None
    ) -> list[Message]:
        """Messages by their numbers; see `Store.transcript`."""
        return await self._readers.run(lambda db: reads.transcript(db, run_id, first, last))

    async def log(self, run_id: str) -> list[LogEntry]:
        """Everything committed; see `Store.log`."""
        return await self._readers.run(lambda db: reads.log(db, run_id))

    async def events(
        self, run_id: str, *, after: int = 0, limit: int = 1000
    ) -> list[dict[str, Any]]:
        """Public events; see `Store.events`. A root run's are those of its whole tree."""
        return await self._readers.run(lambda db: reads.events(db, run_id, after, limit))

    async def delete(self, run_id: str) -> bool:
        """Remove an ended run and its children; see `Store.delete`."""
        return await self._write(lambda db: removal.delete(db, run_id))

    # ------------------------------------------------------------------ retention

    async def ended(self, *, before: float, logged: bool = False, limit: int = 100) -> list[str]:
        """Root runs whose whole tree has ended; see `Store.ended`."""
        return await self._readers.run(lambda db: reads.ended(db, before, limit, logged=logged))

    async def forget_log(self, run_id: str) -> bool:
        """Remove the log of an ended run; see `Store.forget_log`."""
        return await self._write(lambda db: removal.forget_log(db, run_id))

    async def oldest_event(self, run_id: str) -> int:
        """Number of the first event that is kept; see `Store.oldest_event`."""
        return await self._readers.run(lambda db: reads.oldest_event(db, run_id))

    # ------------------------------------------------------------------ conversations

    async def conversations(
        self, *, user: str, tenant: str, cursor: str | None = None, limit: int = 50
    ) -> tuple[list[ConversationRow], str | None]:
        """A page of a user's conversations; see `Store.conversations`."""
        before, size = records.decode_cursor("conversations", cursor), records.page_size(limit)
        return await self._readers.run(
            lambda db: conversations.conversations(db, (tenant, user), before, size)
        )

    async def conversation(
        self, user: str, conversation: str, *, tenant: str
    ) -> ConversationRow | None:
        """One conversation of a user; see `Store.conversation`."""
        return await self._readers.run(
            lambda db: conversations.conversation(db, (tenant, user, conversation))
        )

    async def said(
        self, user: str, conversation: str, *, tenant: str, first: int = 1, last: int | None = None
    ) -> list[Said]:
        """Messages of a conversation; see `Store.said`."""
        return await self._readers.run(
            lambda db: conversations.said(db, (tenant, user, conversation), first, last)
        )

    async def delete_conversation(self, user: str, conversation: str, *, tenant: str) -> bool:
        """Remove a conversation with its runs; see `Store.delete_conversation`."""
        return await self._write(
            lambda db: removal.delete_conversation(db, (tenant, user, conversation))
        )

    # ------------------------------------------------------------------ artifacts and answers

    async def put_artifact(self, run_id: str, artifact: StoredArtifact) -> None:
        """Keep a text for a run; see `Store.put_artifact`."""

        def prepare() -> Callable[[sqlite3.Connection], None]:
            records.check_artifact(artifact, hashlib.sha256(artifact.content).hexdigest())
            return lambda db: writes.put_artifact(db, run_id, artifact)

        await self._writer.submit(prepare)

    async def artifact(self, run_id: str, artifact_id: str) -> StoredArtifact | None:
        """A text of this run; see `Store.artifact`."""
        return await self._readers.run(lambda db: reads.artifact(db, run_id, artifact_id))

    async def remember(self, key: str, answer: RememberedAnswer, *, at: float) -> RememberedAnswer:
        """Keep an answer, forget expired ones; see `Store.remember`."""
        oldest = at - self._keep_answers_seconds

        def write(db: sqlite3.Connection) -> RememberedAnswer:
            writes.remember(db, key, answer, at, oldest)
            return reads.answer(db, key) or answer

        return await self._write(write)

    async def recall(self, key: str) -> RememberedAnswer | None:
        """The answer kept under a key; see `Store.recall`."""
        return await self._readers.run(lambda db: reads.answer(db, key))

    async def _write(self, write: Callable[[sqlite3.Connection], T]) -> T:
        return await self._writer.submit(lambda: write)
