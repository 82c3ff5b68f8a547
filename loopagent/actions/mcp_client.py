"""Talking to MCP servers through the `mcp` package, of either era of the protocol, one connection a call."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

import httpx2

from loopagent.actions.elicitation import NotAQuestionError, question_of
from loopagent.actions.secrets import Revealed
from loopagent.core.hashing import canonical_json
from loopagent.egress import EgressDeniedError
from loopagent.egress.client import checked_url, operator_policy
from loopagent.egress.decoding import TooLongError
from loopagent.egress.lent import lent_client
from loopagent.errors import ActionError, ConfigError


if TYPE_CHECKING:
    from mcp import Client
    from mcp_types import CallToolResult, InputResponses, Tool

    from loopagent.actions.mcp_servers import McpServer
    from loopagent.actions.means import Means

MAX_PAGES: Final = 100
FIRST_WITHOUT_SESSIONS: Final = "2026-07-28"
"""Version of the protocol from which on a server ends a call with its questions, and it is made again with answers."""
ADDRESSES_FIRST: Final = -32042
"""Code of an older server that wants addresses to be visited before it takes a call."""
MAX_LEGS: Final = 10
"""How often a call is made when the server only wants to have something back."""
LEG_SECONDS: Final = 0.25
Told: TypeAlias = Callable[[str], None]
"""Hears how far a call is."""
MAX_GIVEN: Final = 50
"""Answers in one call of a server of the older era, counted with those that were given before."""
LOG = logging.getLogger("loopagent.mcp")


class AskedError(Exception):
    """The server wants answers of a person before it goes on.

    Args:
        questions: As `elicitation.question_of` makes them.
        state: What it wants to have back with the answers; None where it wants nothing.
        ended: Whether it waits for the call to be made again, so that nothing is repeated by that.
    """

    def __init__(
        self, questions: list[dict[str, Any]], state: str | None = None, *, ended: bool = False
    ) -> None:
        super().__init__("; ".join(str(one["message"]) for one in questions))
        self.questions = questions
        self.state = state
        self.ended = ended


@dataclass(slots=True)
class Asked:
    """What a server of the older era asked in the middle of a call, and what is known of the answers."""

    known: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Answers by the digest of their question."""
    open: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    refused: str = ""
    """Why a question cannot be put to a person."""
    given: int = 0
    put: Callable[[dict[str, Any]], Awaitable[dict[str, Any]]] | None = None
    """Has a person answer while the call goes on; None where it ends with its questions."""

    async def answer(self, params: dict[str, Any]) -> dict[str, Any]:
        """The answer to a question; where it is not known, that nobody gives one."""
        try:
            question = question_of("", params)
        except NotAQuestionError as error:
            self.refused = str(error)
            return {"action": "cancel"}
        known = self.known.get(question["hash"])
        self.given += 1
        if known is None and self.put is not None and self.given <= MAX_GIVEN:
            return await self.put(question)
        if known is None or self.given > MAX_GIVEN:
            self.open.append(question)
            return {"action": "cancel"}
        return dict(known)


