from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from decimal import Decimal
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field, ValidationError

from loopagent.action import Action, ActionContext, action
from loopagent.core.action_spec import ActionRetry
from loopagent.core.params import check_params
from loopagent.errors import ConfigError
from loopagent.typed_params import typing_of


CONTEXT = ActionContext("run-1", "3:action.0")


class Trip(BaseModel):
    city: str
    stops: list[str] = []


@action(effects="read")
async def search(
    context: ActionContext,
    query: str,
    limit: Annotated[int, Field(ge=1, le=50)] = 5,
    json: Trip | None = None,
    _depth: int = Field(3, ge=1),
    tags: list[str] = [],  # noqa: B006 - shared defaults are what is tested
    style: Annotated[str, Field(description="In place.")] = "plain",
) -> list[str]:
    """Search points of interest
    near a place.

    Only for people who read the source.

    Args:
        query (str): What to look for,
            in words.
        limit: How many.
        style: From the docstring.
    """
    tags.append(query)
    return [context.run_id, query, str(limit), str(json), str(_depth), style, *tags]


def test_the_schema_comes_from_the_signature():
    spec = search.spec
    assert (spec.name, spec.effects) == ("search", "read")
    assert spec.description == "Search points of interest near a place."
    properties = spec.parameters["properties"]
    assert list(properties) == ["query", "limit", "json", "_depth", "tags", "style"]
    assert spec.parameters["required"] == ["query"]
    assert spec.parameters["additionalProperties"] is False
    assert "title" not in spec.parameters
    assert properties["query"] == {"type": "string", "description": "What to look for, in words."}
    assert properties["limit"] == {
        "type": "integer",
        "minimum": 1,
        "maximum": 50,
        "default": 5,
        "description": "How many.",
    }
    assert properties["style"]["description"] == "In place."
    assert properties["_depth"] == {"type": "integer", "minimum": 1, "default": 3}
    assert spec.parameters["$defs"]["Trip"]["required"] == ["city"]


def test_arguments_are_typed_and_mutable_defaults_are_new_each_time():
    params = check_params(search.spec.parameters, {"query": "x", "json": {"city": "Porto"}})[0]
    arguments = search.arguments(params, CONTEXT)
    assert arguments["json"] == Trip(city="Porto")
    assert arguments["context"] is CONTEXT
    assert arguments["_depth"] == 3
    first = asyncio.run(search(**search.arguments({"query": "a"}, CONTEXT)))
    second = asyncio.run(search(**search.arguments({"query": "b"}, CONTEXT)))
    assert (first[-1], second[-1]) == ("a", "b")
    assert len(first) == len(second)


def test_arguments_that_do_not_fit_are_refused():
    with pytest.raises(ValidationError):
        search.arguments({"query": "x", "limit": 99}, CONTEXT)
    with pytest.raises(ValidationError):
        search.arguments({"query": "x", "other": 1}, CONTEXT)


class Branch(BaseModel):
    leaves: int = 0
    branches: list[Branch] = []


@action(effects="read")
def graft(stem: Branch, twig: Branch | None = None, most: int = Field(default_factory=int)) -> int:
    """Put a branch onto another."""
    return stem.leaves + (twig.leaves if twig else most)


def test_parameters_may_share_a_type_that_refers_to_itself():
    given = {"stem": {"branches": [{"leaves": "2"}]}, "twig": {"leaves": 3}}
    twig = Branch(leaves=3)
    assert graft.arguments(given, None) == {
        "stem": Branch(branches=[Branch(leaves=2)]),
        "twig": twig,
        "most": 0,
    }
    with pytest.raises(ValidationError) as caught:
        graft.arguments({"stem": {"branches": [{"leaves": "many"}]}}, None)
    assert caught.value.errors()[0]["loc"] == ("stem", "branches", 0, "leaves")


@action
def add(a: int, b: int = 2) -> int:
    """Add.

    :param int a: The first,
        and main one.
    :param b: The second.
    """
    return a + b


def test_the_function_stays_callable():
    assert add(1) == 3
    assert (add.__name__, add.__doc__) == ("add", add.fn.__doc__)
    assert add.__wrapped__ is add.fn
    assert repr(add) == "Action('add', effects='write')"
    assert isinstance(add, Action)
    assert not add.is_async
    assert search.is_async
    assert (search.wants_context, add.wants_context) == (True, False)


def test_rest_docstrings_describe_parameters():
    properties = add.spec.parameters["properties"]
    assert properties["a"]["description"] == "The first, and main one."
    assert properties["b"]["description"] == "The second."


def test_all_options_reach_the_spec():
    made = action(
        name="Add Numbers",
        description="Adds.",
        effects="external",
        approval="ask",
        retry=ActionRetry(max_attempts=3, backoff_seconds=0.5),
        timeout_ms=5_000,
        idempotent=True,
        serial=True,
        max_calls=4,
        on_unknown="ask",
    )(add.fn)
    spec = made.spec
    assert (spec.name, spec.description, spec.effects, spec.approval) == (
        "Add Numbers",
        "Adds.",
        "external",
        "ask",
    )
    assert (spec.retry.max_attempts, spec.timeout_ms, spec.max_calls) == (3, 5_000, 4)
    assert spec.idempotent
    assert spec.serial
    assert spec.on_unknown == "ask"


def test_one_decorator_can_be_used_for_several_functions():
    decorate = action(effects="read", name="same")
    assert decorate(add.fn).spec == decorate(add.fn).spec


def test_an_unannotated_parameter_takes_anything():
    @action
    def any_value(x, y=None):
        return (x, y)

    assert any_value.spec.parameters["properties"] == {"x": {}, "y": {"default": None}}
    assert any_value.arguments({"x": {"a": 1}}, CONTEXT) == {"x": {"a": 1}, "y": None}


