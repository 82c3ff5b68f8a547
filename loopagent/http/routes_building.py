"""What people need who build actions: secrets by name, MCP servers and their tools, expressions on an answer."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Request
from pydantic import Field

from loopagent.actions.importing.browsing import SeenTool, ToolState, browse, listed_servers
from loopagent.actions.importing.changing import Change, What
from loopagent.actions.importing.texts import yaml_text
from loopagent.actions.secret_list import secret_states
from loopagent.core.reshape import Expression, ReshapeError
from loopagent.errors import ConfigError, RequestError
from loopagent.http.body import Body, View
from loopagent.http.problems import responses
from loopagent.http.routes_imports import Texts, offered, refused
from loopagent.http.routes_runs import host
from loopagent.web.drafts import known_actions, means_of


router = APIRouter(tags=["actions"], dependencies=[Depends(host)])


class SecretStateView(View):
    """A secret; its value is told nobody."""

    name: str
    """Name that actions use."""
    state: Literal["set", "missing", "unknown"]
    """`missing`: the operator set it up, and it has no value; `unknown`: an action names it, and nobody set it up."""
    hosts: list[str]
    """The only hosts that it is ever sent to."""
    source: str
    """The environment variable or file that holds it."""
    used_by: list[str]
    """Actions that name it."""


class SecretList(View):
    """All secrets."""

    secrets: list[SecretStateView]
    """Sorted by name."""


class McpServerView(View):
    """An MCP server that the operator configured."""

    name: str
    """Its name in the settings."""
    transport: Literal["program", "http"]
    """How it is reached."""
    reached: str
    """The program, or the host."""
    used_by: list[str]
    """Actions that call its tools."""


class McpServerList(View):
    """All MCP servers."""

    servers: list[McpServerView]
    """Sorted by name."""


class McpImport(Body):
    """A server to ask for its tools."""

    server: str = Field(max_length=200)
    """Its name in the settings."""
    pick: Texts = Field(default_factory=list)
    """Only these tools: names, or patterns like `get_*`; empty for all."""
    save: bool = False
    """Save what is picked as drafts of the library; `pick` has to say what."""


class McpToolView(View):
    """A tool, and the action that would come of it."""

    tool: str
    """Its name."""
    title: str
    """Its title."""
    description: str
    """What it says that it does."""
    input_schema: dict[str, Any]
    """JSON Schema of its arguments."""
    annotations: dict[str, Any]
    """What the server says of its effects; hints, not promises."""
    state: ToolState
    """Whether it changed since an action was made of it."""
    actions: dict[str, ToolState]
    """The same for each action that calls it."""
    name: str
    """Name of the action that would come of it."""
    problems: list[str]
    """What keeps it from being imported; empty when nothing does."""
    change: What
    """What saving it would do to the drafts of the library: `new`, `same`, `changed` or `refused`."""
    difference: list[str]
    """The lines of its draft that would change."""
    yaml: str
    """The action file, disabled and pinned to the tool as it is now; empty when there are problems."""


class McpPreview(View):
    """What a server offers."""

    server: str
    """Its name."""
    tools: list[McpToolView]
    """Its tools, in its order."""
    gone: dict[str, str]
    """Actions that call tools which it has no more, with the names of those."""
    saved: dict[str, str]
    """What was to be saved, by name: empty when it was, or else why not."""


class Selection(Body):
    """An expression to apply."""

    expression: Annotated[str, Field(max_length=4_000)]
    """JMESPath, as in `result.select`."""
    data: Any = None
    """What it is applied to."""


class Selected(View):
    """What an expression finds."""

    value: Any
    """What it finds; null when it finds nothing."""


@router.get("/secrets", responses=responses(401, 503))
async def list_secrets(request: Request) -> SecretList:
    """List the secrets that are set up or that actions name: whether each is set, and which hosts get it."""
    uses = [(one.name, one.secrets) for one in await known_actions(request)]
    found = secret_states(means_of(request).secrets, uses)
    return SecretList(
        secrets=[SecretStateView.model_validate(one, from_attributes=True) for one in found]
    )


@router.get("/mcp-servers", responses=responses(401, 503))
async def list_mcp_servers(request: Request) -> McpServerList:
    """List the MCP servers that the operator configured; none of them is asked."""
    found = listed_servers(means_of(request), await known_actions(request))
    return McpServerList(
        servers=[McpServerView.model_validate(one, from_attributes=True) for one in found]
    )


@router.post("/actions/import/mcp", responses=responses(400, 401, 403, 413, 422, 502, 503))
async def preview_mcp(request: Request, asked: McpImport) -> McpPreview:
    """Ask an MCP server for its tools, and show which actions would come of them, or save them as drafts."""
    try:
        seen = await browse(asked.server, means_of(request), await known_actions(request))
        found, saved = await offered(request, seen.plan, asked.pick, [], save=asked.save)
    except ConfigError as error:
        known = asked.server in means_of(request).mcp
        raise refused(error, 502 if known else 422) from error
    tools = {one.draft.path: one for one in seen.tools}
    shown = [_tool(tools[draft.path], change) for draft, change in found.drafts]
    return McpPreview(server=asked.server, tools=shown, gone=seen.gone, saved=saved)


def _tool(seen: SeenTool, change: Change) -> McpToolView:
    draft = seen.draft
    return McpToolView(
        tool=seen.name,
        title=seen.title,
        description=seen.description,
        input_schema=seen.schema,
        annotations=seen.hints,
        state=seen.state,
        actions=seen.actions,
        name=draft.name,
        problems=draft.problems,
        change=change.what,
        difference=change.lines,
        yaml="" if draft.problems else yaml_text(draft.action),
    )


@router.post("/actions/select", responses=responses(400, 401, 403, 413, 422, 503))
async def select(asked: Selection) -> Selected:
    """Apply a JMESPath expression to some JSON, as `result.select` would."""
    try:
        expression = Expression(asked.expression)
        return Selected(value=await asyncio.to_thread(expression.of, asked.data))
    except ReshapeError as error:
        raise RequestError("bad_expression", f"{error}.", status=422) from error
