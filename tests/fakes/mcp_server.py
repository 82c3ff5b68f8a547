"""A real MCP server of the current era, as a program: `stdio`, or `http PORT`."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import (
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitRequestURLParams,
    ElicitResult,
    InputRequests,
    InputRequiredResult,
    ToolAnnotations,
)


server = MCPServer("shop", log_level="ERROR")


@server.tool(
    description=os.environ.get("SHOP_SAYS", "Looks at an order."),
    annotations=ToolAnnotations(read_only_hint=True, idempotent_hint=True),
)
async def look(order: str, context: Context[Any]) -> dict[str, str]:
    await context.report_progress(1, 2, "half way")
    secret = os.environ.get("SHOP_TOKEN", "")
    return {"order": order, "secret": secret, "other": os.environ.get("SHOP_OTHER", "")}


@server.tool(annotations=ToolAnnotations(read_only_hint=False, destructive_hint=True))
async def drop(order: str) -> str:
    """Drops an order."""
    raise ToolError(f"there is no order {order}")


@server.tool()
async def wait(seconds: float, file: str) -> str:
    """Takes time."""
    Path(file).write_text(str(os.getpid()))
    await asyncio.sleep(seconds)
    return "done"


SURE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "sure": {"type": "boolean", "title": "Sure?"},
        "when": {"type": "string", "enum": ["now", "later"]},
    },
    "required": ["sure"],
}


@server.tool()
async def ask(order: str, context: Context[Any]) -> Any:
    """Asks first."""
    given = context.input_responses or {}
    if "sure" in given:
        said = given["sure"]
        assert isinstance(said, ElicitResult)
        return f"{order}: {said.action} {said.content}, back: {context.request_state}"
    params = ElicitRequestFormParams(message=f"Really {order}?", requested_schema=SURE)
    asked: InputRequests = {"sure": ElicitRequest(params=params)}
    return InputRequiredResult(input_requests=asked, request_state="x")


@server.tool()
async def pay(context: Context[Any]) -> Any:
    """Has somebody pay first, at an address, for ever."""
    params = ElicitRequestURLParams(message="Pay first.", url="https://pay.example/7?x=1")
    asked: InputRequests = {"paid": ElicitRequest(params=params)}
    count = int(context.request_state or 0) + 1
    return InputRequiredResult(input_requests=asked, request_state=str(count))


def main() -> None:
    if sys.argv[1] == "stdio":
        server.run("stdio")
    else:
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[2]))


if __name__ == "__main__":
    main()
