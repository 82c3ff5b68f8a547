"""The part of the PostgreSQL store that keeps notes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopagent.stores import records
from loopagent.stores.postgres import notes as table


if TYPE_CHECKING:
    from collections.abc import Sequence

    from loopagent.core.notes import Circle, Note, NoteFilter, NoteRules, Verdict
    from loopagent.stores.postgres.connections import Connections


class PostgresNotes:
    """Keeps notes in the database of a store; see `NoteStore`."""

    _connections: Connections

    async def put_note(self, note: Note, rules: NoteRules) -> Verdict:
        """Decide on a new note and keep it; see `NoteStore.put_note`."""
        return await self._connections.run(lambda db, _: table.put(db, note, rules))

    async def note(self, note_id: str) -> Note | None:
        """One note; see `NoteStore.note`."""
        return await self._connections.run(lambda db, _: table.one_note(db, note_id))

    async def notes(
        self, wanted: NoteFilter, *, cursor: str | None = None, limit: int = 50
    ) -> tuple[list[Note], str | None]:
        """A page of notes, newest first; see `NoteStore.notes`."""
        before, size = records.decode_cursor("notes", cursor), records.page_size(limit)
        return await self._connections.run(lambda db, _: table.listed(db, wanted, before, size))

    async def notes_for(self, circle: Circle, text: str, *, now: float, limit: int) -> list[Note]:
        """Notes for a run; see `NoteStore.notes_for`."""
        return await self._connections.run(lambda db, _: table.recall(db, circle, text, now, limit))

    async def save_notes(self, notes: Sequence[Note]) -> None:
        """Replace notes; see `NoteStore.save_notes`."""
        await self._connections.run(lambda db, _: table.save(db, notes))

    async def delete_notes(self, note_ids: Sequence[str]) -> int:
        """Remove notes; see `NoteStore.delete_notes`."""
        return await self._connections.run(lambda db, _: table.delete(db, note_ids))
