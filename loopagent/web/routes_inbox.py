"""The inbox, and the card of each request. Everything works as plain forms; scripts only make it quicker."""

from __future__ import annotations

import json
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from loopagent.app import App
from loopagent.errors import RequestError
from loopagent.ports import RequestRow
from loopagent.request_view import preview_of
from loopagent.web.cards import KINDS, RISKS, Card, card_of
from loopagent.web.markdown import render as markdown
from loopagent.web.posts import Fields, fields_of, one
from loopagent.web.questions import values_of
from loopagent.web.shared import app_of, caller_of, pages_of


STATUSES = ("open", "resolved", "expired", "cancelled", "all")
PAGE_ROWS = 100
router = APIRouter(include_in_schema=False)


@router.get("/")
async def inbox(request: Request) -> Response:
    """The open requests, those with a deadline first; filters are in the address."""
    asked = request.query_params
    status = asked.get("status", "open")
    if status not in STATUSES:
        status = "open"
    rows, following = await app_of(request).requests(
        status=None if status == "all" else status,
        tenant=caller_of(request).tenant,
        cursor=asked.get("cursor"),
        limit=PAGE_ROWS,
    )
    cards = [card_of(row) for row in rows]
    agents = sorted({card.row.agent for card in cards})
    shown = [card for card in cards if _wanted(card, asked)]
    shown.sort(key=lambda card: (card.expires_at or float("inf"), card.row.created_at))
    context = {
        "cards": shown,
        "kinds": KINDS,
        "risks": RISKS,
        "statuses": STATUSES,
        "agents": agents,
        "asked": {**asked, "status": status},
        "following": following,
    }
    return pages_of(request).page(request, "inbox.html", context)


def _wanted(card: Card, asked: Any) -> bool:
    words = asked.get("q", "").lower()
    return (
        asked.get("kind", card.kind) in {card.kind, ""}
        and asked.get("risk", card.risk) in {card.risk, ""}
        and asked.get("agent", card.row.agent) in {card.row.agent, ""}
        and (words in card.title.lower() or words in card.who.lower())
    )


@router.get("/requests/{request_id}")
async def show_card(request: Request, request_id: str) -> Response:
    """One request; one that was answered stays readable with who, when and what."""
    row = await _row(app_of(request), request_id)
    return await _card_page(request, await _card(request, row))


async def _card(
    request: Request, row: RequestRow, sent: Fields | None = None, **refused: Any
) -> Card:
    """A request as whoever asks sees it."""
    preview = await preview_of(app_of(request), row)
    return card_of(row, sent, who=caller_of(request), preview=preview, **refused)


async def _row(app: App, request_id: str) -> RequestRow:
    row = await app.store.request(request_id)
    if row is None:
        raise RequestError("unknown_request", f"There is no request {request_id!r}.", status=404)
    return row


async def _card_page(request: Request, card: Card, status: int = 200) -> Response:
    run = await app_of(request).get(card.row.run_id)
    context = {"card": card, "run": run.public()}
    return pages_of(request).page(request, "request.html", context, status=status)


@router.post("/requests/{request_id}")
async def decide(request: Request, request_id: str) -> Response:
    """Take a decision; what was typed stays on the page when it is refused."""
    app = app_of(request)
    sent = await fields_of(request)
    row = await _row(app, request_id)
    try:
        answer = _answer(row, sent)
        who = caller_of(request)
        await app.answer(request_id, **answer, by=who.by, who=who)
    except RequestError as error:
        row = await _row(app, request_id)
        fields = {
            where["pointer"].rpartition("/values/")[2]: where["detail"] for where in error.errors
        }
        card = await _card(request, row, sent, error=str(error), errors=fields)
        return await _card_page(request, card, error.status)
    return RedirectResponse(f"/requests/{request_id}?decided=1", 303)


def _answer(row: RequestRow, sent: Fields) -> dict[str, Any]:
    """The fields of a card as the arguments of `App.answer`.

    Raises:
        RequestError: `bad_form` (400), `no_feedback` or `bad_json` (422).
    """
    decision, revision = one(sent, "decision"), one(sent, "revision")
    if not decision:
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
        "revision": int(revision) if revision.isdigit() else None,
        "content_hash": one(sent, "contentHash") or None,
        "remember": one(sent, "remember") if decision == "approve" else "",
    }


def _edited(row: RequestRow, sent: Fields) -> Any:
    """What replaces the content that was shown, or None when nothing was changed."""
    if "edited" not in sent or one(sent, "use_edited") != "yes":
        return None
    text = one(sent, "edited")
    if row.body.get("kind") == "plan":
        return text
    try:
        return json.loads(text)
    except ValueError as error:
        message = f"The parameters are not JSON: {error}."
        raise RequestError("bad_json", message, status=422) from error


@router.post("/preview")
async def preview(request: Request) -> Response:
    """Markdown as it will be shown."""
    sent = await fields_of(request)
    context = {"html": markdown(one(sent, "edited"))}
    return pages_of(request).page(request, "preview.html", context)
