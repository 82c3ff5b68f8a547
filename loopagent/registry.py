"""What an app knows by name: its agents, their actions and the models they may be asked with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from loopagent.action import Action
from loopagent.agent import Agent
from loopagent.errors import ConfigError, RequestError
from loopagent.hooks import Hook, checked_hooks
from loopagent.models import open_model
from loopagent.ports import Model


class Registry:
    """Agents and models by name.

    Args:
        agents: The agents that may be run.
        env: Where keys come from.
        base_dir: What relative paths in model names are relative to.
        hooks: Those around the runs of every agent.
    """

    def __init__(
        self,
        agents: Iterable[Agent[Any]],
        *,
        env: Mapping[str, str],
        base_dir: Path | None,
        hooks: Iterable[Hook] = (),
    ) -> None:
        self.hooks = checked_hooks("app", hooks)
        self.agents: dict[str, Agent[Any]] = {}
        for agent in agents:
            self.add(agent)
        self._env = env
        self._base_dir = base_dir

    def add(self, agent: Agent[Any]) -> None:
        """Make an agent and its sub-agents known.

        Raises:
            ConfigError: Another agent has this name.
        """
        if self.agents.setdefault(agent.name, agent) is not agent:
            message = f"there are two agents named {agent.name!r}; rename one"
            raise ConfigError(message)
        for one in agent.agents.values():
            self.add(one)

    def agent(self, name: str) -> Agent[Any]:
        """The agent of a name.

        Raises:
            RequestError: `unknown_agent`.
        """
        known = self.agents.get(name)
        if known is None:
            listed = ", ".join(sorted(self.agents)) or "none"
            raise RequestError(
                "unknown_agent", f"There is no agent {name!r}; known: {listed}.", status=404
            )
        return known

    def open_model(self, name: str) -> Model:
        """A new connection to the model of a name; `object:AGENT` is the object that agent was made with.

        Raises:
            ConfigError: There is no such model, its key is missing, or its object is not in this process.
        """
        kind, _, rest = name.partition(":")
        if kind == "object":
            agent = self.agents.get(rest)
            if agent is None or agent.model_object is None:
                message = f"the model object of agent {rest!r} is not here; start the process that defines it"
                raise ConfigError(message)
            return agent.model_object
        return open_model(name, env=self._env, base_dir=self._base_dir)

    def child_model(self, agent: str, wanted: str | None, above: str) -> str:
        """The model that answers a child run (decision seat A1): its agent's own, else the one its parent has.

        Args:
            agent: Name of the sub-agent.
            wanted: The model its definition names, or None.
            above: The model of the run that gives the work.
        """
        known = self.agents.get(agent)
        if wanted is None and known is not None and known.model_object is not None:
            return f"object:{agent}"
        return wanted or above

    def hooks_of(self, agent: str) -> tuple[Hook, ...]:
        """The code of the hooks around an agent: the app's, then its own."""
        known = self.agents.get(agent)
        return (*self.hooks, *(known.hooks if known is not None else ()))

    def action_of(self, agent: str, name: str) -> Action[..., Any] | None:
        """The code of an action of an agent, or None when it is not in this process."""
        known = self.agents.get(agent)
        return known.actions.get(name) if known is not None else None