@dataclass(slots=True)
class McpConnection:
    """An open connection to a server."""

    client: Client
    asked: Asked = field(default_factory=Asked)
    repeatable: bool = False
    """Whether making a call again from its start does no harm."""
    starts_over: bool = False

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
        self,
        tool: str,
        params: dict[str, Any],
        told: Told,
        resume: Mapping[str, Any] | None = None,
    ) -> CallToolResult:
        """Call a tool.

        Args:
            tool: Its name.
            params: Its arguments.
            told: Hears how far it is.
            resume: What was answered to the questions of an earlier attempt, and what the server wants back.

        Raises:
            AskedError: The server wants answers of a person.
        """
        given = resume or {}
        self.asked.known = given.get("known") or {}
        try:
            answer = await self._answered(tool, params, told, given)
        except Exception as error:
            asked = _wanted(error) or self.asked.open
            if asked:
                raise AskedError(asked, ended=not self.asked.open) from error
            raise
        if self.asked.open:
            raise AskedError(self.asked.open)
        return answer

    async def _answered(
        self, tool: str, params: dict[str, Any], told: Told, given: Mapping[str, Any]
    ) -> CallToolResult:
        """Call a tool with what was answered, from the start where the server does not know its own state any more."""
        from mcp import MCPError  # noqa: PLC0415 - slow to import

        try:
            return await self._legs(tool, params, told, given)
        except MCPError:
            if not self.repeatable or given.get("state") is None:
                raise
        self.starts_over = True
        return await self._legs(tool, params, told, {})

    async def _legs(
        self, tool: str, params: dict[str, Any], told: Told, given: Mapping[str, Any]
    ) -> CallToolResult:
        """One call, as often as the server only wants to have something back."""
        from mcp_types import CallToolResult, ElicitResult  # noqa: PLC0415 - slow to import

        async def tell(progress: float, total: float | None, message: str | None) -> None:
            told(message or f"{progress:g}" + (f" of {total:g}" if total else ""))

        modern = self.client.protocol_version >= FIRST_WITHOUT_SESSIONS
        state: str | None = given.get("state") if modern else None
        answers: InputResponses = {
            key: ElicitResult(**one) for key, one in (given.get("answers") or {}).items()
        }
        for _ in range(MAX_LEGS):
            result = await self.client.session.call_tool(
                tool,
                params,
                progress_callback=tell,
                input_responses=answers if modern and answers else None,
                request_state=state,
                allow_input_required=True,
            )
            if isinstance(result, CallToolResult):
                return result
            state, answers = result.request_state, {}
            if result.input_requests:
                questions = _questions(result.input_requests)
                if not self.starts_over or any(
                    one["hash"] not in self.asked.known for one in questions
                ):
                    raise AskedError(questions, state, ended=True)
                answers = {
                    one["id"]: ElicitResult(**self.asked.known[one["hash"]]) for one in questions
                }
            else:
                await asyncio.sleep(LEG_SECONDS)
        raise ActionError(f"The server did not answer in {MAX_LEGS} attempts.", code="mcp_failed")


def _questions(requests: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The questions of a server of the current era.

    Raises:
        ActionError: `mcp_asks`, it wants something else than an answer of a person.
    """
    try:
        return [question_of(key, _plain(one)) for key, one in requests.items()]
    except NotAQuestionError as error:
        text = f"The server asks for what cannot be put to a person: {error}."
        raise ActionError(text, code="mcp_asks") from error


def _plain(request: Any) -> dict[str, Any]:
    if request.method != "elicitation/create":
        raise NotAQuestionError(f"it is {request.method}")
    found: dict[str, Any] = request.params.model_dump(mode="json", by_alias=True, exclude_none=True)
    return found


def _wanted(error: Exception) -> list[dict[str, Any]]:
    """The addresses that a server of the older era wants to be visited before it takes the call."""
    data = getattr(error, "data", None)
    if getattr(error, "code", None) != ADDRESSES_FIRST or not isinstance(data, dict):
        return []
    listed = cast("dict[str, Any]", data).get("elicitations")
    entries = cast("list[Any]", listed) if isinstance(listed, list) else []
    try:
        return [
            question_of(str(index), {**cast("dict[str, Any]", one), "mode": "url"})
            for index, one in enumerate(entries)
            if isinstance(one, dict)
        ]
    except NotAQuestionError:
        return []


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
    asked = Asked()

    async def answer(context: Any, params: Any) -> ElicitResult:
        del context
        said = params.model_dump(mode="json", by_alias=True, exclude_none=True)
        return ElicitResult(**await asked.answer(said))

    client = Client(
        await _transport(server, means, seconds, secrets, stack),
        read_timeout_seconds=seconds,
        elicitation_callback=answer,
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
