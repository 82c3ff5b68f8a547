"""What actions may use: the operator's settings, secrets, a clock; tests put their own in."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from secrets import SystemRandom
from typing import TYPE_CHECKING, Any

from loopagent.actions.throttle import Throttles
from loopagent.actions.tokens import Tokens
from loopagent.egress import EgressPolicy, EgressSettings
from loopagent.egress.client import GuardedClient


if TYPE_CHECKING:
    from loopagent.action import Action
    from loopagent.actions.mcp_servers import McpServer
    from loopagent.actions.secrets import SecretStore


@dataclass(slots=True)
class Means:
    """What the actions of one project may use.

    Args:
        egress: What the operator allows for all of them.
        secrets: Where their secrets come from; None for none.
        allowed_modules: Modules, with all below them, whose functions may be actions.
        mcp: MCP servers by name.
        actions: Actions by name, for pipelines; filled while actions are made.
        client: Opens connections under a policy.
        clock: Seconds since the epoch, for servers that name a date to come back at.
        chance: A random number from 0 to 1, so that waits differ.
        heard: Told of each `exchange` with a server (`request` and `response`) and of what `result.select` sees
            (`scope`), without secrets; None when nobody looks on.
    """

    egress: EgressSettings = field(default_factory=EgressSettings)
    secrets: SecretStore | None = None
    allowed_modules: tuple[str, ...] = ()
    mcp: Mapping[str, McpServer] = field(default_factory=dict[str, "McpServer"])
    actions: Mapping[str, Action[..., Any]] = field(default_factory=dict[str, "Action[..., Any]"])
    client: Callable[[EgressPolicy], GuardedClient] = GuardedClient
    clock: Callable[[], float] = time.time  # noqa: TID251 - dates of servers are real time
    chance: Callable[[], float] = SystemRandom().random
    heard: Callable[[str, dict[str, Any]], None] | None = None
    tokens: Tokens = field(default_factory=Tokens)
    throttles: Throttles = field(default_factory=Throttles)