def test_a_default_that_is_no_json_stays_in_python():
    marker = object()

    @action
    def with_marker(x: Any = marker, price: Decimal = Decimal("1.10")) -> None: ...

    assert with_marker.spec.parameters["properties"]["x"] == {}
    assert with_marker.spec.parameters["properties"]["price"]["default"] == "1.10"
    assert with_marker.arguments({}, CONTEXT) == {"x": marker, "price": Decimal("1.10")}


def test_the_context_may_be_optional_or_annotated_and_stand_anywhere():
    @action
    def late(x: int, *, context: Annotated[ActionContext | None, "filled in"] = None) -> None: ...

    @action
    def optional(x: int, context: ActionContext | None = None) -> None: ...

    for one in (late, optional):
        assert list(one.spec.parameters["properties"]) == ["x"]
        assert one.arguments({"x": 1}, CONTEXT) == {"x": 1, "context": CONTEXT}


class Shop:
    """Holds a connection."""

    def buy(self, item: str) -> str:
        """Buy it."""
        return f"bought {item}"

    async def abuy(self, item: str) -> str:
        return self.buy(item)

    def __call__(self, item: str) -> str:
        """Call it."""
        return self.buy(item)


def plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator that hides what it wraps, but keeps a trace."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


def test_methods_partials_objects_and_wrapped_functions():
    shop = Shop()
    assert action(shop.buy)("tea") == "bought tea"
    assert action(shop.buy).spec.description == "Buy it."
    assert action(shop.abuy).is_async
    assert action(name="shop")(shop).spec.description == "Call it."
    assert action(name="shop")(shop)("tea") == "bought tea"
    partly = action(name="plus", effects="read")(functools.partial(add.fn, b=5))
    assert partly.spec.description == "Add."
    assert partly.spec.parameters["properties"]["b"]["default"] == 5
    wrapped = action(plain(search.fn))
    assert wrapped.is_async
    assert wrapped.spec.parameters == search.spec.parameters


def test_an_action_without_parameters():
    @action
    def ping() -> str:
        return "pong"

    assert ping.spec.parameters == {
        "type": "object",
        "properties": {},
        "additionalProperties": False,
    }
    assert ping.spec.description == ""
    assert ping.arguments({}, CONTEXT) == {}


def takes_many(*items: int) -> None: ...
def takes_rest(**rest: int) -> None: ...
def takes_position(item: int, /) -> None: ...
def takes_function(item: int, call: Callable[[], int]) -> None: ...
def takes_unknown(item: Unknown) -> None: ...  # type: ignore[name-defined]  # noqa: F821
def takes_look_ahead(item: Annotated[str, Field(pattern="(?=a)")]) -> None: ...
def gives_many():
    yield 1


async def gives_many_async():
    yield 1


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (takes_many, "parameter 'items' is variadic positional; parameters are given by name"),
        (takes_rest, "parameter 'rest' is variadic keyword"),
        (takes_position, "parameter 'item' is positional-only"),
        (takes_function, "parameter 'call': Cannot generate a JsonSchema"),
        (takes_unknown, "name 'Unknown' is not defined; import it where"),
        (takes_look_ahead, "parameter 'item'"),
        (gives_many, "a generator has no result; return a list"),
        (gives_many_async, "a generator has no result; return a list"),
        (Shop.buy, "'self' is not bound; decorate the bound method"),
        (Shop, "only functions can be actions"),
        (3, "only functions can be actions"),
        (lambda: 1, "it has no name"),
        (Shop(), "it has no name"),
    ],
    ids=lambda one: str(one).partition(" at 0x")[0],  # addresses differ between workers
)
def test_what_cannot_be_an_action_is_refused_when_it_is_decorated(function, said):
    with pytest.raises(ConfigError) as caught:
        action(function)
    assert str(caught.value).startswith("action ")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"effects": "reads"}, "effects: "),
        ({"timeout_ms": 3}, "timeout_ms: "),
        ({"timeout": 3}, "timeout: there is no such option; did you mean timeout_ms?"),
        ({"name": " add"}, "name: a name has no control characters"),
        ({"retry": 3}, "retry: "),
    ],
    ids=str,
)
def test_wrong_options_are_refused_with_their_name(options, said):
    with pytest.raises(ConfigError) as caught:
        action(**options)(add.fn)
    assert said in str(caught.value)


def test_the_context_says_who_calls_and_how_long_is_left():
    heard: list[str] = []
    context = ActionContext("r", "1:action.0", turn=1, agent="a", on_progress=heard.append)
    assert context.idempotency_key == "r/1:action.0"
    assert ActionContext("r", "x", idempotency_key="mine").idempotency_key == "mine"
    assert context.seconds_left == context.timeout_seconds == 60.0
    assert not context.cancelled
    context.progress("half")
    CONTEXT.progress("nobody listens")
    assert heard == ["half"]
    context.clock.ends_at, context.clock.stopped = 0.0, True
    assert context.seconds_left == 0.0
    assert context.cancelled
    with pytest.raises(AttributeError):
        context.turn = 2


class _Pair(BaseModel, extra="forbid"):
    p0: int = Field(alias="json")
    p1: str = Field(alias="schema", default="none")


@pytest.mark.parametrize("whole", [_Pair.__pydantic_core_schema__, {"type": "of tomorrow"}, {}])
def test_parameters_are_typed_alike_whatever_pydantic_looks_like_inside(whole: Any) -> None:
    typed = typing_of(_Pair, whole)
    assert typed({"json": "5"}) == {"json": 5, "schema": "none"}
    assert typed({"json": 5, "schema": "x"}) == {"json": 5, "schema": "x"}
    with pytest.raises(ValidationError, match="json"):
        typed({"json": "five"})
