"""Talking to MCP servers through the `mcp` package, of either era of the protocol, one connection a call."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import httpx2

from loopagent.actions.secrets import Revealed
from loopagent.core.hashing import canonical_json
from loopagent.egress import EgressDeniedError, TooLongError, operator_policy
from loopagent.egress.client import checked_url
from loopagent.egress.lent import lent_client
from loopagent.errors import ActionError, ConfigError


if TYPE_CHECKING:
    from mcp import Client
    from mcp_types import CallToolResult, Tool

    from loopagent.actions.mcp_servers import McpServer
    from loopagent.actions.means import Means

MAX_PAGES: Final = 100
LOG = logging.getLogger("loopagent.mcp")


class AskedError(Exception):
    """The server wants an answer of a person in the middle of a call."""


@dataclass(slots=True)
class McpConnection:
    """An open connection to a server.

    `asked` is what the server wanted of a person; it was told that nobody answers.
    """

    client: Client
    asked: list[str] = field(default_factory=list[str])

    async def tools(self) -> list[Tool]:
        """All tools of the server."""
        found: list[Tool] = []
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            page = await self.client.list_tools(cursor=cursor)
            found += page.tools
            cursor = page.next_cursor
            if not cursor:
                break
        return found

    async def call(
        self, tool: str, params: dict[str, Any], told: Callable[[str], None]
    ) -> CallToolResult:
        """Call a tool.

        Raises:
            AskedError: The server wants an answer of a person.
        """

        async def tell(progress: float, total: float | None, message: str | None) -> None:
            told(message or f"{progress:g}" + (f" of {total:g}" if total else ""))

        try:
            answer = await self.client.call_tool(tool, params, progress_callback=tell)
        except Exception as error:
            if self.asked:
                raise AskedError(self.asked[0]) from error
            raise
        if self.asked:
            raise AskedError(self.asked[0])
        return answer


def tool_hash(tool: Tool) -> str:
    """A digest of what a model is told of a tool and what the tool takes."""
    seen = {
        "name": tool.name,
        "description": tool.description,
        "inputSchema": tool.input_schema,
        "annotations": None
        if tool.annotations is None
        else tool.annotations.model_dump(mode="json", exclude_none=True),
    }
    return hashlib.sha256(canonical_json(seen).encode()).hexdigest()


def server_named(means: Means, name: str) -> McpServer:
    """The server of a name.

    Raises:
        ConfigError: The operator configured none.
    """
    found = means.mcp.get(name)
    if found is None:
        known = ", ".join(sorted(means.mcp)) or "none"
        text = f"there is no MCP server {name!r} (known: {known})"
        raise ConfigError(f"{text}; add [mcp.{name}] to loopagent.toml")
    return found


@asynccontextmanager
async def connected(
    name: str, means: Means, seconds: float, secrets: Revealed
) -> AsyncGenerator[McpConnection, None]:
    """A connection to a server, closed at the end of the block; a program that was started is ended.

    Args:
        name: Name of the server.
        means: Says which servers there are.
        seconds: Time for all of it.
        secrets: Gives tokens, and masks them.

    Raises:
        ActionError: The server cannot be reached, breaks the protocol, or takes too long.
        ConfigError: There is no such server, or the `mcp` package is missing.
    """
    server = server_named(means, name)
    reached = False
    try:
        async with asyncio.timeout(seconds), AsyncExitStack() as stack:
            connection = await _open(server, means, seconds, secrets, stack)
            reached = True
            yield connection
    except (ActionError, ConfigError, AskedError):
        raise
    except TimeoutError as error:
        text = f"The MCP server {name} took longer than {seconds:g} s."
        raise ActionError(text, code="timeout", may_have_run=reached) from error
    except Exception as error:
        cause = _cause(error)
        if isinstance(cause, (ActionError, ConfigError, AskedError)):
            raise cause from error
        raise _failure(name, cause, reached=reached, secrets=secrets) from error


def _failure(name: str, cause: BaseException, *, reached: bool, secrets: Revealed) -> ActionError:
    """What to tell of a connection that failed."""
    said = str(secrets.masked(str(cause) or type(cause).__name__))[:500]
    LOG.warning("the MCP server %s: %s", name, said)
    if isinstance(cause, EgressDeniedError):
        return ActionError(f"The MCP server {name} may not be called.", code="egress_denied")
    if isinstance(cause, TooLongError):
        text = f"The answer of the MCP server {name} is too long."
        return ActionError(text, code="too_long", may_have_run=True)
    text = f"The MCP server {name} failed: {said}."
    return ActionError(text, code="mcp_failed", may_have_run=reached)


def _cause(error: BaseException) -> BaseException:
    """The first error of a group of one in another."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    return error


async def _open(
    server: McpServer, means: Means, seconds: float, secrets: Revealed, stack: AsyncExitStack
) -> McpConnection:
    try:
        from mcp import Client  # noqa: PLC0415 - an extra, and slow to import
        from mcp_types import ElicitResult, Implementation  # noqa: PLC0415
    except ImportError:
        raise ConfigError("MCP needs the package mcp; pip install 'loopagent[mcp]'") from None
    asked: list[str] = []

    async def nobody_answers(context: Any, params: Any) -> ElicitResult:
        del context
        asked.append(str(params.message))
        return ElicitResult(action="cancel")

    client = Client(
        await _transport(server, means, seconds, secrets, stack),
        read_timeout_seconds=seconds,
        elicitation_callback=nobody_answers,
        client_info=Implementation(name="loopagent", version="1"),
        cache=None,
    )
    return McpConnection(await stack.enter_async_context(client), asked)


async def _transport(
    server: McpServer, means: Means, seconds: float, secrets: Revealed, stack: AsyncExitStack
) -> Any:
    from mcp.client.stdio import StdioServerParameters  # noqa: PLC0415
    from mcp.client.streamable_http import streamable_http_client  # noqa: PLC0415

    if server.command is not None:
        passed = {one: os.environ[one] for one in server.pass_env if one in os.environ}
        for value in passed.values():
            secrets.kept(value)
        env = {**server.env, **passed}
        return StdioServerParameters(command=server.command, args=list(server.args), env=env)
    url = str(server.url)
    headers: dict[str, str] = {}
    if server.token is not None:
        target = checked_url(url)
        headers["authorization"] = f"Bearer {secrets.to(target.scheme, target.host)(server.token)}"
    policy = operator_policy(url, proxy=means.egress.proxy)
    client: httpx2.AsyncClient = await stack.enter_async_context(
        lent_client(policy, headers, seconds=seconds, max_bytes=server.max_bytes)
    )
    return streamable_http_client(url, http_client=client)
