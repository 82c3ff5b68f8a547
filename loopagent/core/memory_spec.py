"""What an agent may keep from run to run, and how much of it a run is shown."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from loopagent.core.notes import NoteRules, NoteScope
from loopagent.core.spec import Spec


class MemorySpec(Spec):
    """Notes that an agent keeps across its runs; each belongs to the user whose run it comes from."""

    write: bool = True
    """Whether its replies may keep notes (`memoryWrites`); if not, it is only shown those there are."""
    types: tuple[Literal["Preference", "Context"], ...] = ("Preference", "Context")
    """Types of notes it may keep: how somebody wants things, and facts."""
    max_per_run: int = Field(default=5, ge=0)
    """Notes that one run may keep; repeats and corrections are not counted."""
    scope: NoteScope = "user"
    """Widest scope of a note that no person has looked at: `user`, or `agent` for all users of the agent. A reply may
    ask for less; more waits for a person."""
    lifetime_days: float | None = Field(default=7.0, gt=0)
    """How long a note is kept that no person confirms; null for ever."""
    similarity: float = Field(default=0.85, gt=0, le=1)
    """From which likeness on a note counts as the same as an earlier one; 1 is the same but for case and marks."""
    least_relevance: float = Field(default=0.25, ge=0, le=1)
    """From which cosine on a note is of use although it shares no word with the task; only with an embedding model."""
    max_tokens: int = Field(default=800, ge=0)
    """About how many tokens of notes a run is shown; 0 shows none."""
    max_shown: int = Field(default=50, ge=0)
    """Most notes that a run is shown."""

    @property
    def rules(self) -> NoteRules:
        """What bounds the writing of notes in a run."""
        days = self.lifetime_days
        lifetime_seconds = None if days is None else days * 86_400.0
        return NoteRules(
            self.types, self.max_per_run, self.scope, lifetime_seconds, self.similarity
        )
