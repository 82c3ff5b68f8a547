"""Inline tools: artifacts, the conversation, memory."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, StrictBool

from loopagent.core.protocol.base import Params, Wire


class ArtifactToolCall(Wire):
    """Look into an artifact without loading it whole."""

    artifact_id: str
    """Letter handle."""
    tool: str
    input: Params = {}


class ConversationInput(Wire):
    """Parameters of a conversation tool."""

    sequence: int | None = None
    start_sequence: int | None = None
    end_sequence: int | None = None
    query: str | None = None
    is_regex: StrictBool = False
    role: Literal["User", "AI"] | None = None
    max_results: int | None = None
    lens: str | None = None


class ConversationToolCall(Wire):
    """Look something up in the stored conversation."""

    tool: Literal[
        "getMessageBySequence", "getMessagesByRange", "searchConversation", "summarizeRange"
    ]
    input: ConversationInput = ConversationInput()


class MemoryWriteRequest(Wire):
    """A note that later runs will see."""

    note: str = Field(min_length=1, max_length=2000)
    """One statement."""
    type: Literal["Preference", "Context"]
    scope_hint: Literal["user", "agent"] | None = None
    """May narrow the scope, never widen it."""
