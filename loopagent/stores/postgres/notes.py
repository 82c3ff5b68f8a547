"""The notes of agents: found by their words through full-text search, and only from their own circle."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopagent.core.hashing import json_hash
from loopagent.core.note_text import terms
from loopagent.stores.sql.notes import (
    MOST_NEAR,
    NoteTables,
    note_statements,
    note_values,
    place_of,
)


if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from loopagent.core.notes import Circle, Note
    from loopagent.stores.sql.tables import Script, Step

LONGEST_WORD_BYTES = 2000
"""PostgreSQL indexes no longer ones."""
_INSERT, _UPDATE = note_statements("person", words="array_to_tsvector(@::text[])")
_MATCHING = """
SELECT key, body FROM note WHERE words @@ $1::text::tsquery
ORDER BY ts_rank(words, $2::text::tsquery) DESC, key LIMIT $3
"""
_ALONE = "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))"
_HOLD = "SELECT key FROM note WHERE id = ANY ($1) ORDER BY key FOR UPDATE"
_DELETE = "DELETE FROM note WHERE id = ANY ($1) RETURNING key"
_FORGET_EXPIRED = """
DELETE FROM note WHERE key IN (
  SELECT key FROM note WHERE expires_at <= $1 LIMIT 100 FOR UPDATE SKIP LOCKED)
"""


class PostgresNotes(NoteTables):
    """Keeps notes in the database of a store; see `NoteStore`."""

    async def delete_notes(self, note_ids: Sequence[str]) -> int:
        """Remove notes; see `NoteStore.delete_notes`."""
        return len((await self._put((_DELETE, (list(note_ids),)))).rows)

    def _alone(self, circle: Circle) -> Script[None]:
        yield (_ALONE, (json_hash([circle.tenant, circle.agent]),))

    def _hold(self, note_ids: Sequence[str]) -> Script[None]:
        yield (_HOLD, (list(note_ids),))

    def _matching(self, circle: Circle, asked: Sequence[str]) -> Step | None:
        words = _indexed(asked)
        if not words:
            return None
        places = [_place(circle, wide=wide) for wide in (False, True)]
        wanted = f"({_any(places)}) & ({_any(words)})"
        return _MATCHING, (wanted, _any(words), MOST_NEAR)

    def _insert(self, note: Note) -> Script[None]:
        yield (_INSERT, (*note_values(note), _words(note)))

    def _update(self, note: Note) -> Script[None]:
        yield (_UPDATE, (*note_values(note), _words(note)))

    def _forget_expired(self, now: float) -> Script[None]:
        yield (_FORGET_EXPIRED, (now,))


def _words(note: Note) -> list[str]:
    place = _place(note.circle, wide=note.scope == "agent")
    return [place, *_indexed(terms(note.text))]


def _place(circle: Circle, *, wide: bool) -> str:
    """One word for who may find a note; no word of a text has a dot in it."""
    return f"place.{place_of(circle, wide=wide)}"


def _indexed(words: Iterable[str]) -> list[str]:
    return [one for one in words if len(one.encode()) <= LONGEST_WORD_BYTES]


def _any(words: Sequence[str]) -> str:
    """A query for any of some words, each taken literally."""
    return " | ".join("'" + one.replace("\\", "\\\\").replace("'", "''") + "'" for one in words)
