"""The notes of agents in the database: found by their words through full-text search, only from their own circle."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeAlias

from pydantic import TypeAdapter

from loopagent.core.hashing import json_hash
from loopagent.core.note_text import folded, terms
from loopagent.core.notes import Circle, Note, NoteFilter, NoteRules, Verdict, again, judge, ranked
from loopagent.stores import records
from loopagent.stores.postgres.statements import where


if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Db: TypeAlias = Any
MOST_NEAR = 200
"""Notes that are looked at more closely, of those that share words with a text; the best by PostgreSQL's measure."""
LONGEST_WORD_BYTES = 2000
"""PostgreSQL indexes no longer ones."""
_NOTE: TypeAdapter[Note] = TypeAdapter(Note)


# ---------------------------------------------------------------------- write


async def put(db: Db, note: Note, rules: NoteRules) -> Verdict:
    """Decide on a new note and do what the verdict says; one at a time for each agent of a tenant."""
    async with db.transaction():
        whose = json_hash([note.circle.tenant, note.circle.agent])
        await db.execute("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", whose)
        known = await one_note(db, note.id)
        if known is not None:
            return again(known)
        await _forget_expired(db, note.created_at)
        verdict = judge(note, await _near(db, note), await _written(db, note.run_id), rules)
        if verdict.keep is not None:
            await _insert(db, verdict.keep)
        if verdict.retire is not None:
            await _update(db, verdict.retire)
        return verdict


async def save(db: Db, notes: Sequence[Note]) -> None:
    """Replace notes by newer revisions of themselves."""
    async with db.transaction():
        ids = [one.id for one in notes]
        await db.execute("SELECT key FROM note WHERE id = ANY ($1) ORDER BY key FOR UPDATE", ids)
        for one in notes:
            known = await one_note(db, one.id)
            if known is None or known.revision != one.revision - 1:
                raise records.note_moved_on(one.id)
        for one in notes:
            await _update(db, one)


async def delete(db: Db, note_ids: Sequence[str]) -> int:
    """Remove notes, and their words from the index with them."""
    found = await db.fetch("DELETE FROM note WHERE id = ANY ($1) RETURNING key", list(note_ids))
    return len(found)


async def _forget_expired(db: Db, now: float) -> None:
    await db.execute(
        """
        DELETE FROM note WHERE key IN (
          SELECT key FROM note WHERE expires_at <= $1 LIMIT 100 FOR UPDATE SKIP LOCKED)
        """,
        now,
    )


_COLUMNS = (
    "tenant",
    "agent",
    "person",
    "scope",
    "type",
    "status",
    "run",
    "expires_at",
    "folded",
    "body",
    "words",
)
_PLACES = [f"${place}" for place in range(2, len(_COLUMNS) + 1)]
_PLACES.append(f"array_to_tsvector(${len(_COLUMNS) + 1}::text[])")
_INSERT = f"INSERT INTO note (id, {', '.join(_COLUMNS)}) VALUES ($1, {', '.join(_PLACES)})"
_SET = ", ".join(f"{name} = {place}" for name, place in zip(_COLUMNS, _PLACES, strict=True))
_UPDATE = f"UPDATE note SET {_SET} WHERE id = $1"


async def _insert(db: Db, note: Note) -> None:
    await db.execute(_INSERT, note.id, *_values(note))


async def _update(db: Db, note: Note) -> None:
    await db.execute(_UPDATE, note.id, *_values(note))


def _values(note: Note) -> tuple[Any, ...]:
    circle = note.circle
    whose = (circle.tenant, circle.agent, circle.user, note.scope, note.type, note.status)
    body = _NOTE.dump_json(note).decode()
    words = [_place(circle, wide=note.scope == "agent"), *_indexed(terms(note.text))]
    return (*whose, note.run_id, note.expires_at, folded(note.text), body, words)


def _place(circle: Circle, *, wide: bool) -> str:
    """One word for who may find a note; no word of a text has a dot in it."""
    whose = [circle.tenant, circle.agent, *([] if wide else [circle.user])]
    return f"place.{json_hash(whose)[:40]}"


