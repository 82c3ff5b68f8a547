"""Actions of kind `mcp`: a tool of a server that the operator configured, if it is still what was looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from loopagent.actions.mcp_client import AskedError, connected, server_named, tool_hash
from loopagent.actions.secrets import Revealed
from loopagent.actions.shaping import shape
from loopagent.errors import ActionError, AsksPersonError, ConfigError


if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp_types import CallToolResult

    from loopagent.action import ActionContext
    from loopagent.actions.format import ActionFile, McpRun
    from loopagent.actions.mcp_client import McpConnection
    from loopagent.actions.mcp_servers import McpServer
    from loopagent.actions.means import Means


MARGIN_SECONDS: Final = 1.0
"""Time that a server is left with an answer before its call is given up."""


def mcp_runner(
    file: ActionFile, run: McpRun, means: Means
) -> Callable[[dict[str, Any], ActionContext], Awaitable[Any]]:
    """What carries out calls of a tool.

    Raises:
        ConfigError: There is no such server.
    """
    server = server_named(means, run.server)
    shared = file.limits.scope == "connection"
    key = f"mcp:{run.server}" if shared else file.name

    async def call(params: dict[str, Any], context: ActionContext) -> Any:
        secrets = Revealed(means.secrets)
        seconds = min(run.timeout or file.timeout, max(0.1, context.seconds_left))
        told = context.progress
        async with means.throttles.turn(
            key, file.limits, lambda left: told(f"waiting {left:.1f} s for its turn")
        ):
            try:
                async with connected(run.server, means, seconds, secrets) as connection:
                    await _check_pin(run, connection)
                    connection.repeatable = file.repeatable
                    if not file.repeatable:
                        connection.asked.put = _putting(run, server, context, secrets)
                    answer = await connection.call(
                        run.tool,
                        params,
                        lambda text: told(str(secrets.masked(text))),
                        context.resume,
                    )
            except AskedError as asked:
                raise _asking(file, run, server, asked, secrets) from asked
            except ConfigError as error:
                raise ActionError(str(error), code="not_configured", fatal=True) from error
        return _result(file, answer, params, secrets, means.heard)

    return call


def _putting(
    run: McpRun, server: McpServer, context: ActionContext, secrets: Revealed
) -> Callable[[dict[str, Any]], Awaitable[dict[str, Any]]] | None:
    """Has a person answer within a call that must not be made twice, as long as it may take."""
    put = context.put_question
    if put is None or not server.max_questions:
        return None

    async def ask(question: dict[str, Any]) -> dict[str, Any]:
        left = max(MARGIN_SECONDS, context.seconds_left - MARGIN_SECONDS)
        return await put(
            {
                "server": run.server,
                "questions": [secrets.masked(question)],
                "seconds": min(server.answer_seconds, left),
                "most": server.max_questions,
            }
        )

    return ask


def _asking(
    file: ActionFile, run: McpRun, server: McpServer, asked: AskedError, secrets: Revealed
) -> ActionError:
    """What becomes of a call whose server asks a person.

    A server of the older era asks in a call that goes on; making that again is safe only where it does no harm.
    """
    said = str(secrets.masked(str(asked)))[:500]
    text = f"The MCP server {run.server} asks a person in the middle of the call: {said}."
    may_have_run = file.effect_class != "read"
    if not server.max_questions or not (asked.ended or file.repeatable):
        hint = "It was told that nobody answers; give what it wants to know with the call."
        return ActionError(f"{text} {hint}", code="mcp_asks", may_have_run=may_have_run)
    asks = {
        "server": run.server,
        "questions": secrets.masked(asked.questions),
        "state": asked.state,
        "seconds": server.answer_seconds,
        "most": server.max_questions,
    }
    return AsksPersonError(f"{text} Nobody can be asked.", asks, may_have_run=may_have_run)


async def _check_pin(run: McpRun, connection: McpConnection) -> None:
    """Refuse a tool that is not the one that was looked at."""
    if run.sha256 is None:
        return
    tool = next((one for one in await connection.tools() if one.name == run.tool), None)
    if tool is None:
        text = f"The MCP server {run.server} has no tool {run.tool} any more."
        raise ActionError(text, code="tool_gone", fatal=True)
    if tool_hash(tool) != run.sha256:
        text = (
            f"The tool {run.tool} of the MCP server {run.server} has changed since it was looked at"
        )
        hint = f"`loopagent actions import-mcp {run.server}` shows how, and takes it over"
        raise ActionError(f"{text}; {hint}.", code="tool_changed", fatal=True)


def _result(
    file: ActionFile,
    answer: CallToolResult,
    params: dict[str, Any],
    secrets: Revealed,
    heard: Callable[[str, dict[str, Any]], None] | None,
) -> Any:
    blocks: list[dict[str, Any]] = secrets.masked(
        [one.model_dump(mode="json", by_alias=True, exclude_none=True) for one in answer.content]
    )
    text = "\n".join(one["text"] for one in blocks if one.get("type") == "text")
    if answer.is_error:
        raise ActionError(text or "The tool failed without a word.", code="tool_error")
    structured = secrets.masked(answer.structured_content)
    only_text = all(one.get("type") == "text" for one in blocks)
    whole = structured if structured is not None else text if only_text else blocks
    seen = {"result": whole, "structured": structured, "text": text, "content": blocks}
    if heard is not None:
        heard("scope", {**seen, "params": params})
    return shape(file, {**seen, "params": params}, whole)
