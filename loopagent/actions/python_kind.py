"""Actions of kind `python`: functions in modules that the operator allows, called by the one invoker."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from loopagent.action import Action, action
from loopagent.actions.inside import call_inside
from loopagent.actions.shaping import shape
from loopagent.errors import ConfigError


if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from loopagent.action import ActionContext
    from loopagent.actions.format import ActionFile, PythonRun


def function_of(file: ActionFile, run: PythonRun, allowed: Iterable[str]) -> Action[..., Any]:
    """The function of a file, as an action by itself.

    Args:
        file: The file.
        run: Its `run`.
        allowed: Modules, with all below them, that may be imported.

    Raises:
        ConfigError: It is not allowed, is not there, or cannot be an action.
    """
    module, _, name = run.callable.partition(":")
    known = sorted(allowed)
    if not any(module == one or module.startswith(f"{one}.") for one in known):
        listed = ", ".join(known) or "none"
        raise ConfigError(
            f"the module {module} is not among allowedModules of the settings ({listed})"
        )
    try:
        found: Any = getattr(importlib.import_module(module), name)
    except AttributeError:
        raise ConfigError(f"the module {module} has no function {name!r}") from None
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
        raise ConfigError(f"the module {module} cannot be imported: {said}") from error
    plain = found.fn if isinstance(found, Action) else found
    seconds = run.timeout or file.timeout
    return action(
        name=file.name,
        description=file.description,
        effects=file.effect_class,
        timeout_ms=max(1_000, round(seconds * 1000)),
        idempotent=file.idempotent,
    )(plain)


def python_runner(
    file: ActionFile, function: Action[..., Any]
) -> Callable[[dict[str, Any], ActionContext], Awaitable[Any]]:
    """What carries out calls of a function."""

    async def call(params: dict[str, Any], context: ActionContext) -> Any:
        value = await call_inside(context, function, params, "function")
        return shape(file, {"result": value, "params": params}, value)

    return call
