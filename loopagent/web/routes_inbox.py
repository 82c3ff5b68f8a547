"""The inbox, and the card of each request. Everything works as plain forms; scripts only make it quicker."""

from __future__ import annotations

import json
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from loopagent.core.plan_card import difference
from loopagent.core.plan_state import PlanState
from loopagent.errors import RequestError
from loopagent.ports import RequestRow
from loopagent.request_view import preview_of
from loopagent.web import client_call
from loopagent.web.cards import KINDS, RISKS, Card, card_of
from loopagent.web.inbox_list import (
    HOLDERS,
    MOST_ROWS,
    SORTS,
    STATUSES,
    asked_of,
    filters_of,
    listing,
)
from loopagent.web.markdown import render as markdown
from loopagent.web.posts import Fields, fields_of, one
from loopagent.web.questions import values_of
from loopagent.web.shared import access_of, app_of, caller_of, pages_of, whole


UNITS = {
    "maxTurns": "turns",
    "maxSeconds": "seconds of work",
    "maxTokens": "tokens",
    "maxCostUsd": "US dollars",
}
WAITS = {3_600: "1 hour", 14_400: "4 hours", 86_400: "1 day", 259_200: "3 days", 604_800: "1 week"}
"""For how many seconds a request can be put off in the page."""
router = APIRouter(include_in_schema=False)


@router.get("/")
async def inbox(request: Request) -> Response:
    """The requests that an address asks for: the open ones, those with a deadline first, if it says nothing."""
    app, caller = app_of(request), caller_of(request)
    asked = asked_of(request.query_params)
    context = {
        "list": await listing(app, caller, asked),
        "views": await app.inbox.views(caller.person),
        "kinds": KINDS,
        "risks": RISKS,
        "statuses": STATUSES,
        "holders": HOLDERS,
        "sorts": SORTS,
        "asked": asked,
        "query": filters_of(asked),
    }
    return pages_of(request).page(request, "inbox.html", context)


@router.get("/requests/{request_id}")
async def show_card(request: Request, request_id: str) -> Response:
    """One request; one that was answered stays readable with who, when and what."""
    row = await app_of(request).inbox.row(request_id)
    return await _card_page(request, await _card(request, row))


async def _card(
    request: Request, row: RequestRow, sent: Fields | None = None, **refused: Any
) -> Card:
    """A request as whoever asks sees it."""
    preview = await preview_of(app_of(request), row)
    return card_of(row, sent, who=caller_of(request), preview=preview, **refused)


async def _card_page(request: Request, card: Card, status: int = 200) -> Response:
    run = await app_of(request).get(card.row.run_id)
    exclusive = access_of(request).settings.exclusive_claims
    free = card.row.holder in {"", caller_of(request).by}
    snoozed = await app_of(request).inbox.snoozed(caller_of(request).person)
    context = {
        "card": card,
        "run": run.public(),
        "limits": run.state.spec.limits,
        "bound": bool(run.state.client),
        "tool": run.state.spec.client_tool(str(card.row.body.get("tool"))),
        "mine": bool(card.row.holder) and free,
        "closed": exclusive and not free,
        "until": snoozed.get(card.row.id),
        "finished": run.state.succeeded,
        "revisions": await _revisions(request, card),
        "edit": _edit(card, run.state.plan),
        "units": UNITS,
        "waits": WAITS,
    }
    return pages_of(request).page(request, "request.html", context, status=status)


async def _revisions(request: Request, card: Card) -> list[RequestRow]:
    """The cards of a plan's revisions, oldest first."""
    if card.kind != "plan":
        return []
    rows, _ = await app_of(request).requests(status=None, run_id=card.row.run_id, limit=MOST_ROWS)
    return [one for one in rows if one.body.get("kind") == "plan"]


def _edit(card: Card, plan: PlanState) -> str:
    """How the text of a plan was changed by whoever approved it, as a diff; empty where that is not known any more."""
    if card.kind != "plan" or plan.revision != card.revision or not plan.edited:
        return ""
    return difference(card.text, plan.text, card.revision, labels=("proposed", "approved"))