def _indexed(words: Iterable[str]) -> list[str]:
    return [one for one in words if len(one.encode()) <= LONGEST_WORD_BYTES]


# ---------------------------------------------------------------------- read


async def one_note(db: Db, note_id: str) -> Note | None:
    """One note, or None."""
    body = await db.fetchval("SELECT body FROM note WHERE id = $1", note_id)
    return None if body is None else _NOTE.validate_json(body)


async def listed(
    db: Db, wanted: NoteFilter, before: int | None, size: int
) -> tuple[list[Note], str | None]:
    """A page of notes, newest first."""
    conditions, values = where(
        {
            "agent = @": wanted.agent,
            "tenant = @": wanted.tenant,
            "status = @": wanted.status,
            "run = @": wanted.run_id,
            "(expires_at IS NULL OR expires_at > @)": wanted.now,
            "(person = @ OR (scope = 'agent' AND status IN ('provisional', 'confirmed')))": wanted.user,
            "key < @": before,
        }
    )
    found = await db.fetch(
        f"SELECT key, body FROM note {conditions} ORDER BY key DESC LIMIT {size + 1}",
        *values,
    )
    rows = [_NOTE.validate_json(one["body"]) for one in found[:size]]
    last = records.next_cursor("notes", found, size, itemgetter("key"))
    return rows, last


async def recall(db: Db, circle: Circle, text: str, now: float, limit: int) -> list[Note]:
    """The notes that a run of a circle may be shown, best first."""
    asked = terms(text)
    found = {one.id: one for one in await _matching(db, circle, asked)}
    found |= {one.id: one for one in await _preferences(db, circle)}
    return ranked(asked, [one for one in found.values() if one.seen_from(circle)], now)[:limit]


async def _near(db: Db, note: Note) -> Iterable[Note]:
    """Notes that a new one may restate or correct."""
    found = {one.id: one for one in await _matching(db, note.circle, terms(note.text))}
    circle = note.circle
    same = await db.fetch(
        "SELECT body FROM note WHERE tenant = $1 AND agent = $2 AND folded = $3",
        circle.tenant,
        circle.agent,
        folded(note.text),
    )
    return (found | {one.id: one for one in _notes(same)}).values()


async def _written(db: Db, run_id: str) -> int:
    found = await db.fetch("SELECT body FROM note WHERE run = $1", run_id)
    return sum(records.counted(one, run_id) for one in _notes(found))


async def _matching(db: Db, circle: Circle, asked: Sequence[str]) -> list[Note]:
    """Notes of a circle that share words with a text; of very many the best by PostgreSQL's measure."""
    words = _indexed(asked)
    if not words:
        return []
    places = [_place(circle, wide=wide) for wide in (False, True)]
    found = await db.fetch(
        "SELECT body FROM note WHERE words @@ $1::text::tsquery"
        " ORDER BY ts_rank(words, $2::text::tsquery) DESC, key LIMIT $3",
        f"({_any(places)}) & ({_any(words)})",
        _any(words),
        MOST_NEAR,
    )
    return _notes(found)


def _any(words: Sequence[str]) -> str:
    """A query for any of some words, each taken literally."""
    return " | ".join("'" + one.replace("\\", "\\\\").replace("'", "''") + "'" for one in words)


async def _preferences(db: Db, circle: Circle) -> list[Note]:
    """The newest preferences of a circle; they are of use whatever a task is about."""
    found = await db.fetch(
        """
        SELECT body FROM note WHERE tenant = $1 AND agent = $2 AND (person = $3 OR scope = 'agent')
        AND type = 'Preference' AND status IN ('provisional', 'confirmed') ORDER BY key DESC LIMIT $4
        """,
        circle.tenant,
        circle.agent,
        circle.user,
        MOST_NEAR,
    )
    return _notes(found)


def _notes(found: Iterable[Any]) -> list[Note]:
    return [_NOTE.validate_json(one["body"]) for one in found]
