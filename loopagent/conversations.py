"""Conversations: runs that follow each other, at most one of them going on, and what was said in them.

A conversation belongs to the user, and the tenant, it was begun for. Every look-up names both, and the same id of
another user is another conversation, so there is no way from one to the other.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal, get_args

from loopagent.core.events import CancelRequested
from loopagent.errors import RequestError
from loopagent.intake import check_choice
from loopagent.ports import NOTHING, Handed
from loopagent.runtime.line import Past


if TYPE_CHECKING:
    from collections.abc import Callable

    from loopagent.conversation_port import ConversationRow
    from loopagent.core.agent_spec import AgentSpec
    from loopagent.core.conversation import Said
    from loopagent.core.state import RunState
    from loopagent.ports import Store
    from loopagent.runtime.engine import Engine

OnBusy = Literal["reject", "enqueue", "interrupt"]
"""What becomes of a run whose conversation has one that has not ended: it is refused, it waits, it takes its place."""
MAX_NAME_CHARS = 200
"""Length of a conversation's id and of a user's name."""
MAX_TRIES = 20
"""How often an interrupting run tries to be the next before it gives up."""
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]*")


class Conversations:
    """The conversations in a store.

    Args:
        store: Where they are kept.
        engine: Runs what they consist of.
        clock: Seconds since the epoch.
    """

    def __init__(self, store: Store, engine: Engine, clock: Callable[[], float]) -> None:
        self._store = store
        self._engine = engine
        self._clock = clock
        self._line = engine.line

    async def begin(
        self,
        state: RunState,
        message: str,
        *,
        by: str,
        metadata: dict[str, Any] | None,
        on_busy: OnBusy,
        given: Handed = NOTHING,
    ) -> None:
        """Create a run, in its conversation if it continues one.

        Args:
            state: The run; an empty `conversation` continues none.
            message: Its task.
            by: Who starts it.
            metadata: Anything to find it by.
            on_busy: What to do when another run of the conversation has not ended. `interrupt` cancels that one and
                those that wait.
            given: Texts and files that it is given.

        Raises:
            RequestError: `invalid_on_busy`, `invalid_conversation`, `invalid_user`, `conversation_busy` (409).
        """
        check_choice("on_busy", on_busy, get_args(OnBusy))
        _check(state)
        state.spec = _with_tools(state.spec, state.conversation)
        for _ in range(MAX_TRIES):
            past = await self._line.past(state) if state.conversation else Past()
            try:
                await self._engine.create(
                    state, message, by=by, metadata=metadata, given=given, **past._asdict()
                )
            except RequestError as error:
                if error.code != "conversation_busy" or on_busy == "reject":
                    raise
            else:
                return
            if on_busy == "enqueue":
                await self._engine.create(
                    state, message, by=by, metadata=metadata, queued=True, given=given
                )
                self._line.hold(state)
                await self._line.let_in(state)
                return
            await self._interrupt(state)
        text = "Other runs of this conversation are started all the time; try again."
        raise RequestError("conversation_busy", text, status=409, retryable=True)

    async def _interrupt(self, state: RunState) -> None:
        row = await self._store.conversation(state.user, state.conversation, tenant=state.tenant)
        reason = f"Run {state.id} takes its place in the conversation."
        for run_id in reversed(row.active if row else ()):
            event = CancelRequested(self._clock(), reason)
            await self._engine.bring(run_id, lambda _, event=event: [event])  # type: ignore[misc]

    async def page(
        self, *, user: str = "", tenant: str = "", cursor: str | None = None, limit: int = 50
    ) -> tuple[list[ConversationRow], str | None]:
        """A page of a user's conversations, the newest first, and the next cursor."""
        return await self._store.conversations(user=user, tenant=tenant, cursor=cursor, limit=limit)

    async def get(self, conversation: str, *, user: str = "", tenant: str = "") -> ConversationRow:
        """One conversation of a user.

        Raises:
            RequestError: `unknown_conversation` (404).
        """
        found = await self._store.conversation(user, conversation, tenant=tenant)
        if found is None:
            raise _unknown(conversation)
        return found

    async def messages(
        self,
        conversation: str,
        *,
        user: str = "",
        tenant: str = "",
        after: int = 0,
        limit: int = 100,
    ) -> list[Said]:
        """Messages of a user's conversation with numbers above `after`, oldest first.

        Raises:
            RequestError: `unknown_conversation` (404).
        """
        await self.get(conversation, user=user, tenant=tenant)
        first = max(0, after) + 1
        return await self._store.said(
            user, conversation, tenant=tenant, first=first, last=first + limit - 1
        )

    async def delete(self, conversation: str, *, user: str = "", tenant: str = "") -> None:
        """Remove a conversation with everything that was said in it, and its runs.

        Raises:
            RequestError: `unknown_conversation` (404), `conversation_busy` (409).
        """
        if not await self._store.delete_conversation(user, conversation, tenant=tenant):
            raise _unknown(conversation)


def _check(state: RunState) -> None:
    """Refuse names that cannot be used.

    Raises:
        RequestError: `invalid_conversation`, `invalid_user`.
    """
    name = state.conversation
    if name and (len(name) > MAX_NAME_CHARS or not _ID.fullmatch(name)):
        text = (
            f"The id of a conversation has at most {MAX_NAME_CHARS} letters, digits and . _ : @ -,"
            " and begins with a letter or digit."
        )
        raise RequestError("invalid_conversation", text)
    if any(
        len(one) > MAX_NAME_CHARS or not one.isprintable() for one in (state.user, state.tenant)
    ):
        text = f"The name of a user or tenant has at most {MAX_NAME_CHARS} characters, all of them printable."
        raise RequestError("invalid_user", text)


def _with_tools(spec: AgentSpec, conversation: str) -> AgentSpec:
    """The definition, with the conversation tools that a run in a conversation has unless the agent says otherwise."""
    if not conversation or spec.conversation_tools is not None:
        return spec
    return spec.model_copy(update={"conversation_tools": True})


def _unknown(conversation: str) -> RequestError:
    return RequestError(
        "unknown_conversation", f"There is no conversation {conversation!r}.", status=404
    )
