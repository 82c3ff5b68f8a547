"""The notes of agents, in memory."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from loopagent.core.note_text import terms
from loopagent.core.notes import again, judge, ranked
from loopagent.stores import records


if TYPE_CHECKING:
    from collections.abc import Sequence

    from loopagent.core.notes import Circle, Note, NoteFilter, NoteRules, Verdict


class MemoryNotes:
    """The part of a store in memory that keeps notes; see `NoteStore`."""

    def __init__(self) -> None:
        super().__init__()
        self._notes: dict[str, tuple[int, Note]] = {}
        self._last_note = 0

    async def put_note(self, note: Note, rules: NoteRules) -> Verdict:
        """Decide on a new note and keep it; see `NoteStore.put_note`."""
        if (known := self._notes.get(note.id)) is not None:
            return again(known[1])
        kept = [one for _, one in self._notes.values() if one.live(note.created_at)]
        self._notes = {key: one for key, one in self._notes.items() if one[1].live(note.created_at)}
        written = sum(records.counted(one, note.run_id) for one in kept)
        verdict = judge(note, kept, written, rules)
        for one in (verdict.keep, verdict.retire):
            if one is not None:
                self._put(one)
        return verdict

    async def note(self, note_id: str) -> Note | None:
        """One note; see `NoteStore.note`."""
        found = self._notes.get(note_id)
        return None if found is None else found[1]

    async def notes(
        self, wanted: NoteFilter, *, cursor: str | None = None, limit: int = 50
    ) -> tuple[list[Note], str | None]:
        """A page of notes, newest first; see `NoteStore.notes`."""
        before = records.decode_cursor("notes", cursor)
        fitting = (
            (key, one)
            for key, one in sorted(self._notes.values(), key=lambda pair: -pair[0])
            if (before is None or key < before) and wanted.fits(one)
        )
        size = records.page_size(limit)
        found = list(islice(fitting, size + 1))
        return [one for _, one in found[:size]], records.next_cursor("notes", found, size)

    async def notes_for(self, circle: Circle, text: str, *, now: float, limit: int) -> list[Note]:
        """Notes for a run; see `NoteStore.notes_for`."""
        seen = [one for _, one in self._notes.values() if one.seen_from(circle)]
        return ranked(terms(text), seen, now)[:limit]

    async def save_notes(self, notes: Sequence[Note]) -> None:
        """Replace notes; see `NoteStore.save_notes`."""
        for one in notes:
            known = self._notes.get(one.id)
            if known is None or known[1].revision != one.revision - 1:
                raise records.note_moved_on(one.id)
        for one in notes:
            self._put(one)

    async def delete_notes(self, note_ids: Sequence[str]) -> int:
        """Remove notes; see `NoteStore.delete_notes`."""
        return sum(self._notes.pop(one, None) is not None for one in dict.fromkeys(note_ids))

    def _put(self, note: Note) -> None:
        known = self._notes.get(note.id)
        if known is None:
            self._last_note += 1
        self._notes[note.id] = (known[0] if known else self._last_note, note)
