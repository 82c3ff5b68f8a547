"""Notes as they go over the wire."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from loopagent.http.body import Body, View
from loopagent.memory import MAX_NOTE_CHARS


class NoteView(View):
    """A note that an agent keeps, and where it comes from."""

    id: str
    note: str
    type: Literal["Preference", "Context"]
    scope: Literal["user", "agent"]
    """Whom it is for: the user, or all users of the agent."""
    status: Literal["provisional", "confirmed", "pending", "superseded"]
    """Runs are shown provisional and confirmed notes; a pending one waits for a person."""
    agent: str
    user: str
    tenant: str
    created_at: float
    updated_at: float
    expires_at: float | None = None
    """When it is forgotten, unless somebody confirms it."""
    run_id: str
    """The run that wrote it."""
    turn: int
    model: str
    reasons: list[str]
    """Why it is pending."""
    supersedes: str
    """The note whose place it took, or takes once it is confirmed."""
    edited_by: str
    revision: int


class NotePage(View):
    """A page of notes."""

    notes: list[NoteView]
    next_cursor: str | None = None


class EditNote(Body):
    """What is to be different about a note."""

    note: str | None = Field(default=None, min_length=1, max_length=MAX_NOTE_CHARS)
    """The text; changing it confirms the note."""
    type: Literal["Preference", "Context"] | None = None
    confirmed: bool | None = None
    """True keeps it for good and shows it to runs; false puts it aside."""
