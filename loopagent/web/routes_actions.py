"""The actions there are, and the beginning of a new one."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from loopagent.actions.build import FileAction
from loopagent.actions.importing.texts import yaml_text
from loopagent.errors import RequestError
from loopagent.library.editing.starters import KINDS, renamed_copy, starter
from loopagent.web.action_list import EFFECTS, STATES, Row, list_rows, wanted
from loopagent.web.posts import Fields, fields_of, one
from loopagent.web.shared import app_of, caller_of, pages_of, tenant_of


WRITE = "actions.write"
router = APIRouter(include_in_schema=False)


@router.get("/actions")
async def list_actions(request: Request) -> Response:
    """The actions of files and of the library; search and filters are in the address."""
    app, asked = app_of(request), dict(request.query_params)
    rows = await all_rows(request)
    context = {
        "rows": wanted(rows, asked),
        "all": len(rows),
        "kinds": sorted({row.facts.kind for row in rows if row.facts.kind}),
        "effects": EFFECTS,
        "states": STATES,
        "agents": sorted(app.agents),
        "asked": asked,
        "may_write": caller_of(request).may(WRITE),
    }
    return pages_of(request).page(request, "actions.html", context)


@router.get("/actions/new")
async def new_action(request: Request) -> Response:
    """What kinds there are, and other ways to begin."""
    return _new_page(request, {"name": [request.query_params.get("name", "")]})


async def all_rows(request: Request) -> list[Row]:
    """All actions, with who uses them."""
    app, tenant = app_of(request), tenant_of(request)
    built, live = await app.library.list(tenant), await app.library.definitions.all(tenant)
    return await asyncio.to_thread(list_rows, app.actions, app.agents, built, live)


def _new_page(request: Request, sent: Fields, error: RequestError | None = None) -> Response:
    source = one(sent, "from") or request.query_params.get("from", "")
    context = {
        "kinds": KINDS,
        "kind": one(sent, "kind") or "http",
        "name": one(sent, "name"),
        "source": source,
        "error": error,
    }
    return pages_of(request).page(
        request, "action_new.html", context, status=200 if error is None else error.status
    )


@router.post("/actions/new")
async def make_action(request: Request) -> Response:
    """Keep the first draft of a new action and open it."""
    sent = await fields_of(request)
    name = one(sent, "name").strip()
    try:
        text = await _first_text(request, sent, name)
        await app_of(request).library.save(
            tenant_of(request), name, text, expected_hash=None, by=caller_of(request).by
        )
    except RequestError as error:
        return _new_page(request, sent, _taken(error, name))
    return RedirectResponse(editor_of(name), 303)


def _taken(error: RequestError, name: str) -> RequestError:
    if error.code != "stale":
        return error
    text = f"There is an action {name!r} already; choose another name."
    return RequestError("taken", text, status=409)


async def _first_text(request: Request, sent: Fields, name: str) -> str:
    app, source, kind = app_of(request), one(sent, "from"), one(sent, "kind")
    if not source:
        if kind not in KINDS:
            raise RequestError("bad_form", "Choose one of the kinds.", status=400)
        return starter(kind, name)
    code = app.actions.get(source)
    if code is None:
        built = await app.library.get(tenant_of(request), source)
        return renamed_copy(built.draft, name)
    return renamed_copy(text_of_file(code), name)


def text_of_file(action: Any) -> str:
    """The text of an action that comes from a file.

    Raises:
        RequestError: `not_a_file`: it is Python, which has no text to copy.
    """
    if not isinstance(action, FileAction):
        text = f"{action.spec.name!r} is written in Python, so there is no text to copy."
        raise RequestError("not_a_file", text)
    return yaml_text(action.file.model_dump(mode="json", by_alias=True, exclude_unset=True))


def editor_of(name: str) -> str:
    """Where the editor of an action is."""
    return f"/actions/{quote(name, safe='')}/edit"


def look_of(name: str) -> str:
    """Where an action is only looked at."""
    return f"/actions/{quote(name, safe='')}/look"


@router.get("/actions/{name}")
async def open_action(request: Request, name: str) -> Response:
    """Go to the page of an action: the editor for whoever may use it."""
    in_code = name in app_of(request).actions
    if not in_code:
        await app_of(request).library.get(tenant_of(request), name)
    edits = caller_of(request).may(WRITE) and not in_code
    return RedirectResponse(editor_of(name) if edits else look_of(name), 303)


@router.get("/actions/{name}/look")
async def look_at_action(request: Request, name: str) -> Response:
    """What an action is, for everybody; its text only for those who may write one."""
    app, may_write = app_of(request), caller_of(request).may(WRITE)
    asked = request.query_params.get("source")
    rows = [one for one in await all_rows(request) if one.name == name]
    row = next((one for one in rows if one.state == "file" or asked != "file"), None)
    if row is None:
        raise RequestError("unknown_action", f"There is no action {name!r}.", status=404)
    live = await app.library.definitions.all(tenant_of(request))
    action = app.actions.get(name) if row.state == "file" else live.get(name)
    text = text_of_file(action) if may_write and isinstance(action, FileAction) else ""
    context = {"row": row, "action": action, "text": text, "may_write": may_write}
    return pages_of(request).page(request, "action_look.html", context)
