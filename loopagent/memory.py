"""Looking after the notes that agents keep: list, show, edit, confirm, delete, export.

Everything is done on behalf of somebody. A user sees the own notes, and those in force that are for all users of an
agent, but changes only the own ones. Whoever runs the agents (`EVERYBODY`) sees and changes all.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from loopagent.core.notes import Note, NoteChange, NoteFilter, NoteStatus, changed, retire
from loopagent.errors import ConflictError, RequestError
from loopagent.runtime.remembering import clean


if TYPE_CHECKING:
    from loopagent.note_port import NoteStore


MAX_NOTE_CHARS: Final = 2_000
"""Longest note. Source: protocol reference 2.9."""
MAX_CONFLICTS: Final = 5
"""How often a change is tried again when somebody else changes the same note."""
_PAGE: Final = 200


@dataclass(frozen=True, slots=True)
class Viewer:
    """On whose behalf notes are looked at: a user of a tenant, or, with None, whoever runs the agents."""

    user: str | None = ""
    tenant: str | None = ""

    def sees(self, note: Note) -> bool:
        """Whether the note may be known to them."""
        if self.tenant not in (None, note.circle.tenant):
            return False
        return self.user is None or note.seen_from(replace(note.circle, user=self.user))

    def changes(self, note: Note) -> bool:
        """Whether they may change it: what is for all users is not one user's to change."""
        return self.user is None or (note.scope == "user" and note.circle.user == self.user)


EVERYBODY: Final = Viewer(None, None)
"""Whoever runs the agents."""


class Memory:
    """The notes of an app's agents.

    Args:
        store: Where they are kept.
        mask: Takes known secrets out of a text.
        clock: Seconds since the epoch.
    """

    def __init__(
        self, store: NoteStore, mask: Callable[[str], str], clock: Callable[[], float]
    ) -> None:
        self._store = store
        self._mask = mask
        self._clock = clock

    async def list(
        self,
        viewer: Viewer,
        *,
        agent: str | None = None,
        status: NoteStatus | None = None,
        run_id: str | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> tuple[list[Note], str | None]:
        """A page of notes that have not run out, newest first, and the cursor of the next page.

        Args:
            viewer: On whose behalf.
            agent: Only notes of this agent.
            status: Only notes of this status.
            run_id: Only notes from this run.
            cursor: Where the page begins, as an earlier page gave it.
            limit: Notes on the page.
        """
        wanted = NoteFilter(agent, viewer.user, viewer.tenant, status, run_id, self._clock())
        return await self._store.notes(wanted, cursor=cursor, limit=limit)

    async def get(self, note_id: str, viewer: Viewer) -> Note:
        """One note.

        Raises:
            RequestError: `unknown_note` (404): there is none that the viewer may know of.
        """
        found = await self._store.note(note_id)
        if found is None or not found.live(self._clock()) or not viewer.sees(found):
            raise RequestError("unknown_note", f"There is no note {note_id!r}.", status=404)
        return found

    async def edit(
        self, note_id: str, change: NoteChange, viewer: Viewer, *, by: str = "client"
    ) -> Note:
        """Change a note; a changed text counts as confirmed.

        Confirming a note that was to take the place of another one takes that one out of force.

        Args:
            note_id: Which.
            change: What is to be different.
            viewer: On whose behalf.
            by: Who changes it.

        Raises:
            RequestError: `unknown_note` (404), `not_yours` (403), `invalid_note`.
            ConflictError: Others change it all the time.
        """
        change = self._checked(change)
        for attempt in range(MAX_CONFLICTS):
            note = await self._own(note_id, viewer)
            now = self._clock()
            after = changed(note, change, by=by, at=now)
            before = (
                await self._store.note(note.supersedes) if after.status == "confirmed" else None
            )
            replaced = before is not None and before.shown(now)
            retired = [retire(before, now)] if before is not None and replaced else []
            try:
                await self._store.save_notes([after, *retired])
            except ConflictError:
                if attempt == MAX_CONFLICTS - 1:
                    raise
            else:
                return after
        raise AssertionError  # the last attempt returns or raises

    async def delete(self, note_id: str, viewer: Viewer) -> None:
        """Remove a note for good, with the earlier ones whose place it took.

        Raises:
            RequestError: `unknown_note` (404), `not_yours` (403).
        """
        note = await self._own(note_id, viewer)
        gone = [note.id]
        earlier = await self._store.note(note.supersedes)
        while earlier is not None and earlier.status == "superseded" and earlier.id not in gone:
            gone.append(earlier.id)
            earlier = await self._store.note(earlier.supersedes)
        await self._store.delete_notes(gone)

    async def export(self, viewer: Viewer, *, agent: str | None = None) -> AsyncIterator[Note]:
        """Every note that the viewer may know of, newest first, history and pending ones included."""
        cursor = None
        while True:
            rows, cursor = await self.list(viewer, agent=agent, cursor=cursor, limit=_PAGE)
            for one in rows:
                yield one
            if cursor is None:
                return

    async def _own(self, note_id: str, viewer: Viewer) -> Note:
        note = await self.get(note_id, viewer)
        if not viewer.changes(note):
            text = "This note is for all users of the agent; only whoever runs the agents may change it."
            raise RequestError("not_yours", text, status=403)
        return note

    def _checked(self, change: NoteChange) -> NoteChange:
        if change == NoteChange():
            raise _invalid("", "say what is to be different: note, type or confirmed")
        if change.text is None:
            return change
        text = clean(change.text, self._mask)
        if not text or len(text) > MAX_NOTE_CHARS:
            raise _invalid("/note", f"must have 1 to {MAX_NOTE_CHARS} characters")
        return replace(change, text=text)


def _invalid(pointer: str, detail: str) -> RequestError:
    errors = [{"pointer": pointer, "detail": detail}]
    return RequestError("invalid_note", f"The note cannot be changed: {detail}.", errors=errors)
