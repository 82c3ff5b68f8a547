"""Hooks: Python functions of the host that are asked before and after runs, turns and actions.

    from loopagent import App, HookCall, add_context, before_action, before_turn, deny

    @before_action(actions=["mail.send"])
    async def only_our_domain(call: HookCall) -> HookAnswer | None:
        if not call.params["to"].endswith("@example.org"):
            return deny("Mail goes to example.org only.")

    App(agents=[...], hooks=[only_our_domain])

A hook is asked once for each occasion; what it said is part of the run's log, so a run that is resumed or replayed
goes on with that. Only a crash between the question and the answer has it asked again.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol, TypeAlias, overload

from loopagent.core.agent_spec import AgentSpec
from loopagent.core.hook_spec import HookPoint, HookSpec
from loopagent.errors import ConfigError


TIMEOUT_SECONDS: Final = 10.0
"""How long a hook may take unless it says otherwise."""
MAX_TIMEOUT_SECONDS: Final = 600.0
ALLOWED: Final[dict[HookPoint, frozenset[str]]] = {
    "before_run": frozenset({"context", "stop"}),
    "before_turn": frozenset({"context", "stop"}),
    "before_action": frozenset({"context", "stop", "deny", "params"}),
    "after_action": frozenset({"context", "stop", "result"}),
    "after_run": frozenset(),
}
"""What a hook may answer at each place. Anything else is an error of the hook."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True, slots=True)
class HookCall:
    """What a hook is told. Its values are copies: changing them changes nothing.

    `message` is the task before a run and the last word after it. `action`, `params` and `call_id` are set around
    actions and client tools; `ok`, `result` and `error` after one, with `media`, the images and files that a client
    brought beside the result, as `{mediaType, bytes, name?}` each; `status` and `reason` after a run.
    """

    point: HookPoint
    run_id: str
    root_run_id: str
    agent: str
    turn: int
    user: str
    tenant: str
    conversation: str
    payload: Any
    message: str = ""
    call_id: str = ""
    action: str = ""
    params: dict[str, Any] = field(default_factory=dict[str, Any])
    ok: bool | None = None
    result: Any = None
    error: dict[str, Any] | None = None
    media: tuple[dict[str, Any], ...] = ()
    status: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class HookAnswer:
    """What a hook wants, made with `add_context`, `stop`, `deny`, `change_params`, `replace_result`; `&` joins two."""

    says: dict[str, Any]

    def __and__(self, other: HookAnswer) -> HookAnswer:
        """Both; the right one counts where they say different things."""
        return HookAnswer({**self.says, **other.says})


def add_context(text: str) -> HookAnswer:
    """Tell the model something; it comes as data of the host, with the next prompt."""
    return HookAnswer({"context": text})


def stop(reason: str) -> HookAnswer:
    """End the run as failed, with reason `hook`."""
    return HookAnswer({"stop": reason})


def deny(reason: str) -> HookAnswer:
    """Refuse a call before it is made; the model is told why."""
    return HookAnswer({"deny": reason})


def change_params(params: dict[str, Any]) -> HookAnswer:
    """Have a call made with other parameters; they must fit the action's schema. A person who is asked sees these."""
    return HookAnswer({"params": params})


def replace_result(result: Any) -> HookAnswer:
    """Put another result in the place of what a call brought, its media included, before it is stored or shown."""
    return HookAnswer({"result": result})


HookFunction: TypeAlias = Callable[[HookCall], HookAnswer | Awaitable[HookAnswer | None] | None]
"""Sync ones run in a thread."""


@dataclass(frozen=True, slots=True)
class Hook:
    """A function with its place."""

    spec: HookSpec
    fn: HookFunction
    timeout_seconds: float = TIMEOUT_SECONDS

    @property
    def is_async(self) -> bool:
        """Whether the function is a coroutine function."""
        return inspect.iscoroutinefunction(self.fn)


class _Decorator(Protocol):
    @overload
    def __call__(self, fn: HookFunction, /) -> Hook: ...

    @overload
    def __call__(
        self,
        fn: None = None,
        /,
        *,
        name: str | None = None,
        actions: Iterable[str] = (),
        timeout_seconds: float = TIMEOUT_SECONDS,
        on_error: Literal["stop", "ignore"] = "stop",
    ) -> Callable[[HookFunction], Hook]: ...


def _decorator(point: HookPoint) -> _Decorator:
    def decorate(
        fn: HookFunction | None = None,
        /,
        *,
        name: str | None = None,
        actions: Iterable[str] = (),
        timeout_seconds: float = TIMEOUT_SECONDS,
        on_error: Literal["stop", "ignore"] = "stop",
    ) -> Any:
        def made(function: HookFunction) -> Hook:
            called = name or str(getattr(function, "__name__", "hook"))
            spec = HookSpec(name=called, point=point, on_error=on_error, actions=tuple(actions))
            _check(spec, timeout_seconds)
            return Hook(spec, function, timeout_seconds)

        return made if fn is None else made(fn)

    decorate.__name__ = point
    return decorate


before_run: Final = _decorator("before_run")
"""Asked before a run's first turn; may add context or stop the run."""
before_turn: Final = _decorator("before_turn")
"""Asked before each call of the planner; may add context or stop the run."""
before_action: Final = _decorator("before_action")
"""Asked before each call of an action or client tool, ahead of people; may change its parameters, refuse it, add
context, or stop the run."""
after_action: Final = _decorator("after_action")
"""Asked when an action has ended, before its result is stored; may replace the result, add context, or stop the run."""
after_run: Final = _decorator("after_run")
"""Told how a run ends, just before that is final; changes nothing."""


def _check(spec: HookSpec, timeout_seconds: float) -> None:
    where = f"hook {spec.name!r}"
    if not _NAME.fullmatch(spec.name):
        message = f"{where}: a name has at most 100 letters, digits and . _ -; pass `name`"
        raise ConfigError(message)
    if not 0 < timeout_seconds <= MAX_TIMEOUT_SECONDS:
        message = f"{where}: timeout_seconds must be above 0 and at most {MAX_TIMEOUT_SECONDS:g}"
        raise ConfigError(message)
    if spec.actions and spec.point not in {"before_action", "after_action"}:
        message = f"{where}: `actions` is for before_action and after_action only"
        raise ConfigError(message)


def checked_hooks(owner: str, hooks: Iterable[Any]) -> tuple[Hook, ...]:
    """The hooks of an app or agent.

    Raises:
        ConfigError: One of them is no hook, or two have the same name and place.
    """
    found = tuple(hooks)
    for index, one in enumerate(found):
        if not isinstance(one, Hook):
            what = getattr(one, "__name__", type(one).__name__)
            message = f"{owner}: hooks[{index}]: {what} is no hook; decorate it, for example with @before_action"
            raise ConfigError(message)
    places = [(one.spec.point, one.spec.name) for one in found]
    twice = next((one for at, one in enumerate(places) if one in places[:at]), None)
    if twice is not None:
        message = f"{owner}: there are two {twice[0]} hooks named {twice[1]!r}; pass `name`"
        raise ConfigError(message)
    return found


def with_hooks(spec: AgentSpec, hooks: tuple[Hook, ...]) -> AgentSpec:
    """The definition with hooks of the app before those of each agent, in sub-agents too."""
    if not hooks:
        return spec
    below = tuple(
        one.model_copy(update={"spec": with_hooks(one.spec, hooks)}) for one in spec.agents
    )
    around = (*(one.spec for one in hooks), *spec.hooks)
    return spec.model_copy(update={"hooks": around, "agents": below})
