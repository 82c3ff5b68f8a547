"""Puts the pages beside the HTTP API."""

from __future__ import annotations

import json
from collections.abc import Callable
from inspect import isawaitable
from typing import Any, TypeAlias

from fastapi import APIRouter, FastAPI, Request
from starlette.responses import Response

from loopagent.app import App
from loopagent.web import (
    routes_actions,
    routes_agents,
    routes_artifacts,
    routes_audit,
    routes_control,
    routes_desk,
    routes_editor,
    routes_import_curl,
    routes_import_mcp,
    routes_import_openapi,
    routes_inbox,
    routes_keys,
    routes_memory,
    routes_notifications,
    routes_oidc,
    routes_publish,
    routes_runs,
    routes_secrets,
    routes_signin,
    routes_tryout,
)
from loopagent.web.render import STATIC, Pages
from loopagent.web.shared import pages_of


Handler: TypeAlias = Callable[[Request, Any], Any]
API_PREFIX = "/api/"
router = APIRouter(include_in_schema=False)


@router.get(STATIC + "/{key:path}")
async def static(request: Request, key: str) -> Response:
    """A file of the pages."""
    return pages_of(request).static.answer(key)


def add_pages(api: FastAPI, app: App) -> None:
    """Add the pages to the API's server; whoever looks at one is told of errors by a page."""
    signing_in = api.state.signing_in
    providers = () if signing_in is None else signing_in.settings.providers
    api.state.pages = Pages(app.now, providers)
    for one in (
        router,
        routes_inbox.router,
        routes_desk.router,
        routes_runs.router,
        routes_artifacts.router,
        routes_control.router,
        routes_agents.router,
        routes_memory.router,
        routes_audit.router,
        routes_notifications.router,
        routes_keys.router,
        routes_actions.router,
        routes_editor.router,
        routes_publish.router,
        routes_import_curl.router,
        routes_import_openapi.router,
        routes_import_mcp.router,
        routes_secrets.router,
        routes_tryout.router,
        routes_signin.router,
        routes_oidc.router,
    ):
        api.include_router(one)
    for kind, handler in list(api.exception_handlers.items()):
        api.add_exception_handler(kind, _as_page(handler))


def _as_page(handler: Handler) -> Handler:
    """Answer as the API would, or with a page of the same meaning."""

    async def handle(request: Request, error: Exception) -> Response:
        answer = handler(request, error)
        response: Response = await answer if isawaitable(answer) else answer
        wants_page = "text/html" in request.headers.get("accept", "")
        if request.url.path.startswith(API_PREFIX) or not wants_page:
            return response
        problem = json.loads(bytes(response.body))
        page = pages_of(request).page
        return page(request, "error.html", {"problem": problem}, status=response.status_code)

    return handle
