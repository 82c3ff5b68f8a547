"""A curl command that becomes a draft: looked at first, with what was secret as names."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from loopagent.actions.importing.curl import FromCurl, import_curl
from loopagent.actions.importing.keeping import plain
from loopagent.actions.importing.texts import yaml_text
from loopagent.actions.preview import preview
from loopagent.actions.reading import read_action
from loopagent.errors import ActionError, ConfigError, RequestError
from loopagent.web.drafts import save_new, secrets_named, shown_error
from loopagent.web.posts import Fields, fields_of, one
from loopagent.web.shared import pages_of


router = APIRouter(include_in_schema=False)


@router.get("/actions/new/curl")
async def ask_for_curl(request: Request) -> Response:
    """A place to paste a command."""
    return _page(request, {})


@router.post("/actions/new/curl")
async def take_curl(request: Request) -> Response:
    """Show what comes of a command, or save what was looked at."""
    sent = await fields_of(request)
    if one(sent, "do") == "save":
        return await save_new(request, sent, lambda error: _again(request, sent, error))
    try:
        made = import_curl(one(sent, "command"), one(sent, "name").strip())
    except ConfigError as error:
        # What was typed stays, so that it can be put right.
        typed = {"command": one(sent, "command"), "name": one(sent, "name")}
        return _page(request, {**typed, "error": shown_error(error)}, status=422)
    return _page(request, await _looked_at(request, made))


async def _looked_at(request: Request, made: FromCurl) -> dict[str, Any]:
    """What the page shows of a command; the command itself, which may hold secrets, is not among it."""
    return {
        "made": made.action,
        "text": yaml_text(plain(made.action)),
        "notes": made.notes,
        "secrets": await secrets_named(request, made.secrets),
        "shown": _sends(made.action),
    }


def _sends(action: dict[str, Any]) -> dict[str, Any]:
    file = read_action(action).action
    try:
        return {} if file is None else preview(file, {})
    except ActionError as error:
        return {"error": str(error)}


def _again(request: Request, sent: Fields, error: RequestError) -> Response:
    typed = {"text": one(sent, "text"), "name": one(sent, "name")}
    return _page(request, {**typed, "error": str(error)}, status=error.status)


def _page(request: Request, context: dict[str, Any], status: int = 200) -> Response:
    return pages_of(request).page(request, "import_curl.html", context, status=status)
