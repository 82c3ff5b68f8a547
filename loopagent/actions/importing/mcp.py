"""Tools of an MCP server as drafts of actions, each pinned to the tool as it is now."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loopagent.actions.importing.document import ApiDocument
from loopagent.actions.importing.openapi import Plan, planned
from loopagent.actions.importing.operations import Draft, action_name
from loopagent.actions.importing.texts import tidy
from loopagent.actions.mcp_client import AskedError, connected, tool_hash
from loopagent.actions.reading import read_action
from loopagent.actions.secrets import Revealed
from loopagent.core.hashing import canonical_json
from loopagent.errors import ActionError, ConfigError


if TYPE_CHECKING:
    from collections.abc import Iterable

    from mcp_types import Tool

    from loopagent.actions.means import Means

SECONDS = 30.0
"""Time for listing the tools of a server."""


async def plan_mcp(
    server: str, means: Means, *, out: Path | None = None, picks: Iterable[str] = ()
) -> Plan:
    """What an import of a server's tools would do; nothing is written.

    Args:
        server: Name of the server in the settings.
        means: Says which servers there are.
        out: Folder of the action files; None for a look at the tools alone.
        picks: Names or patterns of tools; empty for all.

    Raises:
        ConfigError: There is no such server, or it cannot be asked.
    """
    try:
        async with connected(server, means, SECONDS, Revealed(means.secrets)) as connection:
            tools = await connection.tools()
    except (ActionError, AskedError) as error:
        raise ConfigError(str(error)) from error
    listed = [one.model_dump(mode="json", by_alias=True, exclude_none=True) for one in tools]
    value = {"tools": listed}
    digest = hashlib.sha256(canonical_json(value).encode()).hexdigest()
    document = ApiDocument(value, f"mcp:{server}", digest)
    plan = Plan(document, server, tool_drafts(server, tools), kept_as="mcp")
    return planned(plan, out=out, picks=picks)


def tool_drafts(server: str, tools: Iterable[Tool]) -> list[Draft]:
    """Drafts of tools.

    Args:
        server: Name of their server; begins the names of the actions.
        tools: The tools.
    """
    made: list[Draft] = []
    names: set[str] = set()
    for tool in tools:
        draft = Draft(action_name(server, tool.name), "TOOL", tool.name, tool.name, server=server)
        if draft.name in names:
            draft.problems.append("another tool has the same name in lower case")
        names.add(draft.name)
        draft.action = _action(draft.name, server, tool)
        found = read_action(draft.action).complaints.found
        draft.problems += [f"{one.where}: {one.what}" for one in found if not one.warning]
        made.append(draft)
    return made


def _action(name: str, server: str, tool: Tool) -> dict[str, Any]:
    hints = tool.annotations
    made: dict[str, Any] = {"apiVersion": "loopagent/v1", "kind": "Action", "name": name}
    made["enabled"] = False
    title = tool.title or (hints.title if hints else None)
    if title:
        made["title"] = title[:200]
    made["description"] = tidy((tool.description or "")[:5_000]) or f"The tool {tool.name}."
    made["effects"] = _effects(tool)
    if hints is not None and hints.idempotent_hint:
        made["idempotent"] = True
    made["params"] = {key: one for key, one in tool.input_schema.items() if key != "$schema"}
    run = {"kind": "mcp", "server": server, "tool": tool.name, "sha256": tool_hash(tool)}
    return {**made, "run": run}


def _effects(tool: Tool) -> str:
    """What the server says of its tool, a hint for the person who enables it."""
    hints = tool.annotations
    if hints is not None and hints.read_only_hint:
        return "read"
    return "irreversible" if hints is not None and hints.destructive_hint else "external"
