"""MCP servers and their tools to choose from: what each takes, and whether it changed since somebody reviewed it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import urlsplit

from loopagent.actions.format import McpRun
from loopagent.actions.importing.mcp import plan_mcp


if TYPE_CHECKING:
    from collections.abc import Iterable

    from loopagent.actions.format import ActionFile
    from loopagent.actions.importing.openapi import Plan
    from loopagent.actions.importing.operations import Draft
    from loopagent.actions.means import Means

ToolState = Literal["new", "unchanged", "changed", "unpinned"]
_GRAVEST: Final[tuple[ToolState, ...]] = ("changed", "unpinned", "unchanged", "new")


@dataclass(frozen=True, slots=True)
class ListedServer:
    """A server that the operator configured; `reached` says how, without arguments or variables."""

    name: str
    transport: Literal["program", "http"]
    reached: str
    used_by: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SeenTool:
    """A tool of a server, and what became of it here.

    `hints` are the annotations as the server gives them. `actions` are those that call it, each with whether the tool
    is still as it was when that action was reviewed.
    """

    name: str
    title: str
    description: str
    schema: dict[str, Any]
    hints: dict[str, Any]
    draft: Draft
    actions: dict[str, ToolState] = field(default_factory=dict[str, "ToolState"])

    @property
    def state(self) -> ToolState:
        """`changed` when an action has seen another one, `new` when none uses it."""
        found = sorted(self.actions.values(), key=_GRAVEST.index)
        return found[0] if found else "new"


@dataclass(frozen=True, slots=True)
class SeenServer:
    """What a server offers now; `gone` are actions whose tools it has no more, with the names of those."""

    server: str
    plan: Plan
    tools: list[SeenTool]
    gone: dict[str, str]


def listed_servers(means: Means, actions: Iterable[ActionFile]) -> list[ListedServer]:
    """The servers, sorted by name.

    Args:
        means: Says which there are.
        actions: Actions that may use them.
    """
    files = list(actions)
    found: list[ListedServer] = []
    for name, one in sorted(means.mcp.items()):
        reached = one.command or urlsplit(str(one.url)).netloc.rpartition("@")[2]
        used = sorted({each.name for each, run in _calls(files) if run.server == name})
        transport: Literal["program", "http"] = "program" if one.command else "http"
        found.append(ListedServer(name, transport, reached, tuple(used)))
    return found


async def browse(server: str, means: Means, actions: Iterable[ActionFile]) -> SeenServer:
    """Ask a server for its tools.

    Args:
        server: Its name in the settings.
        means: Says which servers there are.
        actions: Actions that may call its tools.

    Raises:
        ConfigError: There is no such server, or it cannot be asked.
    """
    plan = await plan_mcp(server, means)
    calls = [(file.name, run) for file, run in _calls(actions) if run.server == server]
    tools = [
        _seen(raw, draft, calls)
        for raw, draft in zip(plan.document.value["tools"], plan.drafts, strict=True)
    ]
    names = {one.name for one in tools}
    gone = {name: run.tool for name, run in calls if run.tool not in names}
    return SeenServer(server, plan, tools, gone)


def _calls(actions: Iterable[ActionFile]) -> list[tuple[ActionFile, McpRun]]:
    return [(one, one.run) for one in actions if isinstance(one.run, McpRun)]


def _seen(raw: dict[str, Any], draft: Draft, calls: list[tuple[str, McpRun]]) -> SeenTool:
    digest: str = draft.action["run"]["sha256"]
    actions: dict[str, ToolState] = {}
    for name, run in calls:
        if run.tool == raw["name"]:
            same: ToolState = "unchanged" if run.sha256 == digest else "changed"
            actions[name] = "unpinned" if run.sha256 is None else same
    return SeenTool(
        name=raw["name"],
        title=raw.get("title") or "",
        description=raw.get("description") or "",
        schema=raw.get("inputSchema") or {},
        hints=raw.get("annotations") or {},
        draft=draft,
        actions=actions,
    )
