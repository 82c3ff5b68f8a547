"""Inline tools: artifacts, the conversation, memory."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, StrictBool

from loopagent.core.protocol.base import NonBlank, Params, Whole, Wire


NOTE_TYPES = ("Preference", "Context")
"""What a model is asked for; a note of another type costs that note, not the reply."""


class ArtifactToolCall(Wire):
    """Look into an artifact without loading it whole."""

    artifact_id: NonBlank
    """Letter handle."""
    tool: NonBlank
    """Name of the tool; `get_full` always works."""
    input: Params = {}
    """Its arguments."""


class ConversationInput(Wire):
    """Arguments of a conversation tool; each tool uses some of them."""

    sequence: Whole | None = None
    """Number of the message, for getMessageBySequence."""
    start_sequence: Whole | None = None
    """First message, included."""
    end_sequence: Whole | None = None
    """Last message, included."""
    query: str | None = None
    """What to look for, for searchConversation."""
    is_regex: StrictBool = False
    """Whether the query is a regular expression."""
    role: Literal["User", "AI"] | None = None
    """Only what this side said."""
    max_results: Whole | None = None
    """Most matches; 20 unless said."""
    lens: str | None = None
    """What a summary should look for, for summarizeRange."""


class ConversationToolCall(Wire):
    """Look something up in the stored conversation."""

    tool: Literal[
        "getMessageBySequence", "getMessagesByRange", "searchConversation", "summarizeRange"
    ]
    """Which tool."""
    input: ConversationInput = Field(default_factory=ConversationInput)
    """Its arguments."""


class MemoryWriteRequest(Wire):
    """A note that later runs will see."""

    note: NonBlank = Field(max_length=2000)
    """One statement that stands on its own."""
    type: NonBlank = Field(max_length=100, json_schema_extra={"enum": list(NOTE_TYPES)})
    """Preference: how somebody wants things; Context: a fact. A note of another type is not kept."""
    scope_hint: Literal["user", "agent"] | None = None
    """May narrow the scope, never widen it."""
