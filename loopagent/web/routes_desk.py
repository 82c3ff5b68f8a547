"""What people do with requests beside deciding them: take care, put off, keep views, approve alike ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from loopagent.errors import RequestError
from loopagent.inbox import MAX_AT_ONCE, Seen, reads_only, tidied
from loopagent.web.cards import card_of
from loopagent.web.inbox_list import MOST_ROWS
from loopagent.web.posts import Fields, fields_of, one
from loopagent.web.shared import access_of, app_of, caller_of, pages_of, whole


if TYPE_CHECKING:
    from loopagent.access import Caller
    from loopagent.inbox import Inbox


HOLDING: Final = ("claim", "release", "assign")
router = APIRouter(include_in_schema=False)


@router.post("/requests/{request_id}/desk")
async def keep(request: Request, request_id: str) -> Response:
    """Take care of a request, give it to somebody, or put it off; then back to where the button was."""
    sent = await fields_of(request)
    do, inbox, caller = one(sent, "do"), app_of(request).inbox, caller_of(request)
    if do in HOLDING:
        await _hold(inbox, caller, request_id, sent)
    elif do == "snooze":
        seconds = one(sent, "seconds")
        later = app_of(request).now() + (whole(seconds) or 0)
        await inbox.snooze(caller.person, request_id, later)
    elif do == "wake":
        await inbox.wake(caller.person, request_id)
    else:
        raise RequestError("bad_form", "Choose one of the buttons.", status=400)
    if "back" in sent:
        return RedirectResponse(f"/?{tidied(one(sent, 'back'))}", 303)
    return RedirectResponse(f"/requests/{request_id}", 303)


async def _hold(inbox: Inbox, caller: Caller, request_id: str, sent: Fields) -> None:
    do, over = one(sent, "do"), one(sent, "over") == "yes"
    if do == "claim":
        await inbox.claim(request_id, by=caller.by, take_over=over)
    elif do == "release":
        await inbox.release(request_id, by=caller.by, take_over=over)
    else:
        await inbox.assign(request_id, one(sent, "to"), by=caller.by, take_over=over)


@router.post("/views")
async def change_views(request: Request) -> Response:
    """Keep the list that is looked at under a name, or remove a name."""
    sent = await fields_of(request)
    inbox, person = app_of(request).inbox, caller_of(request).person
    query = tidied(one(sent, "query"))
    if one(sent, "do") == "drop":
        await inbox.drop_view(person, one(sent, "name"))
    else:
        await inbox.keep_view(person, one(sent, "name"), query)
    return RedirectResponse(f"/?{query}", 303)


@router.get("/approve")
async def show_alike(request: Request) -> Response:
    """Every open call of an action that only reads, with exactly what would run."""
    name = request.query_params.get("action", "")
    rows, _ = await app_of(request).requests(tenant=caller_of(request).tenant, limit=MOST_ROWS)
    found = [card_of(row) for row in rows if name and reads_only(row.body) == name]
    context = {"action": name, "cards": found[:MAX_AT_ONCE], "total": len(found), "done": None}
    return pages_of(request).page(request, "approve.html", context)


@router.post("/approve")
async def approve_alike(request: Request) -> Response:
    """Approve those that were left ticked, each as it was shown."""
    sent = await fields_of(request)
    app, caller = app_of(request), caller_of(request)
    seen = [_seen(one) for one in sent.get("item", [])]
    for each in seen:
        await app.inbox.row(each.request_id, caller)
    done = await app.inbox.approve_alike(
        seen,
        by=caller.by,
        who=caller,
        unless_held=access_of(request).settings.exclusive_claims,
    )
    again = "/approve?" + urlencode({"action": one(sent, "action")})
    context = {"action": one(sent, "action"), "cards": [], "done": done, "again": again}
    return pages_of(request).page(request, "approve.html", context)


def _seen(item: str) -> Seen:
    """One ticked box: an id, a revision and a content hash.

    Raises:
        RequestError: `bad_form` (400).
    """
    request_id, *shown = item.rsplit("|", 2)
    revision = whole(shown[0]) if len(shown) == 2 else None  # noqa: PLR2004 - revision and hash
    if revision is None:
        raise RequestError("bad_form", "Open the list anew.", status=400)
    return Seen(request_id, revision, shown[1])
