"""What a store keeps of notes; a part of `ports.Store`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from loopagent.core.notes import Circle, Note, NoteFilter, NoteRules, Verdict


class NoteStore(Protocol):
    """Keeps the notes of agents. What is kept for one circle is never found from another; see `core.notes`."""

    async def put_note(self, note: Note, rules: NoteRules) -> Verdict:
        """Have `judge` decide on a new note among those like it, and do what it says, all in one transaction.

        The note of a known id is not written again: its verdict is `again`'s.
        """
        ...

    async def note(self, note_id: str) -> Note | None:
        """One note, whoever's it is, or None."""
        ...

    async def notes(
        self, wanted: NoteFilter, *, cursor: str | None = None, limit: int = 50
    ) -> tuple[list[Note], str | None]:
        """A page of notes, newest first, and the cursor of the next page."""
        ...

    async def notes_for(self, circle: Circle, text: str, *, now: float, limit: int) -> list[Note]:
        """The notes that a run of this circle may be shown, as `ranked` orders them for a text, at most `limit`."""
        ...

    async def save_notes(self, notes: Sequence[Note]) -> None:
        """Replace notes by newer revisions of themselves, all or none.

        Raises:
            ConflictError: One of them is gone, or not at the revision before the new one.
        """
        ...

    async def delete_notes(self, note_ids: Sequence[str]) -> int:
        """Remove notes for good; returns how many there were."""
        ...
