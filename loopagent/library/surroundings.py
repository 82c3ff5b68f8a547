"""What a text of the library is checked against, and carried out with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from loopagent.actions.secrets import Credential, Credentials
from loopagent.actions.throttle import Throttles


if TYPE_CHECKING:
    from loopagent.action import Action
    from loopagent.actions.means import Means
    from loopagent.core.agent_spec import AgentSpec
    from loopagent.ports import ModelReply, ModelRequest
    from loopagent.runtime.invoke import Invoker

Ask = Callable[["ModelRequest", "str | None"], Awaitable["ModelReply"]]
"""Asks a model, the default one when none is named."""


@dataclass(slots=True)
class Surroundings:
    """What the library needs of the app.

    Args:
        means: What actions may use: egress, secrets, MCP servers.
        code: The actions that the process has itself, of files and Python, by name.
        agents: Definitions of the agents, by name.
        models: Models that actions may name.
        invoker: Carries test calls out.
        ask: Asks a model in a test call.
        mask: Takes known secrets out of a text.
        clock: Seconds since the epoch.
    """

    means: Means
    code: Callable[[], Mapping[str, Action[..., Any]]]
    agents: Callable[[], Mapping[str, AgentSpec]]
    models: Callable[[], frozenset[str]]
    invoker: Invoker
    ask: Ask
    mask: Callable[[str], str]
    clock: Callable[[], float]
    _throttles: dict[str, Throttles] = field(default_factory=dict[str, Throttles])

    @property
    def secrets(self) -> Mapping[str, Credential] | None:
        """Secrets that the operator set up, by name; None where only a secret itself can be asked for."""
        store = self.means.secrets
        if store is None:
            return {}
        return store.known if isinstance(store, Credentials) else None

    def means_for(self, tenant: str, built: Mapping[str, Action[..., Any]]) -> Means:
        """What an action of a tenant may use; tenants do not wait for each other.

        Args:
            tenant: The tenant.
            built: Actions of its library that pipelines may call; those of the process come first.
        """
        throttles = self._throttles.setdefault(tenant, Throttles())
        return replace(self.means, actions={**built, **self.code()}, throttles=throttles)
