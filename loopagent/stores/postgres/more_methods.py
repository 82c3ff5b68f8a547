"""The part of the PostgreSQL store that keeps conversations, and lets go of what has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from loopagent.stores import records
from loopagent.stores.postgres import conversations, reads, removal
from loopagent.stores.sql.tables import NoSuchTextError


if TYPE_CHECKING:
    from loopagent.conversation_port import ConversationRow
    from loopagent.core.conversation import Said
    from loopagent.stores.postgres.connections import Connections, Work

T = TypeVar("T")


class Finding:
    """Looking things up by texts from outside."""

    _connections: Connections

    async def _find(self, nothing: T, work: Work[T]) -> T:
        """Look for something by a text that may be in no database."""
        try:
            return await self._connections.run(work)
        except NoSuchTextError:
            return nothing


class PostgresConversations(Finding):
    """Keeps conversations in the database of a store; see `ConversationStore`."""

    async def conversations(
        self, *, user: str, tenant: str, cursor: str | None = None, limit: int = 50
    ) -> tuple[list[ConversationRow], str | None]:
        """A page of a user's conversations; see `Store.conversations`."""
        before, size = records.decode_cursor("conversations", cursor), records.page_size(limit)
        whose = (tenant, user)
        return await self._find(
            ([], None), lambda db, _: conversations.conversations(db, whose, before, size)
        )

    async def conversation(
        self, user: str, conversation: str, *, tenant: str
    ) -> ConversationRow | None:
        """One conversation of a user; see `Store.conversation`."""
        whose = (tenant, user, conversation)
        return await self._find(None, lambda db, _: conversations.conversation(db, whose))

    async def said(
        self, user: str, conversation: str, *, tenant: str, first: int = 1, last: int | None = None
    ) -> list[Said]:
        """Messages of a conversation; see `Store.said`."""
        whose = (tenant, user, conversation)
        return await self._find([], lambda db, _: conversations.said(db, whose, first, last))

    async def delete_conversation(self, user: str, conversation: str, *, tenant: str) -> bool:
        """Remove a conversation with its runs; see `Store.delete_conversation`."""
        whose = (tenant, user, conversation)
        return await self._find(False, lambda db, _: removal.delete_conversation(db, whose))


class PostgresRetention(Finding):
    """Lets go of what has ended; see `RetentionStore`."""

    async def delete(self, run_id: str) -> bool:
        """Remove an ended run and its children; see `Store.delete`."""
        return await self._find(False, lambda db, _: removal.delete(db, run_id))

    async def ended(self, *, before: float, logged: bool = False, limit: int = 100) -> list[str]:
        """Root runs whose whole tree has ended; see `RetentionStore.ended`."""
        return await self._connections.run(lambda db, _: reads.ended(db, before, limit, logged))

    async def forget_log(self, run_id: str) -> bool:
        """Remove the log of an ended run; see `RetentionStore.forget_log`."""
        return await self._find(False, lambda db, _: removal.forget_log(db, run_id))

    async def oldest_event(self, run_id: str) -> int:
        """Number of the first event that is kept; see `RetentionStore.oldest_event`."""
        return await self._find(1, lambda db, _: reads.oldest_event(db, run_id))
