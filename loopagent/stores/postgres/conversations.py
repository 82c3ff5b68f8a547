"""Conversations in the database."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from loopagent.conversation_port import ConversationRow
from loopagent.core.conversation import Role, Said
from loopagent.stores import records


if TYPE_CHECKING:
    from collections.abc import Sequence

    from loopagent.ports import Commit
    from loopagent.stores.postgres.statements import Statement

Db: TypeAlias = Any
NO_LAST = 2**31 - 1
"""More than any number of a message."""
NO_KEY = 2**63 - 1
_ROW = """
SELECT conversation.key, conversation.id, person, title, created_at, updated_at,
       (SELECT count(*) FROM said WHERE said.conversation = conversation.key), last,
       ARRAY (SELECT run.id FROM run WHERE run.conversation = conversation.key
              AND run.status = 'running' ORDER BY run.key)
FROM conversation
"""
HEADS = """
SELECT run.id, run.key FROM run WHERE run.shown = 'queued' AND NOT EXISTS (
  SELECT 1 FROM run AS before WHERE before.conversation = run.conversation
  AND before.status = 'running' AND before.key < run.key)
"""
"""Runs that wait in a conversation in which no earlier one goes on any more."""


async def locked(db: Db, person: str, conversation: str) -> int | None:
    """The key of a user's conversation, held until the end of the transaction; None if there is none."""
    found = await db.fetchval(
        "SELECT key FROM conversation WHERE person = $1 AND id = $2 FOR UPDATE",
        person,
        conversation,
    )
    return None if found is None else int(found)


async def enter(db: Db, commit: Commit) -> int | None:
    """The key of the conversation that a new run continues, made where it is missing; None when it continues none.

    Raises:
        RequestError: `conversation_busy`.
    """
    state = commit.state
    if not state.conversation:
        return None
    await db.execute(
        """
        INSERT INTO conversation (person, id, title, created_at, updated_at, last)
        VALUES ($1, $2, $3, $4, $4, 0) ON CONFLICT DO NOTHING
        """,
        state.user,
        state.conversation,
        records.title(commit).replace("\0", "\ufffd"),
        commit.at,
    )
    key = await locked(db, state.user, state.conversation)
    if key is None:  # it was deleted in between
        return await enter(db, commit)
    before = await _active(db, key)
    if before is not None and not records.in_line(state):
        raise records.conversation_busy(before)
    return key


async def _active(db: Db, key: int) -> str | None:
    """The first run of a conversation that has not ended."""
    found: str | None = await db.fetchval(
        "SELECT id FROM run WHERE conversation = $1 AND status = 'running' ORDER BY key LIMIT 1",
        key,
    )
    return found


def add(made: Statement, said: Sequence[tuple[Role, str]], at: float) -> None:
    """Append what was said in a run to its conversation, as a part of its commit."""
    moment = made.value(at, "double precision")
    count = made.value(len(said), "integer")
    made.add(
        "talk",
        f"""
        UPDATE conversation SET last = last + {count}, updated_at = {moment} FROM place
        WHERE conversation.key = place.conversation
        RETURNING conversation.key, conversation.last, place.key AS run
        """,
    )
    roles = made.value([role for role, _ in said], "text[]")
    bodies = made.value([text.encode() for _, text in said], "bytea[]")
    made.add(
        "heard",
        f"""
        INSERT INTO said (conversation, sequence, run, role, at, body)
        SELECT talk.key, talk.last - {count} + new.number, talk.run, new.role, {moment}, new.body
        FROM talk, unnest({roles}, {bodies}) WITH ORDINALITY AS new (role, body, number)
        """,
    )


async def conversation(db: Db, person: str, conversation_id: str) -> ConversationRow | None:
    """One conversation of a user."""
    found = await db.fetchrow(
        f"{_ROW} WHERE person = $1 AND conversation.id = $2", person, conversation_id
    )
    return None if found is None else _row(found)


async def conversations(
    db: Db, person: str, before: int | None, size: int
) -> tuple[list[ConversationRow], str | None]:
    """A page of a user's conversations, the newest first."""
    found = await db.fetch(
        f"{_ROW} WHERE person = $1 AND conversation.key < $2 ORDER BY conversation.key DESC LIMIT $3",
        person,
        NO_KEY if before is None else before,
        size + 1,
    )
    more = len(found) > size
    last = records.encode_cursor("conversations", found[size - 1][0]) if more else None
    return [_row(one) for one in found[:size]], last


def _row(found: Any) -> ConversationRow:
    made = ConversationRow(*found[1:8])
    return replace(made, active=tuple(found[8]))


async def said(
    db: Db, person: str, conversation_id: str, first: int, last: int | None
) -> list[Said]:
    """Messages by their numbers."""
    found = await db.fetch(
        """
        SELECT said.sequence, said.role, said.body, run.id, said.at
        FROM conversation JOIN said ON said.conversation = conversation.key
        JOIN run ON run.key = said.run
        WHERE conversation.person = $1 AND conversation.id = $2 AND said.sequence BETWEEN $3 AND $4
        ORDER BY said.sequence
        """,
        person,
        conversation_id,
        min(max(first, 0), NO_LAST),
        NO_LAST if last is None else min(max(last, 0), NO_LAST),
    )
    return [Said(one[0], one[1], one[2].decode(), one[3], one[4]) for one in found]


async def runs_of(db: Db, key: int) -> list[int]:
    """Keys of the runs of a conversation, and of those below them.

    Raises:
        RequestError: `conversation_busy`, one of them has not ended.
    """
    active = await _active(db, key)
    if active is not None:
        raise records.conversation_open(active)
    found = await db.fetch(
        """
        SELECT key FROM run WHERE conversation = $1
        OR root IN (SELECT key FROM run WHERE conversation = $1)
        """,
        key,
    )
    return [one["key"] for one in found]


async def forget(db: Db, key: int) -> None:
    """Remove a conversation whose runs are gone."""
    await db.execute("DELETE FROM said WHERE conversation = $1", key)
    await db.execute("DELETE FROM conversation WHERE key = $1", key)
