"""Actions in Python: a function with a JSON Schema, an effect class and a policy.

The schema comes from the signature. The function stays what it was: calling an `Action` calls it.
"""

from __future__ import annotations

import dis
import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial, update_wrapper
from time import monotonic
from types import UnionType
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    ParamSpec,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    overload,
)

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.errors import PydanticUserError
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import ErrorDetails, SchemaError

from loopagent.code_digest import function_digest
from loopagent.core.action_spec import ActionRetry, ActionSpec, EffectClass
from loopagent.core.asking import Asking
from loopagent.core.docstring import read_docstring
from loopagent.core.names import closest
from loopagent.core.outcome import Outcome
from loopagent.errors import ConfigError
from loopagent.ports import ModelReply, ModelRequest
from loopagent.typed_params import typing_of


P = ParamSpec("P")
R = TypeVar("R")


@dataclass(slots=True)
class CallClock:
    """How one call stands: when it has to be over (monotonic seconds) and whether it was given up."""

    ends_at: float | None = None
    stopped: bool = False


@dataclass(frozen=True)  # without slots: it can be copied more quickly, and is for each call
class ActionContext:
    """What an action may know about its call; a parameter annotated with this type receives it.

    `idempotency_key` is the same for every attempt and after a crash; an empty one becomes
    `{run_id}/{effect_id}`. `timeout_seconds` is the time allowed for all attempts together. `skills` are the
    run's active skills with the hash of the content that was activated.
    """

    run_id: str
    effect_id: str
    turn: int = 0
    agent: str = ""
    idempotency_key: str = ""
    timeout_seconds: float = 60.0
    skills: Mapping[str, str] = field(default_factory=dict[str, str])
    resume: Mapping[str, Any] | None = field(default=None, repr=False)
    """What a person answered to the questions of an earlier attempt; see `AsksPersonError`."""
    put_question: Callable[[dict[str, Any]], Awaitable[dict[str, Any]]] | None = field(
        default=None, repr=False
    )
    """Puts a question to a person while the call goes on, and waits for the answer; see `runtime.held`."""
    on_progress: Callable[[str], None] | None = field(default=None, repr=False)
    clock: CallClock = field(default_factory=CallClock, repr=False, compare=False)
    call: Callable[[Action[..., Any], dict[str, Any], str], Awaitable[Outcome]] | None = field(
        default=None, repr=False
    )
    """Calls another action inside of this call: the action, its parameters, and a name for this call of it."""
    ask: Callable[[ModelRequest, str | None], Awaitable[ModelReply]] | None = field(
        default=None, repr=False
    )
    """Asks a model, the run's when none is named; what it costs counts towards the run."""

    def __post_init__(self) -> None:
        if not self.idempotency_key:
            object.__setattr__(self, "idempotency_key", f"{self.run_id}/{self.effect_id}")

    def progress(self, text: str) -> None:
        """Tell whoever watches how far the call is; never waits, from any thread."""
        if self.on_progress is not None:
            self.on_progress(text)

    @property
    def seconds_left(self) -> float:
        """Time left until the call is given up."""
        if self.clock.ends_at is None:
            return self.timeout_seconds
        return max(0.0, self.clock.ends_at - monotonic())

    @property
    def cancelled(self) -> bool:
        """Whether the call was given up: a synchronous action that takes long looks at this."""
        return self.clock.stopped


@dataclass(frozen=True, slots=True)
class Keeping:
    """How a result is kept and shown when it is not shown whole."""

    summary: Callable[[Any, dict[str, Any]], str] | None = None
    """A text that is shown instead of a long result, of the result and the parameters; empty for its head and tail."""
    always: bool = False
    """Whether it is kept as an artifact however short it is."""
    name: str = ""
    """Name of that artifact; several of one name are versions."""
    media_type: str = ""
    """What it is; empty for JSON, or text where it is one."""


