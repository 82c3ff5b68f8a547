"""What a store keeps of conversations; a part of `ports.Store`.

Messages come in with the commits of runs and in no other way: `core.conversation.newly_said` tells which, so a run
and its conversation never disagree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from loopagent.core.conversation import Said


@dataclass(frozen=True, slots=True)
class ConversationRow:
    """A conversation of a user. Ids are the user's own: the same id of another user is another conversation.

    The same user name in another tenant is another user.
    """

    id: str
    user: str
    tenant: str
    title: str
    """The beginning of its first task."""
    created_at: float
    updated_at: float
    messages: int
    """How many it holds."""
    last: int
    """Number of the last one that was said; more than `messages` when runs were deleted."""
    active: tuple[str, ...] = ()
    """Ids of its root runs that have not ended: the one that is going on, then those that wait their turn."""


class ConversationStore(Protocol):
    """Keeps conversations, each for one user of a tenant. All methods take both and see nobody else's."""

    async def conversations(
        self, *, user: str, tenant: str, cursor: str | None = None, limit: int = 50
    ) -> tuple[list[ConversationRow], str | None]:
        """A page of the user's conversations, the newest first, and the cursor of the next page."""
        ...

    async def conversation(
        self, user: str, conversation: str, *, tenant: str
    ) -> ConversationRow | None:
        """One conversation of the user, or None."""
        ...

    async def said(
        self, user: str, conversation: str, *, tenant: str, first: int = 1, last: int | None = None
    ) -> list[Said]:
        """Messages with numbers from `first` to `last`, both included, oldest first."""
        ...

    async def delete_conversation(self, user: str, conversation: str, *, tenant: str) -> bool:
        """Remove a conversation with its messages and its runs; False if there is none.

        Raises:
            RequestError: `conversation_busy` (409), one of its runs has not ended.
        """
        ...
