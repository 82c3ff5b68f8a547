"""The notes of agents, in a database; how they are found by their words is a matter of each database."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Final

from pydantic import TypeAdapter

from loopagent.core.hashing import json_hash
from loopagent.core.note_text import folded, terms
from loopagent.core.notes import Circle, Note, NoteRules, Verdict, again, judge, ranked
from loopagent.stores import records
from loopagent.stores.sql.tables import Listing, Script, Tables


if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from loopagent.core.notes import NoteFilter
    from loopagent.stores.sql.tables import Rows, Step

MOST_NEAR: Final = 200
"""Notes that are looked at more closely, of those that share words with a text; the best by the database's measure."""
_NOTE: TypeAdapter[Note] = TypeAdapter(Note)
_READ: Final = "SELECT key, body FROM note"
_SAME: Final = f"{_READ} WHERE tenant = $1 AND agent = $2 AND folded = $3"
_OF_RUN: Final = f"{_READ} WHERE run = $1"
_PREFERENCES: Final = f"""
{_READ} WHERE tenant = $1 AND agent = $2 AND ({{person}} = $3 OR scope = 'agent')
AND type = 'Preference' AND status IN ('provisional', 'confirmed') ORDER BY key DESC LIMIT $4
"""
_SEEN_BY: Final = "({person} = @ OR (scope = 'agent' AND status IN ('provisional', 'confirmed')))"


class NoteTables(Tables):
    """Keeps notes in the database of a store; see `NoteStore`."""

    async def put_note(self, note: Note, rules: NoteRules) -> Verdict:
        """Decide on a new note and keep it; see `NoteStore.put_note`."""
        return await self._transact(lambda _: self._decided(note, rules))

    async def note(self, note_id: str) -> Note | None:
        """One note; see `NoteStore.note`."""
        found = await self._found(_one(note_id))
        return _note(found[0]) if found else None

    async def notes(
        self, wanted: NoteFilter, *, cursor: str | None = None, limit: int = 50
    ) -> tuple[list[Note], str | None]:
        """A page of notes, newest first; see `NoteStore.notes`."""
        given = {
            "agent = @": wanted.agent,
            "tenant = @": wanted.tenant,
            "status = @": wanted.status,
            "run = @": wanted.run_id,
            "(expires_at IS NULL OR expires_at > @)": wanted.now,
            self._named(_SEEN_BY): wanted.user,
        }
        return await self._page(_LISTED, given, cursor=cursor, limit=limit)

    async def notes_for(self, circle: Circle, text: str, *, now: float, limit: int) -> list[Note]:
        """Notes for a run; see `NoteStore.notes_for`."""
        asked = terms(text)
        near = await self._found(self._matching(circle, asked))
        whose = (circle.tenant, circle.agent, circle.user)
        liked = await self._fetched(self._named(_PREFERENCES), *whose, MOST_NEAR)
        fitting = [one for one in _notes(near, liked) if one.seen_from(circle)]
        return ranked(asked, fitting, now)[:limit]

    async def save_notes(self, notes: Sequence[Note]) -> None:
        """Replace notes; see `NoteStore.save_notes`."""
        await self._transact(lambda _: self._saved(notes))

    async def _found(self, step: Step | None) -> Rows:
        return () if step is None else await self._fetched(step[0], *step[1])

    # ------------------------------------------------------------------ in a transaction

    def _decided(self, note: Note, rules: NoteRules) -> Script[Verdict]:
        """Decide on a new note and do what the verdict says."""
        yield from self._alone(note.circle)
        known = yield _one(note.id)
        if known:
            return again(_note(known[0]))
        yield from self._forget_expired(note.created_at)
        near = yield from self._near(note)
        mine = yield (_OF_RUN, (note.run_id,))
        written = sum(records.counted(one, note.run_id) for one in map(_note, mine))
        verdict = judge(note, near, written, rules)
        if verdict.keep is not None:
            yield from self._insert(verdict.keep)
        if verdict.retire is not None:
            yield from self._update(verdict.retire)
        return verdict

    def _near(self, note: Note) -> Script[Iterable[Note]]:
        """Notes that a new one may restate or correct."""
        circle, matching = note.circle, self._matching(note.circle, terms(note.text))
        near = () if matching is None else (yield matching)
        same = yield (_SAME, (circle.tenant, circle.agent, folded(note.text)))
        return _notes(near, same)

    def _saved(self, notes: Sequence[Note]) -> Script[None]:
        """Replace notes by newer revisions of themselves."""
        yield from self._hold([one.id for one in notes])
        for one in notes:
            known = yield _one(one.id)
            if not known or _note(known[0]).revision != one.revision - 1:
                raise records.note_moved_on(one.id)
        for one in notes:
            yield from self._update(one)

    def _named(self, query: str) -> str:
        return query.format(person=self._dialect.person)

    # ------------------------------------------------------------------ what each database does

    @abstractmethod
    async def delete_notes(self, note_ids: Sequence[str]) -> int:
        """Remove notes and their words; see `NoteStore.delete_notes`."""

    def _alone(self, circle: Circle) -> Script[None]:
        """Let nobody else decide on notes of an agent meanwhile."""
        del circle
        yield from ()

    def _hold(self, note_ids: Sequence[str]) -> Script[None]:
        """Let nobody else change notes meanwhile."""
        del note_ids
        yield from ()

    @abstractmethod
    def _matching(self, circle: Circle, asked: Sequence[str]) -> Step | None:
        """Asks for the keys and bodies of a circle's notes that share words with a text, of very many the best."""

    @abstractmethod
    def _insert(self, note: Note) -> Script[None]:
        """Add a note and its words."""

    @abstractmethod
    def _update(self, note: Note) -> Script[None]:
        """Change a note and its words."""

    @abstractmethod
    def _forget_expired(self, now: float) -> Script[None]:
        """Remove some that have expired."""


