"""The notes of agents in the database: found by their words through FTS5, and only from their own circle."""

from __future__ import annotations

import sqlite3
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from loopagent.core.hashing import json_hash
from loopagent.core.note_text import folded, terms
from loopagent.core.notes import Circle, Note, NoteFilter, NoteRules, Verdict, again, judge, ranked
from loopagent.stores import records
from loopagent.stores.sqlite.conditions import where
from loopagent.stores.sqlite.file import statements


if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MOST_NEAR = 200
"""Notes that are looked at more closely, of those that share words with a text; the best by FTS5's measure."""
_NOTE: TypeAdapter[Note] = TypeAdapter(Note)


# ---------------------------------------------------------------------- write


def put(db: sqlite3.Connection, note: Note, rules: NoteRules) -> Verdict:
    """Decide on a new note and do what the verdict says."""
    _make_ready(db)
    known = one_note(db, note.id)
    if known is not None:
        return again(known)
    _forget_expired(db, note.created_at)
    verdict = judge(note, _near(db, note), _written(db, note.run_id), rules)
    if verdict.keep is not None:
        _insert(db, verdict.keep)
    if verdict.retire is not None:
        _update(db, verdict.retire)
    return verdict


def save(db: sqlite3.Connection, notes: Sequence[Note]) -> None:
    """Replace notes by newer revisions of themselves."""
    for one in notes:
        known = one_note(db, one.id)
        if known is None or known.revision != one.revision - 1:
            raise records.note_moved_on(one.id)
    for one in notes:
        _update(db, one)


def delete(db: sqlite3.Connection, note_ids: Sequence[str]) -> int:
    """Remove notes, and their words from the index as well."""
    if not _is_ready(db):
        return 0
    found = [
        key
        for one in dict.fromkeys(note_ids)
        for (key,) in db.execute("SELECT key FROM note WHERE id = ?", (one,))
    ]
    _remove(db, found)
    return len(found)


def _remove(db: sqlite3.Connection, keys: Sequence[int]) -> None:
    if keys:
        rows = [(one,) for one in keys]
        db.executemany("DELETE FROM note WHERE key = ?", rows)
        db.executemany("DELETE FROM note_text WHERE rowid = ?", rows)
        db.execute("INSERT INTO note_text (note_text) VALUES ('optimize')")  # no word stays behind


def _forget_expired(db: sqlite3.Connection, now: float) -> None:
    found = db.execute("SELECT key FROM note WHERE expires_at <= ? LIMIT 100", (now,))
    _remove(db, [key for (key,) in found.fetchall()])


def _insert(db: sqlite3.Connection, note: Note) -> None:
    cursor = db.execute(
        """
        INSERT INTO note (id, tenant, agent, user, scope, type, status, run, expires_at, folded, body)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        """,
        (note.id, *_columns(note)),
    )
    db.execute(
        "INSERT INTO note_text (rowid, place, terms) VALUES (?, ?, ?)",
        (cursor.lastrowid, *_words(note)),
    )


def _update(db: sqlite3.Connection, note: Note) -> None:
    ((key,),) = db.execute(
        """
        UPDATE note SET tenant = ?, agent = ?, user = ?, scope = ?, type = ?, status = ?, run = ?,
                        expires_at = ?, folded = ?, body = ?
        WHERE id = ? RETURNING key
        """,
        (*_columns(note), note.id),
    ).fetchall()
    db.execute("UPDATE note_text SET place = ?, terms = ? WHERE rowid = ?", (*_words(note), key))


def _columns(note: Note) -> tuple[Any, ...]:
    circle = note.circle
    whose = (circle.tenant, circle.agent, circle.user, note.scope, note.type, note.status)
    body = _NOTE.dump_json(note).decode()
    return (*whose, note.run_id, note.expires_at, folded(note.text), body)


def _words(note: Note) -> tuple[str, str]:
    return _place(note.circle, wide=note.scope == "agent"), " ".join(terms(note.text))


def _place(circle: Circle, *, wide: bool) -> str:
    whose = [circle.tenant, circle.agent, *([] if wide else [circle.user])]
    return f"p{json_hash(whose)[:40]}"


