"""What an app is made of, and how it is opened and closed."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Self

from loopagent import resources
from loopagent.action import Action
from loopagent.agent import Agent
from loopagent.controlling import Controlling
from loopagent.conversations import Conversations
from loopagent.core.agent_spec import AgentSpec
from loopagent.core.state import RunState
from loopagent.egress import EgressSettings
from loopagent.granting import Granting
from loopagent.hooks import Hook
from loopagent.inbox import Inbox
from loopagent.intake import (
    DEFAULT_MODEL_VARIABLE,
)
from loopagent.keys import Keys
from loopagent.memory import Memory
from loopagent.models import embedder_of
from loopagent.notifications import TELLS_NOBODY, NotificationSettings
from loopagent.ports import Store
from loopagent.redaction import Redactor, secrets_of
from loopagent.registry import Registry
from loopagent.runtime.attempts import RetryPolicy
from loopagent.runtime.bus import Bus
from loopagent.runtime.dispatch import Dispatcher
from loopagent.runtime.engine import Engine
from loopagent.runtime.invoke import Invoker
from loopagent.runtime.leases import LEASE_SECONDS, Leases, owner_name
from loopagent.runtime.looking import Looker
from loopagent.runtime.model_calls import ModelCalls
from loopagent.runtime.perform import Performer
from loopagent.runtime.retention import Retention, keep_away
from loopagent.runtime.similar import Embedder, Similar
from loopagent.runtime.structured import Schemas, StructuredMode, structured_mode
from loopagent.runview import RunView
from loopagent.stores import open_store
from loopagent.telemetry import Telemetry, found
from loopagent.triggers import Triggers, TriggerSpec


if TYPE_CHECKING:
    from loopagent.actions.means import Means
    from loopagent.library.settings import LibrarySettings
    from loopagent.notifications.service import Notifications


class Hosting(Controlling, Granting):
    """Agents, a store and the engine that runs them; the arguments are those of `App`."""

    def __init__(
        self,
        *,
        agents: Iterable[Agent[Any]] = (),
        store: Store | str = "memory://",
        model: str | None = None,
        env: Mapping[str, str] | None = None,
        base_dir: Path | None = None,
        retry: RetryPolicy | None = None,
        structured: StructuredMode | None = None,
        secrets: Iterable[str] = (),
        retention: Retention | None = None,
        hooks: Iterable[Hook] = (),
        secret_values: Iterable[str] = (),
        embedder: Embedder | str | None = None,
        actions: Iterable[Action[..., Any]] = (),
        clock: Callable[[], float] = time.time,
        recover: bool = True,
        work: bool = True,
        max_runs: int | None = None,
        lease_seconds: float = LEASE_SECONDS,
        grace_seconds: float = 0.0,
        triggers: Iterable[TriggerSpec] = (),
        notifications: NotificationSettings | None = None,
        egress: EgressSettings | None = None,
        means: Means | None = None,
        library: LibrarySettings | None = None,
        telemetry: Telemetry | None = None,
    ) -> None:
        self.store = open_store(store) if isinstance(store, str) else store
        self.env = os.environ if env is None else env
        self._default_model = model or self.env.get(DEFAULT_MODEL_VARIABLE)
        self._registry = Registry(agents, env=self.env, base_dir=base_dir, hooks=hooks)
        self.agents = self._registry.agents
        self._more_actions = {one.spec.name: one for one in actions}
        self._recover, self._retention = recover, retention or Retention()
        self._clock, self._grace_seconds, self.bus = clock, grace_seconds, Bus()
        triggers, told = tuple(triggers), notifications or TELLS_NOBODY
        hidden = (*secret_values, *told.secret_values(self.env))
        self.redactor = self._make_redactor(secrets, hidden, triggers)
        self.telemetry = (telemetry or found(self.env)).connect(self.bus, self.redactor.mask)
        self._invoker = Invoker(mask=self.redactor.mask)
        self._means, self._library_settings = means, library
        self._performer = self._make_performer(retry, structured, embedder)
        self.owner = owner_name(token_hex(4))
        self._leases = Leases(self.store, self.owner, clock, lease_seconds=lease_seconds)
        self.engine = self._make_engine(work=work, claim=work and recover, most=max_runs)
        self.conversations = Conversations(self.store, self.engine, clock)
        self.triggers = self._with_triggers(triggers)
        self.notifications = self._with_notifications(told, egress)

    _background: list[asyncio.Task[None]]
    owner: str
    """The name that this app signs leases with."""
    opened = False
    closing = False
    """Whether it is being stopped."""
    start: Callable[..., Awaitable[RunView]]
    cancel: Callable[..., Awaitable[RunView]]
    answer: Callable[..., Awaitable[RunView]]

    def _make_engine(self, *, work: bool, claim: bool, most: int | None) -> Engine:
        engine = Engine(
            store=self.store,
            performer=self.telemetry.performer(self._performer),
            bus=self.bus,
            leases=self._leases,
            model_of=self._registry.child_model,
            clock=self._clock,
            works=work,
        )
        self.store.watch(engine.elsewhere.hear)
        if claim:
            engine.elsewhere.dispatcher = Dispatcher(
                engine, self.store, self._leases, self._clock, most=most
            )
        return engine

    def _make_performer(
        self,
        retry: RetryPolicy | None,
        structured: StructuredMode | None,
        embedder: Embedder | str | None,
    ) -> Performer:
        return Performer(
            store=self.store,
            bus=self.bus,
            invoker=self._invoker,
            models=ModelCalls(
                self.telemetry.models(self._registry.open_model),
                template=resources.prompt("system.md.j2"),
                bus=self.bus,
                redactor=self.redactor,
                retry=retry,
                schemas=Schemas(structured or structured_mode(self.env)),
            ),
            action_of=self._registry.action_of,
            built_of=self._built,
            clock=self._clock,
            redactor=self.redactor,
            hooks_of=self._registry.hooks_of,
            similar=Similar(embedder_of(embedder, self.env)),
        )

    async def code_of(self, state: RunState, action: str) -> Action[..., Any] | None:
        """The code of an action of a run; None when it is not to be had here any more."""
        return await self._performer.at_hand.action(state, action)

    def _make_redactor(
        self, secrets: Iterable[str], values: Iterable[str], triggers: Iterable[TriggerSpec]
    ) -> Redactor:
        names = [*secrets, *(name for one in triggers for name in one.secret_names)]
        return Redactor([*secrets_of(self.env, names), *values])

    def _with_triggers(self, specs: Iterable[TriggerSpec]) -> Triggers:
        made = Triggers(
            specs,
            store=self.store,
            start=self.start,
            cancel=self.cancel,
            clock=self._clock,
            env=self.env,
            mask=self.redactor.mask,
            heard=self.telemetry.delivery,
        )
        made.check(self.agents)
        return made

    def _with_notifications(
        self, settings: NotificationSettings, egress: EgressSettings | None
    ) -> Notifications:
        # What sends is loaded with the first app, so that naming agents does not wait for it.
        from loopagent.notifications.full import Shown  # noqa: PLC0415
        from loopagent.notifications.senders import Senders  # noqa: PLC0415
        from loopagent.notifications.service import Notifications  # noqa: PLC0415

        made = Notifications(
            settings,
            store=self.store,
            senders=Senders(settings, egress or EgressSettings(), self.env),
            clock=self._clock,
            env=self.env,
            mask=self.redactor.mask,
            shows=Shown(self.store, self._show_run, self.redactor.mask),
        )
        if self._recover:
            made.check()
        self.bus.notify = made.wake
        return made

    async def _show_run(self, run_id: str) -> dict[str, Any]:
        return (await self.get(run_id)).public()

    def add(self, agent: Agent[Any]) -> None:
        """Make an agent known.

        Raises:
            ConfigError: Another agent has this name.
        """
        self._registry.add(agent)

    def model_of(self, agent: Agent[Any]) -> str | None:
        """`provider:model` that answers runs of an agent for which nobody names another one; None if nothing does."""
        given = agent.model_object
        return given.name if given is not None else agent.spec.model or self._default_model

    async def __aenter__(self) -> Self:
        """Open the store and take up what was left in the middle."""
        await self.store.open()
        self.opened = True
        self._background = []
        heartbeat = asyncio.create_task(self._leases.renew(), name="leases")
        dispatcher = self.engine.elsewhere.dispatcher
        if dispatcher is not None:
            await dispatcher.look()
            self._background.append(asyncio.create_task(dispatcher.run(), name="dispatcher"))
            if self._retention.any:
                keeping = keep_away(self.store, self._retention, self._clock)
                self._background.append(asyncio.create_task(keeping, name="retention"))
        if self._recover and self.triggers.specs:
            self._background.append(asyncio.create_task(self.triggers.watch(), name="triggers"))
        if self._recover:
            watch = asyncio.create_task(self.notifications.watch(), name="notifications")
            self._background.append(watch)
        self._background.append(heartbeat)  # the last to stop
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Stop working; what is pending stays pending for the next start."""
        self.opened, self.closing = False, True
        self.bus.wake_all()
        *background, heartbeat = self._background
        for task in background:
            task.cancel()
        await asyncio.gather(*background, return_exceptions=True)
        await self.engine.aclose(self._grace_seconds)
        heartbeat.cancel()
        await asyncio.gather(heartbeat, return_exceptions=True)
        parts = (self._leases, self._performer, self._invoker, self.store)
        for part in (*parts, self.telemetry):
            await part.aclose()

    def system(self, spec: AgentSpec) -> str:
        """The system prompt of a definition."""
        return self._performer.models.system(spec)

    @property
    def memory(self) -> Memory:
        """The notes that agents keep."""
        return Memory(self.store, self.redactor.mask, self._clock)

    @property
    def looker(self) -> Looker:
        """Looks into artifacts."""
        return self._performer.looker

    @property
    def keys(self) -> Keys:
        """The API keys of callers, and their sessions."""
        return Keys(self.store, self._clock)

    @property
    def inbox(self) -> Inbox:
        """What people do with requests beside deciding them."""
        return Inbox(self.store, self.engine, self._clock, self.answer)

    def now(self) -> float:
        """Seconds since the epoch, by the app's clock."""
        return self._clock()
