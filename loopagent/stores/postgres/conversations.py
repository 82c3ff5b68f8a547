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
Place: TypeAlias = tuple[str, str, str]
"""Tenant, user and id of a conversation."""
NO_LAST = 2**31 - 1
"""More than any number of a message."""
NO_KEY = 2**63 - 1
_ROW = """
SELECT conversation.key, conversation.id, person, tenant, title, created_at, updated_at,
       (SELECT count(*) FROM said WHERE said.conversation = conversation.key), last,
       ARRAY (SELECT run.id FROM run WHERE run.conversation = conversation.key
              AND run.status = 'running' ORDER BY run.key)
FROM conversation
"""


async def locked(db: Db, whose: Place) -> int | None:
    """The key of a user's conversation, held until the end of the transaction; None if there is none."""
    found = await db.fetchval(
        "SELECT key FROM conversation WHERE tenant = $1 AND person = $2 AND id = $3 FOR UPDATE",
        *whose,
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
    whose = (state.tenant, state.user, state.conversation)
    await db.execute(
        """
        INSERT INTO conversation (tenant, person, id, title, created_at, updated_at, last)
        VALUES ($1, $2, $3, $4, $5, $5, 0) ON CONFLICT DO NOTHING
        """,
        *whose,
        records.title(commit).replace("\0", "\ufffd"),
        commit.at,
    )
    key = await locked(db, whose)
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


async def conversation(db: Db, whose: Place) -> ConversationRow | None:
    """One conversation of a user."""
    found = await db.fetchrow(
        f"{_ROW} WHERE tenant = $1 AND person = $2 AND conversation.id = $3", *whose
    )
    return None if found is None else _row(found)


async def conversations(
    db: Db, whose: tuple[str, str], before: int | None, size: int
) -> tuple[list[ConversationRow], str | None]:
    """A page of a user's conversations, the newest first."""
    found = await db.fetch(
        f"{_ROW} WHERE tenant = $1 AND person = $2 AND conversation.key < $3"
        " ORDER BY conversation.key DESC LIMIT $4",
        *whose,
        NO_KEY if before is None else before,
        size + 1,
    )
    last = records.next_cursor("conversations", found, size)
    return [_row(one) for one in found[:size]], last


def _row(found: Any) -> ConversationRow:
    made = ConversationRow(*found[1:9])
    return replace(made, active=tuple(found[9]))


async def said(db: Db, whose: Place, first: int, last: int | None) -> list[Said]:
    """Messages by their numbers."""
    found = await db.fetch(
        """
        SELECT said.sequence, said.role, said.body, run.id, said.at
        FROM conversation JOIN said ON said.conversation = conversation.key
        JOIN run ON run.key = said.run
        WHERE conversation.tenant = $1 AND conversation.person = $2 AND conversation.id = $3
        AND said.sequence BETWEEN $4 AND $5
        ORDER BY said.sequence
        """,
        *whose,
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