class Action(Generic[P, R]):
    """A callable action.

    Args:
        fn: The function, sync or async.
        spec: What the engine knows about it.
        model: Types the parameters.
        contexts: Names of the parameters that receive the `ActionContext`.
    """

    keeping: Keeping | None = None
    """How a result is kept and shown; None for as usual."""
    __name__: str
    __wrapped__: Callable[P, R]

    def __init__(
        self,
        fn: Callable[P, R],
        spec: ActionSpec,
        model: type[BaseModel],
        contexts: tuple[str, ...] = (),
    ) -> None:
        self.fn = fn
        self.spec = spec
        self.is_async = _is_async(fn)
        self.never_waits = _never_waits(fn)
        self.wants_context = bool(contexts)
        self._model = model
        self._contexts = contexts
        update_wrapper(cast("Any", self), fn)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function as if it were not decorated."""
        return self.fn(*args, **kwargs)

    def __repr__(self) -> str:
        """Name and effect class."""
        return f"Action({self.spec.name!r}, effects={self.spec.effects!r})"

    def arguments(self, params: dict[str, Any], context: ActionContext | None) -> dict[str, Any]:
        """Typed keyword arguments for a call; a mutable default is new for each.

        Args:
            params: JSON object, already checked against the schema.
            context: Given to the parameters that want it; None when there are none.

        Raises:
            pydantic.ValidationError: A parameter does not fit its type.
        """
        arguments = self._typed(params)
        for name in self._contexts:
            arguments[name] = context
        return arguments

    @cached_property
    def _typed(self) -> Callable[[dict[str, Any]], dict[str, Any]]:
        return typing_of(self._model, self._model.__pydantic_core_schema__)


@overload
def action(fn: Callable[P, R], /) -> Action[P, R]: ...


@overload
def action(
    *,
    name: str | None = None,
    description: str | None = None,
    effects: EffectClass = "write",
    approval: Literal["auto", "ask", "never"] | None = None,
    asking: Asking | Mapping[str, Any] | None = None,
    retry: ActionRetry | None = None,
    timeout_ms: int = 60_000,
    idempotent: bool = False,
    serial: bool = False,
    max_calls: int | None = None,
    on_unknown: Literal["report", "ask"] = "report",
) -> Callable[[Callable[P, R]], Action[P, R]]: ...


def action(fn: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Make a function an action that agents can call.

    The JSON Schema comes from the signature: types, defaults and `Annotated[..., Field(...)]` as
    pydantic reads them, and the docstring's text about each parameter. A parameter of type
    `ActionContext` is filled in by the engine and hidden from the model.

    Synchronous functions run in a thread of their own. An `async` function runs on the event loop: it
    must not block, because nothing else moves while it does.

    Args:
        fn: The function, sync or async.
        **options: `name` (default: the function's), `description` (default: the docstring's first
            paragraph), `effects` (`read`, `write`, `external` or `irreversible`; default `write`),
            `approval` (`auto`, `ask` or `never`; default: the agent's policy), `asking` (`Asking`:
            `when`, `show`, `allow_edit`, `expires_seconds`, `on_expiry`, `approvers` and
            `remember` of approvals), `retry` (`ActionRetry`), `timeout_ms` (milliseconds for all
            attempts, default 60,000), `idempotent`, `serial`, `max_calls` in one run, `on_unknown` (`report` or `ask`).

    Raises:
        ConfigError: A parameter cannot be given by name, a type has no JSON Schema, an option is
            wrong.
    """
    return partial(_make, options=options) if fn is None else _make(fn, options)


def _make(fn: Callable[..., Any], options: dict[str, Any]) -> Action[..., Any]:
    given = {key: value for key, value in options.items() if value is not None}
    name = str(given.pop("name", None) or getattr(fn, "__name__", ""))
    label = f"action {name or repr(fn)}"
    _refuse_function(fn, name, label)
    summary, texts = read_docstring(inspect.getdoc(_plain_function(fn)) or "")
    try:
        model, schema, contexts = _parameters(fn, texts)
        body = {"name": name, "description": summary, "parameters": schema, **given}
        spec = _bound(ActionSpec.model_validate(body, by_name=True), fn)
    except NameError as error:
        hint = "import it where the function is defined, not only for type checkers"
        raise ConfigError(f"{label}: a type cannot be found: {error}; {hint}") from error
    except ValidationError as error:
        raise ConfigError(f"{label}: {_complaints(error)}") from error
    except TypeError as error:
        raise ConfigError(f"{label}: {error}") from error
    return Action(fn, spec, model, contexts)


def _bound(spec: ActionSpec, fn: Any) -> ActionSpec:
    """The action bound to the function as it is now, where approvals of it may be remembered."""
    if spec.asking is None or spec.asking.remember == "never":
        return spec
    return spec.model_copy(update={"fingerprint": function_digest(_plain_function(fn))})


def _refuse_function(fn: Any, name: str, label: str) -> None:
    if not callable(fn) or inspect.isclass(fn):
        raise ConfigError(f"{label}: only functions can be actions")
    if inspect.isgeneratorfunction(fn) or inspect.isasyncgenfunction(fn):
        raise ConfigError(f"{label}: a generator has no result; return a list")
    if not name or name == "<lambda>":
        raise ConfigError(f'{label}: it has no name; give it one with @action(name="…")')


