"""Conversations: list, look at, read, remove. Each request says for which user of which tenant."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query

from loopagent.http.access import Who
from loopagent.http.body import View
from loopagent.http.models import listed
from loopagent.http.problems import responses
from loopagent.http.routes_runs import MAX_PAGE, Host


router = APIRouter(tags=["conversations"])
ConversationId = Annotated[
    str, Path(max_length=200, description="Id of a conversation of the user.")
]


def whose(
    who: Who,
    user: Annotated[
        str, Query(max_length=200, description="Whose conversations; those of others do not exist.")
    ] = "",
    tenant: Annotated[str, Query(max_length=200, description="The user's organisation.")] = "",
) -> dict[str, str]:
    """Whose conversations a request is about.

    Raises:
        RequestError: `forbidden` (403), the caller's key is of another user or tenant.
    """
    user, tenant = who.whose(user, tenant)
    return {"user": user, "tenant": tenant}


Whose = Annotated[dict[str, str], Depends(whose)]


class ConversationView(View):
    """A conversation."""

    id: str
    user: str
    tenant: str
    title: str
    """The beginning of its first task."""
    created_at: float
    """Seconds since the epoch."""
    updated_at: float
    messages: int
    """How many it holds."""
    last: int
    """Number of the last message; more than `messages` when runs were deleted."""
    active: list[str]
    """Runs that have not ended: the one that is going on, then those that wait their turn."""


class ConversationPage(View):
    """A page of conversations, newest first."""

    conversations: list[ConversationView]
    next_cursor: str | None = None


class SaidView(View):
    """One message of a conversation."""

    sequence: int
    """Its number; never given to another message."""
    role: str
    """`User` or `AI`."""
    text: str
    run_id: str
    at: float
    """Seconds since the epoch."""


class SaidPage(View):
    """Messages in order."""

    messages: list[SaidView]
    next_after: int
    """Pass as `after` for the next page."""


@router.get("/conversations", responses=responses(400, 401, 403, 422, 503))
async def list_conversations(
    app: Host,
    place: Whose,
    cursor: Annotated[str | None, Query(max_length=500)] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = 50,
) -> ConversationPage:
    """List a user's conversations, newest first."""
    rows, following = await app.conversations.page(**place, cursor=cursor, limit=limit)
    views = [ConversationView(**listed(one)) for one in rows]
    return ConversationPage(conversations=views, next_cursor=following)


@router.get("/conversations/{conversation_id}", responses=responses(401, 403, 404, 422, 503))
async def show_conversation(
    app: Host, conversation_id: ConversationId, place: Whose
) -> ConversationView:
    """Look at a conversation."""
    found = await app.conversations.get(conversation_id, **place)
    return ConversationView(**listed(found))


@router.get(
    "/conversations/{conversation_id}/messages", responses=responses(401, 403, 404, 422, 503)
)
async def read_conversation(
    app: Host,
    conversation_id: ConversationId,
    place: Whose,
    *,
    after: Annotated[int, Query(ge=0, le=2**53)] = 0,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = 100,
) -> SaidPage:
    """Read what was said, in order."""
    found = await app.conversations.messages(conversation_id, **place, after=after, limit=limit)
    messages = [SaidView(**listed(one)) for one in found]
    return SaidPage(messages=messages, next_after=messages[-1].sequence if messages else after)


@router.delete(
    "/conversations/{conversation_id}",
    status_code=204,
    responses=responses(401, 403, 404, 409, 422, 503),
)
async def delete_conversation(app: Host, conversation_id: ConversationId, place: Whose) -> None:
    """Remove a conversation with everything that was said in it, and its runs."""
    await app.conversations.delete(conversation_id, **place)
