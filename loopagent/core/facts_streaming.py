"""Events of a reply while it arrives, and of calls that began before it was complete."""

from __future__ import annotations

from typing import Any, Literal

from loopagent.core.facts import FactData


class ReplyDelta(FactData):
    """A piece of the reply that is arriving: more of a text, or a value that is complete.

    The texts of a field, joined in order since the last `reply.retracted`, are its text.
    """

    fact = "reply.delta"
    ephemeral = True
    call_id: str
    """The model call that the reply answers."""
    attempt: int = 1
    """Which attempt at the call; a new one starts anew."""
    field: str
    """`message`, `reasoning`, `taskComplete`, `nextStep.type`, `nextStep.plan`, or a list like `nextStep.actions`."""
    index: int | None = None
    """Which entry, where the field is a list."""
    text: str | None = None
    """What came of a text."""
    value: Any = None
    """A value that is complete."""
    done: bool = False
    """Nothing more of it follows."""
    truncated: bool = False
    """Nothing more of it follows, although it is not complete."""
    role: Literal["narration", "answer", "question"] | None = None
    """Of a message: what it is as far as is known; `reply.received` has the last word."""


class ReplySnapshot(FactData):
    """What was shown so far of the reply that is arriving, for a client that comes late or fell behind."""

    fact = "reply.snapshot"
    ephemeral = True
    call_id: str
    attempt: int = 1
    fields: list[dict[str, Any]]
    """Each field as one `reply.delta` would show it; what follows is appended."""


class ReplyRetracted(FactData):
    """What was shown of a reply does not hold: of these fields, or of all when none is named."""

    fact = "reply.retracted"
    ephemeral = True
    call_id: str
    attempt: int = 1
    reason: Literal["retry", "fallback", "refused", "truncated", "interrupted", "corrected"]
    fields: list[str] | None = None


class ActionDiscarded(FactData):
    """A call that only reads began while the reply arrived, and is not what the reply asks for in the end."""

    fact = "action.discarded"
    call_id: str
    """The place where it stood in the reply; the call that the reply asks for there may have the same id."""
    action: str
    params: dict[str, Any]
    reason: Literal["refused", "truncated", "retry", "changed", "not_asked", "waits", "interrupted"]
    """`waits`: the reply asks for it, but first a person is asked; it is made when they have answered."""
    running_ms: float = 0.0
    """How long it had run when it was cancelled, or ran until it ended."""