def _make_ready(db: sqlite3.Connection) -> None:
    if not _is_ready(db):
        script = files("loopagent.stores.sqlite").joinpath("notes.sql").read_text("utf-8")
        for one in statements(script):
            db.execute(one)


def _is_ready(db: sqlite3.Connection) -> bool:
    found = db.execute("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'note'")
    return found.fetchone() is not None


# ---------------------------------------------------------------------- read


def one_note(db: sqlite3.Connection, note_id: str) -> Note | None:
    """One note, or None."""
    found = _read(db, "WHERE id = ?", (note_id,)) if _is_ready(db) else []
    return found[0][1] if found else None


def listed(
    db: sqlite3.Connection, wanted: NoteFilter, before: int | None, size: int
) -> tuple[list[Note], str | None]:
    """A page of notes, newest first."""
    if not _is_ready(db):
        return [], None
    given = {
        "agent = ?": wanted.agent,
        "tenant = ?": wanted.tenant,
        "status = ?": wanted.status,
        "run = ?": wanted.run_id,
        "(expires_at IS NULL OR expires_at > ?)": wanted.now,
        "(user = ? OR (scope = 'agent' AND status IN ('provisional', 'confirmed')))": wanted.user,
        "key < ?": before,
    }
    conditions, values = where(given)
    found = _read(db, f"{conditions} ORDER BY key DESC LIMIT ?", (*values, size + 1))
    return [one for _, one in found[:size]], records.next_cursor("notes", found, size)


def recall(db: sqlite3.Connection, circle: Circle, text: str, now: float, limit: int) -> list[Note]:
    """The notes that a run of a circle may be shown, best first."""
    if not _is_ready(db):
        return []
    asked = terms(text)
    found = {one.id: one for one in _matching(db, circle, asked)}
    found |= {one.id: one for one in _preferences(db, circle)}
    return ranked(asked, [one for one in found.values() if one.seen_from(circle)], now)[:limit]


def _near(db: sqlite3.Connection, note: Note) -> Iterable[Note]:
    """Notes that a new one may restate or correct."""
    found = {one.id: one for one in _matching(db, note.circle, terms(note.text))}
    circle = note.circle
    same = _read(
        db,
        "WHERE tenant = ? AND agent = ? AND folded = ?",
        (circle.tenant, circle.agent, folded(note.text)),
    )
    return (found | {one.id: one for _, one in same}).values()


def _written(db: sqlite3.Connection, run_id: str) -> int:
    return sum(records.counted(one, run_id) for _, one in _read(db, "WHERE run = ?", (run_id,)))


def _matching(db: sqlite3.Connection, circle: Circle, asked: Sequence[str]) -> list[Note]:
    """Notes of a circle that share words with a text; of very many the best by FTS5's measure."""
    if not asked:
        return []
    places = " OR ".join(f'"{_place(circle, wide=wide)}"' for wide in (False, True))
    words = " OR ".join(f'"{one}"' for one in asked)
    found = db.execute(
        """
        SELECT note.body FROM note_text JOIN note ON note.key = note_text.rowid
        WHERE note_text MATCH ? ORDER BY note_text.rank LIMIT ?
        """,
        (f"{{place}} : ({places}) AND {{terms}} : ({words})", MOST_NEAR),
    )
    return [_NOTE.validate_json(body) for (body,) in found]


def _preferences(db: sqlite3.Connection, circle: Circle) -> list[Note]:
    """The newest preferences of a circle; they are of use whatever a task is about."""
    where = """
    WHERE tenant = ? AND agent = ? AND (user = ? OR scope = 'agent') AND type = 'Preference'
      AND status IN ('provisional', 'confirmed') ORDER BY key DESC LIMIT ?
    """
    found = _read(db, where, (circle.tenant, circle.agent, circle.user, MOST_NEAR))
    return [one for _, one in found]


def _read(db: sqlite3.Connection, rest: str, values: Sequence[Any]) -> list[tuple[int, Note]]:
    """Notes by the end of a statement that this module wrote; whatever comes from outside is in `values`."""
    found = db.execute(f"SELECT key, body FROM note {rest}", values)  # noqa: S608
    return [(key, _NOTE.validate_json(body)) for key, body in found]