def note_statements(person: str, **more: str) -> tuple[str, str]:
    """Statements that add a note and change one, by `note_values`; each brings its key.

    Args:
        person: Name of the column that names a person.
        more: Further columns, and what they are set to; `@` stands for a value.
    """
    names = ["tenant", "agent", person, "scope", "type", "status", "run", "expires_at", "folded"]
    columns = dict.fromkeys([*names, "body"], "@") | more
    places = [text.replace("@", f"${place}") for place, text in enumerate(columns.values(), 2)]
    changes = [f"{name} = {place}" for name, place in zip(columns, places, strict=True)]
    added = f"INSERT INTO note (id, {', '.join(columns)}) VALUES ($1, {', '.join(places)})"
    changed = f"UPDATE note SET {', '.join(changes)} WHERE id = $1"
    return f"{added} RETURNING key", f"{changed} RETURNING key"


def note_values(note: Note) -> tuple[Any, ...]:
    """The values of a note's columns."""
    circle = note.circle
    whose = (note.id, circle.tenant, circle.agent, circle.user, note.scope, note.type, note.status)
    body = _NOTE.dump_json(note).decode()
    return (*whose, note.run_id, note.expires_at, folded(note.text), body)


def place_of(circle: Circle, *, wide: bool) -> str:
    """One word for who may find a note, so that the notes of others are not even looked at."""
    whose = [circle.tenant, circle.agent, *([] if wide else [circle.user])]
    return json_hash(whose)[:40]


def _one(note_id: str) -> Step:
    return f"{_READ} WHERE id = $1", (note_id,)


def _note(row: Sequence[Any]) -> Note:
    return _NOTE.validate_json(row[1])


def _notes(*found: Rows) -> list[Note]:
    """Notes that were found in several ways, each once."""
    return list({one.id: one for rows in found for one in map(_note, rows)}.values())


_LISTED: Final = Listing("notes", _READ, "key", _note)
