"""What a text of the library is checked against, and carried out with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from loopagent.actions.build import FileAction
from loopagent.actions.secrets import Credential, Credentials
from loopagent.actions.throttle import Throttles
from loopagent.library.settings import LibrarySettings


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
        settings: How much there may be, and what may be named.
    """

    means: Means
    code: Callable[[], Mapping[str, Action[..., Any]]]
    agents: Callable[[], Mapping[str, AgentSpec]]
    models: Callable[[], frozenset[str]]
    invoker: Invoker
    ask: Ask
    mask: Callable[[str], str]
    clock: Callable[[], float]
    settings: LibrarySettings = field(default_factory=LibrarySettings)
    _throttles: dict[str, Throttles] = field(default_factory=dict[str, Throttles])

    @property
    def secrets(self) -> Mapping[str, Credential] | None:
        """Secrets that the operator set up, by name; None where only a secret itself can be asked for."""
        store = self.means.secrets
        if store is None:
            return {}
        return store.known if isinstance(store, Credentials) else None

    def open_code(self) -> dict[str, Action[..., Any]]:
        """The actions of the process that pipelines of the library may call: low-code ones, and those that are listed.

        Code of the server is the operator's to hand out: it may do things that no tenant should.
        """
        return {
            name: one
            for name, one in self.code().items()
            if name in self.settings.actions or _is_low_code(one)
        }

    def means_for(self, tenant: str, built: Mapping[str, Action[..., Any]]) -> Means:
        """What an action of a tenant may use; tenants do not wait for each other.

        Args:
            tenant: The tenant.
            built: Actions of its library that pipelines may call; those of the process come first.
        """
        throttles = self._throttles.setdefault(tenant, Throttles())
        return replace(self.means, actions={**built, **self.open_code()}, throttles=throttles)


def _is_low_code(action: Action[..., Any]) -> bool:
    return isinstance(action, FileAction) and action.file.run.kind != "python"
