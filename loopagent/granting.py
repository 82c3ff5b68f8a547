"""The library of an app: made when it is first needed, since most processes that only run agents never do."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from loopagent.errors import ConfigError
from loopagent.intake import DEFAULT_MODEL_VARIABLE, check_named


if TYPE_CHECKING:
    from loopagent.access import Caller
    from loopagent.action import Action
    from loopagent.actions.means import Means
    from loopagent.agent import Agent
    from loopagent.core.agent_spec import AgentSpec
    from loopagent.library.service import Library
    from loopagent.library.settings import LibrarySettings
    from loopagent.ports import ModelReply, ModelRequest, Store
    from loopagent.redaction import Redactor
    from loopagent.runtime.invoke import Invoker
    from loopagent.runtime.perform import Performer


class Granting:
    """What an app does with actions that are built in the page; its parts are those of `Hosting`."""

    store: Store
    agents: dict[str, Agent[Any]]
    redactor: Redactor
    _clock: Callable[[], float]
    _default_model: str | None
    _invoker: Invoker
    _library_settings: LibrarySettings | None
    _means: Means | None
    _more_actions: dict[str, Action[..., Any]]
    _performer: Performer

    @property
    def actions(self) -> dict[str, Action[..., Any]]:
        """The actions that the process has itself, of agents and others, by name."""
        used = {name: one for agent in self.agents.values() for name, one in agent.actions.items()}
        return {**used, **self._more_actions}

    @cached_property
    def library(self) -> Library:
        """The actions that are built in the page."""
        from loopagent.actions.means import Means  # noqa: PLC0415 - see above
        from loopagent.library.service import Library  # noqa: PLC0415
        from loopagent.library.settings import LibrarySettings  # noqa: PLC0415
        from loopagent.library.surroundings import Surroundings  # noqa: PLC0415

        around = Surroundings(
            means=self._means or Means(),
            code=lambda: self.actions,
            agents=lambda: {name: one.spec for name, one in self.agents.items()},
            models=self._models,
            invoker=self._invoker,
            ask=self._ask,
            mask=self.redactor.mask,
            clock=self._clock,
            settings=self._library_settings or LibrarySettings(),
        )
        return Library(self.store, around)

    async def offered(self, spec: AgentSpec, tenant: str) -> AgentSpec:
        """The definition of an agent with what the library of a tenant gives it, and those below it."""
        live = await self.store.published(tenant)
        return await self.library.definitions.granted(spec, tenant, live) if live else spec

    def check_model(self, model: str | None, caller: Caller) -> None:
        """Refuse a model that only whoever runs the server may choose.

        Raises:
            RequestError: `model_override`.
        """
        if model is not None and not caller.is_operator:
            check_named(model, self._models())

    async def _built(self, tenant: str, digest: str) -> Action[..., Any] | None:
        """The action that a run was given of the library."""
        return await self.library.definitions.action(tenant, digest)

    def _models(self) -> frozenset[str]:
        """Models that actions of the library may name: those that agents use, and those of the settings."""
        specs = [one.spec for one in self.agents.values()]
        named = [self._default_model, *self.library.settings.models]
        named += [name for one in specs for name in (one.model, *one.fallback_models)]
        return frozenset(one for one in named if one)

    async def _ask(self, request: ModelRequest, model: str | None) -> ModelReply:
        """Ask a model in a test call of an action; none of a run's budget is spent."""
        name = model or self._default_model
        if name is None:
            raise ConfigError(f"no model is configured; set {DEFAULT_MODEL_VARIABLE}")
        return await self._performer.models.open(name).generate(request)