def _complaints(error: ValidationError) -> str:
    found = error.errors(include_url=False, include_input=False)
    return "; ".join(f"{'.'.join(map(str, one['loc']))}: {_complaint(one)}" for one in found)


def _complaint(one: ErrorDetails) -> str:
    if one["type"] != "extra_forbidden":
        return one["msg"].removeprefix("Value error, ")
    near = closest(str(one["loc"][-1]), sorted(ActionSpec.model_fields))
    return "there is no such option" + (f"; did you mean {near[0]}?" if near else "")


class _Schema(GenerateJsonSchema):
    """Pydantic's schemas without made-up titles; a default that is no JSON is left out silently."""

    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012 - theirs

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - overridden
        return False


def _parameters(
    fn: Callable[..., Any], texts: dict[str, str]
) -> tuple[type[BaseModel], dict[str, Any], tuple[str, ...]]:
    """The model of a function's parameters, its schema, and who receives the context."""
    hints = get_type_hints(_plain_function(fn), include_extras=True)
    contexts: list[str] = []
    fields: dict[str, Any] = {}
    for index, (name, one) in enumerate(inspect.signature(fn).parameters.items()):
        _refuse_parameter(one, index, annotated=name in hints)
        hint = hints.get(name, Any)
        if _is_context(hint):
            contexts.append(name)
            continue
        base, *extras = get_args(hint) if get_origin(hint) is Annotated else (hint,)
        # Ours comes first: what the author wrote in place wins over the docstring.
        ours = Field(alias=name, description=texts.get(name))
        default = ... if one.default is one.empty else one.default
        # The fields have names of their own, so that a parameter may be called `json` or `schema`.
        fields[f"p{index}"] = (Annotated[(base, ours, *extras)], default)
    try:
        model, schema = _model(fields)
    except _NO_SCHEMA as error:
        faults = [fault for key, one in fields.items() if (fault := _fault(key, one))]
        raise TypeError("; ".join(faults) or str(error)) from error
    return model, schema, tuple(contexts)


_NO_SCHEMA = (PydanticUserError, SchemaError, ValueError)
"""What pydantic raises for a type it cannot validate or describe."""


def _model(fields: dict[str, Any]) -> tuple[type[BaseModel], dict[str, Any]]:
    config = ConfigDict(extra="forbid", protected_namespaces=())
    model = create_model("parameters", __config__=config, **fields)
    schema = model.model_json_schema(schema_generator=_Schema)
    schema.pop("title", None)
    return model, schema


def _fault(key: str, field_: Any) -> str:
    """Which parameter this is and why its type has no schema; nothing when it has one."""
    try:
        _model({key: field_})
    except _NO_SCHEMA as error:
        name = get_args(field_[0])[1].alias
        reason = " ".join(str(error).partition("\n\nFor further")[0].split())
        return f"parameter {name!r}: {reason[:300]}; use types that pydantic can describe as JSON"
    return ""


def _refuse_parameter(one: inspect.Parameter, index: int, *, annotated: bool) -> None:
    if one.kind not in {one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY}:
        hint = "parameters are given by name; use plain ones, or one of type list or dict"
        raise TypeError(f"parameter {one.name!r} is {one.kind.description}; {hint}")
    if index == 0 and not annotated and one.name in {"self", "cls"}:
        raise TypeError(
            f"{one.name!r} is not bound; decorate the bound method: action(object.method)"
        )


def _plain_function(fn: Any) -> Any:
    """The function or method whose annotations count: of a partial its function, of an object `__call__`."""
    while isinstance(fn, partial):
        fn = fn.func
    return fn if inspect.isroutine(fn) else type(fn).__call__


def _is_context(hint: Any) -> bool:
    if get_origin(hint) in {Annotated, Union, UnionType}:
        return any(_is_context(one) for one in get_args(hint))
    return hint is ActionContext


def _is_async(fn: Any) -> bool:
    """Whether calling it gives something to await; decorators that keep `__wrapped__` are seen through."""
    plain = _plain_function(fn)
    return inspect.iscoroutinefunction(plain) or inspect.iscoroutinefunction(inspect.unwrap(plain))


def _never_waits(fn: Any) -> bool:
    """Whether it is an `async` function without anything to wait for: no `await`, `async for` or `async with`."""
    plain = _plain_function(fn)
    if not inspect.iscoroutinefunction(plain):
        return False
    code = getattr(plain, "__code__", None)
    if code is None or not code.co_flags & inspect.CO_COROUTINE:
        return False
    return all(one.opname not in _WAITING for one in dis.get_instructions(code))


_WAITING = frozenset({"GET_AWAITABLE", "GET_ANEXT", "SEND", "YIELD_VALUE"})
"""Instructions in which a coroutine may be suspended."""
