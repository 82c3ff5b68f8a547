"""MCP servers that the operator configured, their tools, and the picked ones as drafts."""

from __future__ import annotations

from urllib.parse import quote

from fastapi import APIRouter, Request
from starlette.responses import Response

from loopagent.actions.importing.browsing import browse, listed_servers
from loopagent.errors import ConfigError
from loopagent.web.drafts import known_actions, means_of, shown_error
from loopagent.web.imported import picking
from loopagent.web.posts import Fields, fields_of
from loopagent.web.shared import pages_of


router = APIRouter(include_in_schema=False)


@router.get("/actions/new/mcp")
async def list_servers(request: Request) -> Response:
    """The servers; none of them is asked."""
    servers = listed_servers(means_of(request), await known_actions(request))
    return pages_of(request).page(request, "import_mcp.html", {"servers": servers})


@router.get("/actions/new/mcp/{name}")
async def list_tools(request: Request, name: str) -> Response:
    """Ask a server for its tools."""
    return await _tools_page(request, name, dict(_asked(request)))


def _asked(request: Request) -> Fields:
    return {name: request.query_params.getlist(name) for name in request.query_params}


@router.post("/actions/new/mcp/{name}")
async def save_tools(request: Request, name: str) -> Response:
    """Save the picked tools as drafts; each is pinned to the tool as it is now."""
    return await _tools_page(request, name, await fields_of(request))


async def _tools_page(request: Request, server: str, sent: Fields) -> Response:
    try:
        seen = await browse(server, means_of(request), await known_actions(request))
    except ConfigError as error:
        known = server in means_of(request).mcp
        failed = {"server": server, "error": shown_error(error)}
        status = 502 if known else 404
        return pages_of(request).page(request, "import_mcp_tools.html", failed, status=status)
    context = {"server": server, "seen": seen, "again": f"/actions/new/mcp/{quote(server)}"}
    return await picking(request, seen.plan, sent, "import_mcp_tools.html", context)