@router.post("/requests/{request_id}")
async def decide(request: Request, request_id: str) -> Response:
    """Take a decision; what was typed stays on the page when it is refused."""
    app = app_of(request)
    sent = await fields_of(request)
    row = await app.inbox.row(request_id)
    try:
        await _take(request, row, sent)
    except RequestError as error:
        row = await app.inbox.row(request_id)
        if error.code == "already_resolved" and _same(row, sent, caller_of(request).by):
            return RedirectResponse(f"/requests/{request_id}?decided=1", 303)
        fields = {_field(where["pointer"]): where["detail"] for where in error.errors}
        card = await _card(request, row, sent, error=str(error), errors=fields)
        return await _card_page(request, card, error.status)
    return RedirectResponse(f"/requests/{request_id}?decided=1", 303)


async def _take(request: Request, row: RequestRow, sent: Fields) -> None:
    app, caller = app_of(request), caller_of(request)
    exclusive = access_of(request).settings.exclusive_claims
    if row.body.get("kind") == "client_tool":
        await client_call.answer(app, caller, row, sent, exclusive=exclusive)
    else:
        answer = _answer(row, sent)
        await app.answer(row.id, **answer, by=caller.by, who=caller, unless_held=exclusive)


def _same(row: RequestRow, sent: Fields, by: str) -> bool:
    """Whether this person has decided just that before: somebody clicked twice, or sent a page again."""
    done = row.resolution or {}
    if row.body.get("kind") == "client_tool":
        return row.holder == by and done.get("ok") is (one(sent, "decision") != "error")
    return done.get("by") == by and done.get("decision") == one(sent, "decision")


def _field(pointer: str) -> str:
    """Which question of a card a JSON Pointer into an answer is about."""
    whole = pointer.removeprefix("/values/").removeprefix("/result/")
    return whole.removeprefix("/") if whole != "/result" else client_call.WHOLE


def _answer(row: RequestRow, sent: Fields) -> dict[str, Any]:
    """The fields of a card as the arguments of `App.answer`.

    Raises:
        RequestError: `bad_form` (400), `no_feedback` or `bad_json` (422).
    """
    decision, revision = one(sent, "decision"), one(sent, "revision")
    if not decision or (revision and whole(revision) is None):
        raise RequestError("bad_form", "Choose one of the buttons.", status=400)
    tries_again = row.body.get("kind") != "limit" and not card_of(row).foreign
    if decision == "reject" and tries_again and not one(sent, "feedback").strip():
        message = "Say what should be different: the agent tries again with your feedback."
        raise RequestError("no_feedback", message, status=422)
    form = row.body.get("form")
    return {
        "decision": decision,
        "feedback": one(sent, "feedback"),
        "values": values_of(form, sent) if form and decision == "answer" else None,
        "edited": _edited(row, sent) if decision == "approve" else None,
        "revision": whole(revision),
        "content_hash": one(sent, "contentHash") or None,
        "remember": one(sent, "remember") if decision == "approve" else "",
    }


def _edited(row: RequestRow, sent: Fields) -> Any:
    """What replaces the content that was shown, or None when nothing was changed."""
    if row.body.get("kind") == "limit":
        return _amount(row, one(sent, "amount"))
    if "edited" not in sent or one(sent, "use_edited") != "yes":
        return None
    text = one(sent, "edited")
    if row.body.get("kind") == "plan":
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        message = f"The parameters are not JSON: {error}."
        raise RequestError("bad_json", message, status=422) from error


def _amount(row: RequestRow, text: str) -> dict[str, Any] | None:
    """How much is allowed instead of what was proposed, or None when that is the same."""
    (proposed,) = row.body["subject"]["params"].items()
    try:
        amount = json.loads(text or str(proposed[1]))
    except (ValueError, RecursionError) as error:
        message = f"How much is allowed must be a number, not {text!r}."
        raise RequestError("bad_json", message, status=422) from error
    return None if amount == proposed[1] else {proposed[0]: amount}


@router.post("/preview")
async def preview(request: Request) -> Response:
    """Markdown as it will be shown."""
    sent = await fields_of(request)
    context = {"html": markdown(one(sent, "edited"))}
    return pages_of(request).page(request, "preview.html", context)
