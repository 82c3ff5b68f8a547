"""The editor of an action: form and text of one document, what is wrong with it, and keeping it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from urllib.parse import quote

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from loopagent.actions.importing.texts import difference
from loopagent.errors import RequestError
from loopagent.library.editing.changing import Changed, changed
from loopagent.library.faults import StaleError
from loopagent.library.service import Library
from loopagent.library_port import Built
from loopagent.web.editor_view import form_context, remarks_of, secrets_of
from loopagent.web.posts import Fields, fields_of, one
from loopagent.web.routes_actions import all_rows, editor_of, look_of
from loopagent.web.shared import app_of, caller_of, pages_of, tenant_of


KEEPS = frozenset({"save", "publish", "document", "undocument"})
DOES = frozenset({"", "check", *KEEPS})
"""Buttons that are not about a row of the form."""
SAYINGS = {
    "saved": "The draft is saved.",
    "document": "The draft is saved with its documents.",
    "published": "It is published: new runs of the agents below get it.",
    "granted": "The agents are saved.",
    "retired": "It is retired: new runs do not get it any more.",
    "renamed": "It has its new name.",
    "again": "The older version is published again.",
}
router = APIRouter(include_in_schema=False)


@router.get("/actions/{name}/edit")
async def edit_action(request: Request, name: str) -> Response:
    """The editor; an action that is only in files or in Python can be looked at."""
    library, tenant = app_of(request).library, tenant_of(request)
    if name in app_of(request).actions and all(
        row.name != name for row in await library.list(tenant)
    ):
        return RedirectResponse(f"{look_of(name)}?source=file", 303)
    row = await library.get(tenant, name)
    return await editor_page(request, row, Changed(row.draft), {})


async def editor_page(
    request: Request,
    row: Built,
    made: Changed,
    sent: Fields,
    error: RequestError | None = None,
) -> Response:
    """The editor with a text that need not be saved."""
    library = app_of(request).library
    complaints = await library.lint(row.tenant, made.text, row.name)
    rows = await all_rows(request)
    form = await asyncio.to_thread(form_context, made, sent)  # reads the text, which may take long
    context = {
        **form,
        "row": row,
        "text": made.text,
        "hash": one(sent, "hash") or row.draft_hash,
        "unsaved": made.text != row.draft,
        "remarks": remarks_of(made.text, complaints),
        "wrong": sum(not each.warning for each in complaints),
        "listed": next((one for one in rows if one.name == row.name and one.state != "file"), None),
        "secrets": secrets_of(form["data"], library.secrets()),
        "servers": library.servers(),
        "known": sorted({one.name for one in rows}),
        "agents": library.agents(),
        "shadowed": library.is_shadowed(row.name),
        "saying": SAYINGS.get(request.query_params.get("done", ""), ""),
        "error": error,
    }
    status = 200 if error is None else error.status
    return pages_of(request).page(request, "action_edit.html", context, status=status)


@router.post("/actions/{name}/edit")
async def change_action(request: Request, name: str) -> Response:
    """Put the form into the text, then do what the button says: only look, keep it, or go on to publish it."""
    sent = await fields_of(request)
    library, tenant = app_of(request).library, tenant_of(request)
    text, (do, _, rest) = one(sent, "text"), one(sent, "do").partition(" ")
    if do == "check" and one(sent, "new.param").strip():
        do, rest = "add", "params"  # Enter, where the name of a new one stands
    button = "" if do in DOES else f"{do} {rest}"
    made = await asyncio.to_thread(changed, text, one(sent, "base") or text, sent, button)
    keeps = do in KEEPS and not made.errors and not made.problem
    if not keeps:
        return await editor_page(request, await _row(library, tenant, name, sent), made, sent)
    try:
        await library.save(
            tenant,
            name,
            made.text,
            expected_hash=one(sent, "hash"),
            by=caller_of(request).by,
            files=await _documents(library, (tenant, name), do, rest, sent),
        )
    except StaleError as error:
        return _conflict_page(request, name, made.text, error)
    except RequestError as error:
        row = await _row(library, tenant, name, sent)
        return await editor_page(request, row, made, sent, error)
    done = {"save": "saved", "publish": ""}.get(do, "document")
    return RedirectResponse(f"{editor_of(name)}?done={done}" if done else publishing_of(name), 303)


async def _documents(
    library: Library, whose: tuple[str, str], do: str, name: str, sent: Fields
) -> dict[str, str] | None:
    """The OpenAPI documents after a button about them was pressed; None when it is not about them."""
    if do not in {"document", "undocument"}:
        return None
    row = await _row(library, *whose, sent)
    files = dict(row.files)
    if do == "undocument":
        files.pop(name, None)
    else:
        files[one(sent, "document.name").strip()] = one(sent, "document.text")
    return files


async def _row(library: Library, tenant: str, name: str, sent: Fields) -> Built:
    try:
        return await library.get(tenant, name)
    except RequestError:
        if not one(sent, "hash"):
            raise
        return Built(
            tenant, name, "", ""
        )  # deleted meanwhile: what was typed is shown all the same


def _conflict_page(request: Request, name: str, text: str, error: StaleError) -> Response:
    current = error.current
    theirs = current.draft if current is not None else ""
    context = {
        "name": name,
        "text": text,
        "current": current,
        "difference": difference(theirs, text),
        "error": error,
    }
    return pages_of(request).page(request, "action_conflict.html", context, status=error.status)


def publishing_of(name: str) -> str:
    """Where an action is published."""
    return f"/actions/{quote(name, safe='')}/publish"


@router.post("/actions/{name}/manage")
async def manage_action(request: Request, name: str) -> Response:
    """Retire, rename or delete an action."""
    sent = await fields_of(request)
    library, tenant = app_of(request).library, tenant_of(request)
    row = await library.get(tenant, name)
    try:
        act = ACTS.get(one(sent, "do"))
        if act is None:
            raise RequestError("bad_form", "Choose one of the buttons.", status=400)  # noqa: TRY301
        goes_to = await act(library, row, sent, caller_of(request).by)
    except RequestError as error:
        return await editor_page(request, row, Changed(row.draft), {}, error)
    return RedirectResponse(goes_to, 303)


async def _retire(library: Library, row: Built, sent: Fields, by: str) -> str:
    del sent
    await library.retire(row.tenant, row.name, by=by)
    return f"{editor_of(row.name)}?done=retired"


async def _rename(library: Library, row: Built, sent: Fields, by: str) -> str:
    new = one(sent, "new_name").strip()
    await library.rename(row.tenant, row.name, new, by=by)
    return f"{editor_of(new)}?done=renamed"


async def _delete(library: Library, row: Built, sent: Fields, by: str) -> str:
    del sent
    await library.delete(row.tenant, row.name, by=by)
    return "/actions"


ACTS: dict[str, Callable[[Library, Built, Fields, str], Awaitable[str]]] = {
    "retire": _retire,
    "rename": _rename,
    "delete": _delete,
}
