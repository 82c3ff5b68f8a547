"""An agent in Python: what it is told, which actions it has, what its payload looks like."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeVar, cast

from pydantic import BaseModel, TypeAdapter, ValidationError

from loopagent.action import Action
from loopagent.core.agent_spec import AgentSpec, PayloadSpec, SubAgentSpec
from loopagent.core.child_payload import path_problems
from loopagent.core.problems import problems_of
from loopagent.core.skill_spec import SkillSet
from loopagent.errors import ConfigError
from loopagent.hooks import Hook, checked_hooks
from loopagent.skill import Skill, with_skills


if TYPE_CHECKING:
    from loopagent.app import App
    from loopagent.ports import Model
    from loopagent.runview import RunView

P = TypeVar("P")
NAME: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
"""What an agent may be called."""
MAX_NAME_CHARS: Final = 100
"""Longest name of an agent."""


@dataclass(frozen=True, slots=True)
class Result(Generic[P]):
    """How a run ended, or that it waits.

    `status` is `completed`, `failed`, `cancelled` or `waiting`; `reason` says why it failed. `payload` is an
    instance of the agent's payload type when there is one. `requests` are open requests when it waits.
    """

    run_id: str
    status: str
    message: str
    payload: P
    usage: dict[str, Any]
    reason: str | None = None
    commands: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    requests: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    client_calls: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """Calls of client tools that wait for their answers."""


@dataclass(frozen=True, slots=True)
class SubAgent:
    """An agent as another one may give it work; `options` are fields of `SubAgentSpec`."""

    agent: Agent[Any]
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])


class Agent(Generic[P]):
    """An agent.

    Args:
        name: Lower case letters, digits and hyphens.
        instructions: What it is told about its job; sent as written.
        model: `provider:model`, a model object, or None for the host's default.
        payload: A pydantic model for the payload: its schema must hold at the end, its defaults are the start.
        actions: Functions decorated with `@action`.
        skills: Skills it accepts, as `loopagent.project.load_skill` reads them.
        skill_activation: `auto` lets the model activate skills that allow it too, `requested` only people.
        agents: Agents it may give work to, as they are or as `agent.sub(downstream=[…], upstream=[…])`.
        hooks: Functions that are asked around its runs, see `loopagent.hooks`.
        spec: The whole definition, instead of the parts above.
        **options: Further fields of `AgentSpec`, for example `limits` or `approval`.

    Raises:
        ConfigError: The definition cannot work.
    """

    def __init__(
        self,
        name: str = "",
        *,
        instructions: str = "",
        model: str | Model | None = None,
        payload: type[P] | None = None,
        actions: Iterable[Action[..., Any]] = (),
        agents: Iterable[Agent[Any] | SubAgent] = (),
        skills: Iterable[Skill] = (),
        skill_activation: Literal["none", "requested", "auto"] = "requested",
        hooks: Iterable[Hook] = (),
        spec: AgentSpec | None = None,
        **options: Any,
    ) -> None:
        check_name(name if spec is None else spec.name)
        own = {one.spec.name: one for one in _only_actions(name, actions)}
        accepted = tuple(skills)
        self.actions = with_skills(own.values(), accepted)
        below = [one if isinstance(one, SubAgent) else SubAgent(one) for one in agents]
        self.agents = {one.agent.name: one.agent for one in below}
        self.model_object = None if isinstance(model, str | None) else model
        self.payload_type: TypeAdapter[P] | None = None if payload is None else TypeAdapter(payload)
        if spec is None:
            options["agents"] = sub_agent_specs(name, below)
            options.setdefault("payload", _payload_spec(self.payload_type, payload))
            options["skills"] = SkillSet(
                activation=skill_activation, available=tuple(one.spec for one in accepted)
            )
            spec = _spec(
                name, instructions, model if isinstance(model, str) else None, own, options
            )
        self.hooks = checked_hooks(f"agent {spec.name!r}", hooks)
        around = tuple(one.spec for one in self.hooks)
        if spec.hooks and spec.hooks != around:
            message = (
                f"agent {spec.name!r}: hooks are Python: pass them to Agent or App, not in a file"
            )
            raise ConfigError(message)
        self.spec = spec.model_copy(update={"hooks": around}) if around else spec

    @property
    def name(self) -> str:
        """The agent's name."""
        return self.spec.name

    @property
    def input_schema(self) -> dict[str, Any] | None:
        """What a payload that a caller gives must satisfy, as far as it is known before the run."""
        schema = self.spec.payload.schema_
        return (
            None
            if schema is None
            else {key: one for key, one in schema.items() if key != "required"}
        )

    def employ(self, agents: Iterable[SubAgent]) -> None:
        """Let the agent give work to these, instead of those it had; runs under way keep theirs.

        Raises:
            ConfigError: A term is wrong, or two of them have the same name.
        """
        below = list(agents)
        specs = sub_agent_specs(self.name, below)
        self.agents = {one.agent.name: one.agent for one in below}
        self.spec = self.spec.model_copy(update={"agents": specs})

    def sub(self, **options: Any) -> SubAgent:
        """This agent as another one may give it work.

        Args:
            **options: Fields of `SubAgentSpec`: `downstream`, `upstream`, `scope`, `messages`, `max_messages`,
                `artifacts`, `max_calls`, `questions`.
        """
        return SubAgent(self, options)

    async def run(self, message: str, *, payload: Any = None, **options: Any) -> Result[P]:
        """Run to the end, or until the run waits for a person; nothing is kept afterwards.

        Args:
            message: The task.
            payload: Working data to start with.
            **options: Further arguments of `App.start`.
        """
        async with self._app() as app:
            view = await app.start(self.name, message, payload=payload, **options)
            return self.result(await app.wait(view.id))

    def run_sync(self, message: str, *, payload: Any = None, **options: Any) -> Result[P]:
        """The same from synchronous code.

        Raises:
            RuntimeError: Called inside a running event loop; use `await agent.run(…)` there.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(self.run(message, payload=payload, **options))
        error = "run_sync cannot be used inside a running event loop; use `await agent.run(...)`"
        raise RuntimeError(error)

    async def stream(
        self, message: str, *, payload: Any = None, **options: Any
    ) -> AsyncIterator[dict[str, Any]]:
        """Run and yield the public events, until the run ends or waits for a person."""
        async with self._app() as app:
            view = await app.start(self.name, message, payload=payload, **options)
            async for event in app.events(view.id):
                yield event
                if event["runId"] == view.id and event["type"] in {"run.idle", "run.waiting"}:
                    return

    def result(self, view: RunView) -> Result[P]:
        """A run as a typed result."""
        public = view.public()
        return Result(
            run_id=view.id,
            status="waiting" if view.waiting else view.state.status,
            message=public["message"] or "",
            payload=self._typed(view.state.payload),
            usage=public["usage"],
            reason=public["reason"],
            commands=public["commands"],
            requests=public["requests"],
            client_calls=public["clientCalls"],
        )

    def _typed(self, payload: Any) -> P:
        if self.payload_type is None:
            return cast("P", payload)
        try:
            return self.payload_type.validate_python(payload)
        except ValidationError:
            return cast(
                "P", payload
            )  # a run that did not complete may hold a payload that does not fit yet

    def _app(self) -> App:
        from loopagent.app import App  # noqa: PLC0415 - the app imports this module

        return App(agents=[self], recover=False)


def check_name(name: str) -> None:
    """Refuse a name that would not do in a URL, a file name or a model's reply.

    Raises:
        ConfigError: It has other characters than lower case letters, digits and hyphens.
    """
    if not NAME.fullmatch(name) or len(name) > MAX_NAME_CHARS:
        what = "lower case letters and digits, with single hyphens between"
        message = f"agent {name!r}: a name has {what}, at most {MAX_NAME_CHARS}"
        raise ConfigError(message)


def _only_actions(agent: str, given: Iterable[Any]) -> list[Action[..., Any]]:
    """The actions of an agent; a function that lacks `@action` is an easy mistake to make."""
    actions = list(given)
    for index, one in enumerate(actions):
        if not isinstance(one, Action):
            what = getattr(one, "__name__", type(one).__name__)
            message = f"agent {agent!r}: actions[{index}]: {what} is no action; decorate the function with @action"
            raise ConfigError(message)
    return actions


def sub_agent_specs(name: str, below: Iterable[SubAgent]) -> tuple[SubAgentSpec, ...]:
    """What lies between an agent and its sub-agents.

    Args:
        name: The agent.
        below: Its sub-agents.

    Raises:
        ConfigError: An option is wrong, or two sub-agents have the same name.
    """
    found: dict[str, SubAgentSpec] = {}
    for one in below:
        try:
            sub = SubAgentSpec.model_validate({**one.options, "spec": one.agent.spec})
        except ValidationError as error:
            message = f"agent {name!r}, sub-agent {one.agent.name!r}: {error}"
            raise ConfigError(message) from error
        problems = [*path_problems(sub), *([] if sub.name not in found else ["is listed twice"])]
        if sub.name == name:
            problems.append("an agent cannot give itself work")
        if problems:
            message = f"agent {name!r}, sub-agent {sub.name!r}: {'; '.join(problems)}"
            raise ConfigError(message)
        found[sub.name] = sub
    return tuple(found.values())


def _payload_spec(adapter: TypeAdapter[Any] | None, payload: Any) -> PayloadSpec:
    if adapter is None:
        return PayloadSpec()
    initial: Any = None
    if isinstance(payload, type) and issubclass(payload, BaseModel):
        try:
            initial = payload().model_dump(mode="json", by_alias=True)
        except ValidationError:
            initial = None  # it has required fields: the run starts empty and must fill them
    return PayloadSpec.model_validate({"schema": adapter.json_schema(), "initial": initial})


def _spec(
    name: str,
    instructions: str,
    model: str | None,
    actions: dict[str, Action[..., Any]],
    options: dict[str, Any],
) -> AgentSpec:
    specs = tuple(one.spec for one in actions.values())
    try:
        return AgentSpec(
            name=name, instructions=instructions, model=model, actions=specs, **options
        )
    except ValidationError as error:
        given = {"name": name, "instructions": instructions, "model": model, **options}
        faults = "; ".join(str(one) for one in problems_of(error, given))
        message = f"agent {name!r}: {faults}"
        raise ConfigError(message) from error
