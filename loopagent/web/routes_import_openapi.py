"""An OpenAPI document that becomes drafts: looked at first, fetched only when that was confirmed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from fastapi import APIRouter, Request
from starlette.responses import Response

from loopagent.actions.importing.document import read_api
from loopagent.actions.importing.fetching import fetch_api, is_address
from loopagent.actions.importing.openapi import plan_import, prefix_of
from loopagent.actions.importing.operations import Options
from loopagent.core.json_values import compact_json
from loopagent.errors import ConfigError
from loopagent.web.drafts import means_of, shown_error
from loopagent.web.imported import picking
from loopagent.web.posts import Fields, form_of, one
from loopagent.web.shared import pages_of


if TYPE_CHECKING:
    from loopagent.actions.importing.openapi import Plan

TYPED = ("address", "name", "baseUrl", "variables", "document", "source")
"""Fields that stay as they were typed."""
router = APIRouter(include_in_schema=False)


@router.get("/actions/new/openapi")
async def ask_for_document(request: Request) -> Response:
    """A place to paste, upload or name a document."""
    return _page(request, {})


@router.post("/actions/new/openapi")
async def take_document(request: Request) -> Response:
    """Ask before an address is called, show what a document holds, or save what was picked."""
    sent = await form_of(request)
    address = one(sent, "address").strip()
    text = one(sent, "file") or one(sent, "document")
    source = one(sent, "source") or "document"
    try:
        if not text.strip() and address:
            if one(sent, "do") != "fetch":
                return _page(request, {"confirm": _asked(address)}, sent)
            text, source = await _fetched(request, address), address
        plan = await asyncio.to_thread(_planned, text.lstrip("\n"), source, sent)
    except ConfigError as error:
        return _page(request, {"error": shown_error(error)}, sent, status=422)
    carried = {**sent, "document": [text], "source": [source], "address": [""]}
    context = {"typed": _typed(carried), "again": "/actions/new/openapi"}
    return await picking(request, plan, carried, "import_openapi.html", context)


def _asked(address: str) -> dict[str, str]:
    """What is asked before an address is called.

    Raises:
        ConfigError: It is none.
    """
    if not is_address(address):
        raise ConfigError(f"{address[:200]!r} is no address; it begins with https://")
    try:
        host = urlsplit(address).hostname or ""
    except ValueError as error:
        raise ConfigError(f"{address[:200]!r} is no address: {error}") from error
    return {"address": address, "host": host}


async def _fetched(request: Request, address: str) -> str:
    return compact_json((await fetch_api(address, means_of(request))).value)


def _planned(text: str, source: str, sent: Fields) -> Plan:
    document = read_api(text, source)
    name = one(sent, "name").strip() or prefix_of(document)
    options = Options(name, one(sent, "baseUrl").strip(), _variables(one(sent, "variables")))
    return plan_import(document, options)


def _variables(text: str) -> dict[str, str]:
    made: dict[str, str] = {}
    for line in text.splitlines():
        name, separator, value = line.partition("=")
        if separator and name.strip():
            made[name.strip()] = value.strip()
        elif line.strip():
            raise ConfigError(f"{line[:100]!r} is no server variable; write name=value")
    return made


def _page(
    request: Request, context: dict[str, Any], sent: Fields | None = None, status: int = 200
) -> Response:
    context |= {"typed": _typed(sent or {})}
    return pages_of(request).page(request, "import_openapi.html", context, status=status)


def _typed(sent: Fields) -> dict[str, str]:
    return {name: one(sent, name) for name in TYPED}
