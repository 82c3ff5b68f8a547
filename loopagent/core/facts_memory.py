"""Public events about notes that agents keep from run to run."""

from __future__ import annotations

from typing import Any

from loopagent.core.facts import FactData
from loopagent.core.notes import Disposition, NoteScope


class MemoryWritten(FactData):
    """A reply asked for a note to be kept; `disposition` says what became of it."""

    fact = "memory.written"
    call_id: str
    """Id of the effect."""
    disposition: Disposition | None = None
    """What became of it; absent when the store could not say."""
    note: str
    """The note, without secrets."""
    type: str
    """Preference or Context."""
    id: str | None = None
    """Id of the note that was kept."""
    scope: NoteScope | None = None
    """Who it is for: the run's user, or all users of the agent."""
    reason: str | None = None
    """Why it was not kept as it is."""
    error: dict[str, Any] | None = None
    """What went wrong."""


class MemoryRead(FactData):
    """A run is shown notes of earlier runs."""

    fact = "memory.read"
    notes: list[str]
    """Ids of the notes, most relevant first."""
    error: dict[str, Any] | None = None
    """Why none could be read; the run goes on without."""
