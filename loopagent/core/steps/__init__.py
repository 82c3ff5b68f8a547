"""The types of `nextStep`: one module, one class a type. A new type is one new file in this package.

A class says what a model may ask for (its fields), what that needs (`resolve`), and what the engine does about it
(`resume`). `resume` is a reconcile: given what is known so far it says what is still needed, or that the step is
done. It is called again after every change, so it must be pure and cheap; the engine issues only effects it has
not issued yet. The keys of effects (`action.0`) are a stored format: paused runs hold them.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self, get_args

from loopagent.core.facts import FactData
from loopagent.core.outcomes import Outcomes
from loopagent.core.payload import PayloadChange
from loopagent.core.per_object import PerObject
from loopagent.core.problems import Problem
from loopagent.core.protocol.base import Wire
from loopagent.core.values import value_object


if TYPE_CHECKING:
    from collections.abc import Collection

    from loopagent.core.agent_spec import AgentSpec
    from loopagent.core.effects import Effect
    from loopagent.core.outcome import Outcome
    from loopagent.core.state import MessageKind, RunState


@value_object(frozen=True, slots=True)
class Wait:
    """The step needs these effects settled first; ids are `{turn}:{key}`.

    `facts` are told now, each with the key it belongs to.
    """

    effects: tuple[Effect, ...]
    facts: tuple[tuple[str, FactData], ...] = ()


@value_object(frozen=True, slots=True)
class MadeCall:
    """One call of an action and how it ended."""

    action: str
    params: dict[str, Any]
    outcome: Outcome


@value_object(frozen=True, slots=True)
class Done:
    """The step is finished.

    `calls` are the calls of actions it made, in the order they were asked for: the circuit breaker
    learns from them. `results` become one results message, `said` further messages, `notices` go with
    the engine's other words at the turn boundary. `progress` is False for a step that can bring
    nothing, so that it resets no guard; `failed` means that the step as such failed, whatever its calls
    did. `payload` is what the step wrote. `facts` are told at the end, each with the key it belongs to.
    `ends` completes the run with this message, if its completion policy holds.
    """

    calls: tuple[MadeCall, ...] = ()
    results: tuple[dict[str, Any], ...] = ()
    said: tuple[tuple[MessageKind, str], ...] = ()
    notices: tuple[str, ...] = ()
    progress: bool = True
    failed: bool = False
    payload: PayloadChange | None = None
    facts: tuple[tuple[str, FactData], ...] = ()
    skills: tuple[tuple[str, str | None], ...] = ()
    """Skills that become active, each with the model's reason."""
    passes: int | None = None
    """For a step that makes passes, how many of them went well; `calls` are then only the last ones."""
    ends: str | None = None


STEP_TYPES: dict[str, type[NextStep]] = {}
"""Type name on the wire → class."""


class NextStep(Wire):
    """Base of the step types. Subclasses add `type: Literal["…"]` and their fields."""

    body: ClassVar[tuple[str, ...]] = ()
    """Keys of `nextStep` that belong to this type alone; a filled one tells the type where it is missing."""
    example: ClassVar[dict[str, Any]] = {}
    """A whole reply that uses the type."""
    runs: ClassVar[bool] = True
    """Whether this engine can carry the type out; others are read and refused with a reason."""

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        """Register the class under its wire name.

        Raises:
            TypeError: There is no `type: Literal["Name"]`, or another class has that name.
        """
        super().__pydantic_init_subclass__(**kwargs)
        name = cls.type_name()
        known = STEP_TYPES.get(name, cls)
        if (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
            message = f"step type {name!r} is taken by {known.__module__}.{known.__qualname__}"
            raise TypeError(message)
        STEP_TYPES[name] = cls
        _OFFERED.forget()

    @classmethod
    def type_name(cls) -> str:
        """The name on the wire.

        Raises:
            TypeError: The class has no `type: Literal["Name"]`.
        """
        declared = cls.model_fields.get("type")
        names = get_args(declared.annotation) if declared else ()
        if len(names) != 1 or not isinstance(names[0], str):
            message = f'{cls.__qualname__} needs `type: Literal["Name"]` with one name'
            raise TypeError(message)
        return names[0]

    @classmethod
    def offered(cls, agent: AgentSpec) -> bool:
        """Whether an agent may use the type at all; the prompt names only these."""
        del agent
        return cls.runs

    @classmethod
    def hidden(cls, usable: Collection[str]) -> frozenset[str]:
        """Keys that are of no use to an agent that may use only these types; the prompt leaves them out."""
        del usable
        return frozenset()

    @classmethod
    def shown(cls, agent: AgentSpec) -> bool:
        """Whether the prompt names the type; a type that is offered but not shown is still understood."""
        return cls.offered(agent)

    def resolve(self, run: RunState) -> tuple[Self, list[Problem], list[str]]:
        """Check the request against what the agent has: names, parameters, counts.

        Returns:
            The step with names and parameters as they will be used, all problems, and warnings.
        """
        del run
        return self, [], []

    def opened(self, run: RunState) -> tuple[tuple[str, FactData], ...]:
        """Public events of the moment when the step begins, each with the key that its end will have, too."""
        del run
        return ()

    def request(self) -> dict[str, Any]:
        """The step as canonical JSON, as it is stored."""
        return self.model_dump(by_alias=True, exclude_none=True, mode="json")

    def sameness(self, request: dict[str, Any], reply: Mapping[str, Any]) -> dict[str, Any]:
        """What two steps in a row must have in common to count as a repetition.

        Args:
            request: This step as canonical JSON.
            reply: The whole reply it came with.
        """
        del reply
        return request

    def resume(self, run: RunState, results: Outcomes) -> Wait | Done:
        """Say what is still needed, or that the step is done."""
        raise NotImplementedError

    def batch(self, run: RunState, key: str) -> dict[str, Any]:
        """What a person sees of calls that share one approval; `key` is their `batch`."""
        del run, key
        return {}

    def progress(self) -> FactData | None:
        """How far a long step is, for those who watch."""
        return None

    def abandon(self, run: RunState, results: Outcomes) -> Done | None:
        """What a step that is ended in its middle has brought; None when its results say it all."""
        del run, results
        return None


def open_step(run: RunState) -> NextStep | None:
    """The open step of a run as an object; made from its stored request in a fresh process."""
    if run.step is None:
        return None
    if run.handler is None:
        run.handler = STEP_TYPES[run.step.request["type"]].model_validate(run.step.request)
    handler: NextStep = run.handler
    return handler


def offered(agent: AgentSpec) -> frozenset[str]:
    """Names of the types an agent may use."""
    return _OFFERED(agent)


_OFFERED: PerObject[AgentSpec, frozenset[str]] = PerObject(
    lambda agent: frozenset(
        name
        for name, step in STEP_TYPES.items()
        if step.offered(agent) and (agent.steps is None or name in agent.steps)
    )
)


def shown(agent: AgentSpec) -> frozenset[str]:
    """Names of the types that an agent is told of."""
    return frozenset(name for name in offered(agent) if STEP_TYPES[name].shown(agent))


def _discover() -> None:
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")


_discover()
