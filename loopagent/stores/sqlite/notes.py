"""The notes of agents: found by their words through FTS5, and only from their own circle."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopagent.core.note_text import terms
from loopagent.stores.sql.notes import (
    MOST_NEAR,
    NoteTables,
    note_statements,
    note_values,
    place_of,
)
from loopagent.stores.sql.tables import Many


if TYPE_CHECKING:
    from collections.abc import Sequence

    from loopagent.core.notes import Circle, Note
    from loopagent.stores.sql.tables import Script, Step

_INSERT, _UPDATE = note_statements("user")
_INSERT_WORDS = "INSERT INTO note_text (rowid, place, terms) VALUES ($1, $2, $3)"
_UPDATE_WORDS = "UPDATE note_text SET place = $2, terms = $3 WHERE rowid = $1"
_MATCHING = """
SELECT note.key, note.body FROM note_text JOIN note ON note.key = note_text.rowid
WHERE note_text MATCH $1 ORDER BY note_text.rank LIMIT $2
"""
_EXPIRED = "SELECT key FROM note WHERE expires_at <= $1 LIMIT 100"


class SqliteNotes(NoteTables):
    """Keeps notes in the database of a store; see `NoteStore`."""

    async def delete_notes(self, note_ids: Sequence[str]) -> int:
        """Remove notes; see `NoteStore.delete_notes`."""
        return await self._transact(lambda _: _deleted(note_ids))

    def _matching(self, circle: Circle, asked: Sequence[str]) -> Step | None:
        if not asked:
            return None
        places = " OR ".join(f'"p{place_of(circle, wide=wide)}"' for wide in (False, True))
        words = " OR ".join(f'"{one}"' for one in asked)
        return _MATCHING, (f"{{place}} : ({places}) AND {{terms}} : ({words})", MOST_NEAR)

    def _insert(self, note: Note) -> Script[None]:
        ((key,),) = yield (_INSERT, note_values(note))
        yield (_INSERT_WORDS, (key, *_words(note)))

    def _update(self, note: Note) -> Script[None]:
        ((key,),) = yield (_UPDATE, note_values(note))
        yield (_UPDATE_WORDS, (key, *_words(note)))

    def _forget_expired(self, now: float) -> Script[None]:
        found = yield (_EXPIRED, (now,))
        yield from _remove([key for (key,) in found])


def _deleted(note_ids: Sequence[str]) -> Script[int]:
    keys: list[int] = []
    for one in dict.fromkeys(note_ids):
        found = yield ("SELECT key FROM note WHERE id = $1", (one,))
        keys += [key for (key,) in found]
    yield from _remove(keys)
    return len(keys)


def _remove(keys: Sequence[int]) -> Script[None]:
    """Remove notes, and their words from the index as well."""
    if keys:
        rows = [(one,) for one in keys]
        yield Many("DELETE FROM note WHERE key = $1", rows)
        yield Many("DELETE FROM note_text WHERE rowid = $1", rows)
        # No word stays behind.
        yield ("INSERT INTO note_text (note_text) VALUES ('optimize')", ())


def _words(note: Note) -> tuple[str, str]:
    place = place_of(note.circle, wide=note.scope == "agent")
    return f"p{place}", " ".join(terms(note.text))
