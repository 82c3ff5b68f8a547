"""Trying out a draft: show the request, send it, work on what was answered, run its tests."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from fastapi import APIRouter, Request
from starlette.responses import Response

from loopagent.core.hashing import json_hash
from loopagent.errors import RequestError
from loopagent.web.drafts import library_of
from loopagent.web.params_form import params_of
from loopagent.web.posts import Fields, fields_of, one
from loopagent.web.shared import caller_of, pages_of, tenant_of
from loopagent.web.trying import Panel, carried, panel_of, selected, send, with_call, with_select


router = APIRouter(include_in_schema=False)


@router.get("/actions/{name}/test")
async def show_panel(request: Request, name: str) -> Response:
    """The form of a draft's parameters, and what can be done with it."""
    asked: Fields = {"example": [request.query_params.get("example", "")]}
    return await _page(
        request, await panel_of(library_of(request), tenant_of(request), name, asked)
    )


@router.post("/actions/{name}/test")
async def use_panel(request: Request, name: str) -> Response:
    """Do what one of the buttons says."""
    sent = await fields_of(request)
    panel = await panel_of(library_of(request), tenant_of(request), name, sent)
    try:
        await BUTTONS.get(one(sent, "do"), _select)(request, panel)
    except RequestError as error:
        panel.error = str(error)
        return await _page(request, panel, error.status)
    return await _page(request, panel, 422 if panel.errors else 200)


@router.post("/actions/{name}/test/select")
async def select_live(request: Request, name: str) -> Response:
    """What an expression finds in the last call, while it is typed."""
    await library_of(request).get(tenant_of(request), name)
    sent = await fields_of(request)
    call = carried(sent)
    found = await asyncio.to_thread(selected, one(sent, "expression"), call)
    context = {"found": found, "call": call}
    return pages_of(request).page(request, "_selected.html", context)


async def _page(request: Request, panel: Panel, status: int = 200) -> Response:
    found = await asyncio.to_thread(selected, panel.expression, panel.call)
    context = {"panel": panel, "found": found, "call": panel.call}
    return pages_of(request).page(request, "test_panel.html", context, status=status)


def _params(panel: Panel) -> dict[str, object] | None:
    """The parameters that were filled in; None when something is wrong with them."""
    if panel.action is None:
        raise RequestError("invalid_action", "The draft is not right yet; put it right first.")
    params, errors = params_of(panel.schema, panel.form, panel.sent)
    panel.errors |= errors
    return None if errors else params


async def _show(request: Request, panel: Panel) -> None:
    params = _params(panel)
    if params is not None:
        panel.request = await _preview(request, panel, params)


async def _preview(request: Request, panel: Panel, params: dict[str, object]) -> dict[str, object]:
    built = panel.built
    return await library_of(request).preview(
        tenant_of(request), built.draft, params, files=built.files
    )


async def _send(request: Request, panel: Panel) -> None:
    """Send the call; one that changes something only when exactly this one was shown and confirmed."""
    params = _params(panel)
    if params is None or panel.action is None:
        return
    digest = json_hash([panel.built.draft_hash, params])
    confirms = one(panel.sent, "do") == "confirm"
    if panel.action.spec.effects != "read" and not (
        confirms and one(panel.sent, "shown") == digest
    ):
        panel.request, panel.confirms = await _preview(request, panel, params), digest
        if confirms:
            panel.error = "This is not what was shown before; look at it, then send it."
        return
    library, by = library_of(request), caller_of(request).by
    panel.call = await send(library, tenant_of(request), panel, params, by)


async def _select(request: Request, panel: Panel) -> None:
    del request, panel  # what the expression finds is on every page


async def _use(request: Request, panel: Panel) -> None:
    text = with_select(panel.built.draft, panel.expression)
    await _save(request, panel, text, "The draft selects this now.")


async def _example(request: Request, panel: Panel) -> None:
    text = with_call(panel, one(panel.sent, "called"), "examples")
    await _save(request, panel, text, "Saved as an example in the draft.")


async def _test(request: Request, panel: Panel) -> None:
    text = with_call(panel, one(panel.sent, "called"), "tests")
    await _save(request, panel, text, "Saved as a test in the draft.")


async def _save(request: Request, panel: Panel, text: str, notice: str) -> None:
    expected = one(panel.sent, "hash") or panel.built.draft_hash
    await library_of(request).save(
        tenant_of(request),
        panel.built.name,
        text,
        expected_hash=expected,
        by=caller_of(request).by,
    )
    library, tenant = library_of(request), tenant_of(request)
    after = await panel_of(library, tenant, panel.built.name, panel.sent)
    panel.built, panel.action, panel.complaints = after.built, after.action, after.complaints
    panel.notice = notice


async def _tests(request: Request, panel: Panel) -> None:
    if panel.file is not None and not panel.file.tests:
        raise RequestError("no_tests", "The draft has no tests yet; save a call as one.")
    built = panel.built
    panel.tests = await library_of(request).run_tests(
        tenant_of(request), built.draft, files=built.files
    )


BUTTONS: Final[dict[str, Callable[[Request, Panel], Awaitable[None]]]] = {
    "show": _show,
    "send": _send,
    "confirm": _send,
    "select": _select,
    "use": _use,
    "example": _example,
    "test": _test,
    "tests": _tests,
}
"""What each button does to the panel."""
