"""Actions in Python: a decorated function with a schema, an effect class and a policy."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import update_wrapper
from typing import Any, Generic, Literal, ParamSpec, TypeVar, cast, get_type_hints, overload

from pydantic import BaseModel, ConfigDict, Field, create_model
from pydantic.errors import PydanticUserError
from pydantic.fields import FieldInfo

from loopagent.core.action_spec import ActionRetry, ActionSpec, EffectClass
from loopagent.errors import ConfigError


P = ParamSpec("P")
R = TypeVar("R")
_REST_PARAM = re.compile(r":param\s+(?:\w+\s+)?(\w+):\s*(.+?)(?=\n\s*:|\Z)", re.DOTALL)
_GOOGLE_PARAM = re.compile(r"^\s+\*{0,2}(\w+)(?:\s*\([^)]*\))?:\s*(.+)$")
_SECTION = re.compile(r"^(Args|Arguments|Parameters|Returns|Raises|Yields|Example|Examples|Note|Notes):\s*$")


@dataclass(frozen=True, slots=True)
class ActionContext:
    """What an action may know about its call; a parameter annotated with this type receives it.

    `idempotency_key` is the same when the call is made again after a crash. `timeout_seconds` is the time allowed.
    """

    run_id: str
    effect_id: str
    turn: int
    agent: str
    idempotency_key: str
    timeout_seconds: float
    on_progress: Callable[[str], None] = field(default=lambda _: None, repr=False)

    def progress(self, text: str) -> None:
        """Tell whoever watches how far the call is; never blocks."""
        self.on_progress(text)


class Action(Generic[P, R]):
    """A callable action: the function itself, its `spec`, and the model that types its parameters."""

    def __init__(self, fn: Callable[P, R], spec: ActionSpec, model: type[BaseModel], context: str | None) -> None:
        self.fn = fn
        self.spec = spec
        self.is_async = inspect.iscoroutinefunction(fn)
        self._model = model
        self._context = context
        update_wrapper(cast("Any", self), fn)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function as if it were not decorated."""
        return self.fn(*args, **kwargs)

    def __repr__(self) -> str:
        """Name and effect class."""
        return f"Action({self.spec.name!r}, effects={self.spec.effects!r})"

    def arguments(self, params: dict[str, Any], context: ActionContext) -> dict[str, Any]:
        """Typed keyword arguments for a call.

        Raises:
            pydantic.ValidationError: A parameter does not fit its type.
        """
        typed = self._model.model_validate(params)
        arguments = {name: getattr(typed, name) for name in type(typed).model_fields}
        if self._context is not None:
            arguments[self._context] = context
        return arguments


@overload
def action(fn: Callable[P, R], /) -> Action[P, R]: ...


@overload
def action(
    *,
    name: str | None = None,
    description: str | None = None,
    effects: EffectClass = "write",
    approval: Literal["auto", "ask", "never"] | None = None,
    retry: ActionRetry | None = None,
    timeout_ms: int = 60_000,
    idempotent: bool = False,
    serial: bool = False,
    max_calls: int | None = None,
    on_unknown: Literal["report", "ask"] = "report",
) -> Callable[[Callable[P, R]], Action[P, R]]: ...


def action(fn: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Make a function an action that agents can call.

    The JSON Schema comes from the signature: types, defaults and `Annotated[..., Field(...)]` as pydantic reads
    them, and the docstring's text for each parameter. The function stays callable as it is.

    Args:
        fn: The function, sync or async.
        **options: `name` (default: the function's), `description` (default: the docstring's first paragraph),
            `effects` (`read`, `write`, `external` or `irreversible`; default `write`), `approval` (`auto`, `ask` or
            `never`; default: the agent's policy), `retry` (`ActionRetry`), `timeout_ms` (milliseconds, default
            60,000), `idempotent`, `serial`, `max_calls` in one run, `on_unknown` (`report` or `ask`).

    Raises:
        ConfigError: The signature cannot be called by name, or a type has no JSON Schema.
    """
    if fn is not None:
        return _make(fn, options)
    return lambda function: _make(function, options)


def _make(fn: Callable[..., Any], options: dict[str, Any]) -> Action[..., Any]:
    summary, texts = read_docstring(inspect.getdoc(fn) or "")
    model, context = _parameters(fn, texts)
    try:
        schema = model.model_json_schema()
        spec = ActionSpec(
            name=options.pop("name", None) or fn.__name__,
            description=options.pop("description", None) or summary,
            parameters=_tidy(schema),
            retry=options.pop("retry", None) or ActionRetry(),
            **options,
        )
    except (ValueError, TypeError, PydanticUserError) as error:
        message = f"action {fn.__qualname__}: {error}"
        raise ConfigError(message) from error
    return Action(fn, spec, model, context)


def _parameters(fn: Callable[..., Any], texts: dict[str, str]) -> tuple[type[BaseModel], str | None]:
    """The pydantic model of a function's parameters, and the name of the one that takes the context."""
    try:
        hints = get_type_hints(fn, include_extras=True)
    except NameError as error:
        message = f"action {fn.__qualname__}: a type cannot be found: {error}"
        raise ConfigError(message) from error
    context: str | None = None
    fields: dict[str, Any] = {}
    for name, parameter in inspect.signature(fn).parameters.items():
        if hints.get(name) is ActionContext:
            context = name
            continue
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            message = f"action {fn.__qualname__}: parameter {name!r} cannot be given by name; use plain parameters"
            raise ConfigError(message)
        fields[name] = (hints.get(name, Any), _default(parameter, texts.get(name)))
    config = ConfigDict(extra="forbid", arbitrary_types_allowed=False)
    try:
        return create_model(f"{fn.__name__}_parameters", __config__=config, **fields), context
    except (PydanticUserError, NameError) as error:
        message = f"action {fn.__qualname__}: {error}"
        raise ConfigError(message) from error


def _default(parameter: inspect.Parameter, text: str | None) -> FieldInfo | Any:
    given = ... if parameter.default is parameter.empty else parameter.default
    if isinstance(given, FieldInfo):
        return given
    return Field(given, description=text) if text else given


def _tidy(value: Any) -> Any:
    """The schema without the titles that pydantic makes up."""
    if isinstance(value, dict):
        schema = cast("dict[str, Any]", value)
        named = isinstance(schema.get("title"), str)
        return {key: _tidy(one) for key, one in schema.items() if not (key == "title" and named)}
    return [_tidy(one) for one in cast("list[Any]", value)] if isinstance(value, list) else value


def read_docstring(text: str) -> tuple[str, dict[str, str]]:
    """The first paragraph of a docstring, and its text for each parameter (Google or reST style)."""
    summary = " ".join(text.strip().split("\n\n")[0].split()) if text.strip() else ""
    texts = {name: " ".join(found.split()) for name, found in _REST_PARAM.findall(text)}
    inside, current = False, ""
    for line in text.splitlines():
        section = _SECTION.match(line.strip()) if line and not line[0].isspace() else None
        if section is not None:
            inside, current = section.group(1) in {"Args", "Arguments", "Parameters"}, ""
        elif inside:
            found = _GOOGLE_PARAM.match(line)
            if found is not None:
                current = found.group(1)
                texts[current] = found.group(2).strip()
            elif current and line.strip():
                texts[current] += " " + line.strip()
    return summary.partition(":param")[0].strip(), texts
