from __future__ import annotations

import collections
import dataclasses
import datetime as dt
import decimal
import enum
import ipaddress
import json
import pathlib
import types
import uuid
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AnyUrl, BaseModel, Field, RootModel, SecretStr, field_serializer

from loopagent.core.jsonable import NotJsonError, TooLargeError, storable, to_jsonable


class Colour(enum.Enum):
    RED = "red"
    DAY = dt.date(2026, 1, 2)


class Level(enum.IntEnum):
    HIGH = 3


class Word(enum.StrEnum):
    A = "a"


class Text(str):
    __slots__ = ()


class Whole(int):
    pass


class Number(float):
    pass


@dataclasses.dataclass
class Point:
    x: int
    y: Any = None


class Pair(NamedTuple):
    left: int
    right: set[int]


class Order(BaseModel):
    order_id: int = Field(alias="orderId")
    total: Decimal = Decimal("1.10")
    raw: bytes = b"\xff"
    key: SecretStr = SecretStr("tok-CANARY-1")


class Tags(RootModel[set[str]]):
    pass


class Broken(BaseModel):
    a: int = 1

    @field_serializer("a")
    def _fail(self, value: int) -> int:
        raise RuntimeError(f"no {value}")


class Tuple(tuple[int, ...]):
    __slots__ = ()


PLUS_2 = dt.timezone(dt.timedelta(hours=2))
FORMS: list[tuple[Any, Any]] = [
    (None, None),
    (True, True),
    (-3, -3),
    (2**70, 2**70),
    (1.5, 1.5),
    ("naïve 😀", "naïve 😀"),
    (dt.datetime(2026, 1, 2, 3, 4, 5, 600), "2026-01-02T03:04:05.000600"),
    (dt.datetime(2026, 1, 2, 3, 4, tzinfo=dt.UTC), "2026-01-02T03:04:00Z"),
    (dt.datetime(2026, 1, 2, 3, 4, tzinfo=PLUS_2), "2026-01-02T03:04:00+02:00"),
    (dt.date(2026, 1, 2), "2026-01-02"),
    (dt.time(3, 4), "03:04:00"),
    (dt.timedelta(days=1, seconds=3), "P1DT3S"),
    (Decimal("1.10"), "1.10"),
    (Decimal("1E+30"), "1E+30"),
    (uuid.UUID(int=7), "00000000-0000-0000-0000-000000000007"),
    (pathlib.PurePosixPath("/a/b"), "/a/b"),
    (AnyUrl("https://example.org/a"), "https://example.org/a"),
    (ipaddress.ip_address("::1"), "::1"),
    (1 + 2j, "1+2j"),
    (b"\x00\xff", {"$bytes": "AP8="}),
    (bytearray(b"a"), {"$bytes": "YQ=="}),
    (memoryview(b"a"), {"$bytes": "YQ=="}),
    ((1, "a"), [1, "a"]),
    (Tuple((1, 2)), [1, 2]),
    (collections.deque([1]), [1]),
    (range(3), [0, 1, 2]),
    ({3, 1, 2}, [1, 2, 3]),
    (frozenset({"b", "a"}), ["a", "b"]),
    ({1, "a", None}, ["a", 1, None]),
    ({"b": 1, "a": 2}.keys(), ["a", "b"]),
    ({"b": 1, "a": 2}.values(), [1, 2]),
    ({"a": {1: [Point(1)]}}, {"a": {"1": [{"x": 1, "y": None}]}}),
    (types.MappingProxyType({"a": 1}), {"a": 1}),
    (collections.OrderedDict(b=1, a=2), {"b": 1, "a": 2}),
    ({1: "i", 2.5: "f", True + 1: "b", None: "n"}, {"1": "i", "2.5": "f", "2": "b", "null": "n"}),
    ({(1, "a"): 0, dt.date(2026, 1, 2): 1, Word.A: 2}, {'[1,"a"]': 0, "2026-01-02": 1, "a": 2}),
    ({True: 1}, {"true": 1}),
    (Pair(1, {2}), {"left": 1, "right": [2]}),
    (Colour.RED, "red"),
    (Colour.DAY, "2026-01-02"),
    (Level.HIGH, 3),
    (Word.A, "a"),
    (Text("t"), "t"),
    (Whole(3), 3),
    (Number(0.5), 0.5),
    (
        Order(orderId=1),
        {"orderId": 1, "total": "1.10", "raw": {"$bytes": "/w=="}, "key": "**********"},
    ),
    (Tags({"b", "a"}), ["a", "b"]),
    (KeyError("x"), "KeyError: 'x'"),
    (ValueError("wrong"), "ValueError: wrong"),
]


@pytest.mark.parametrize(
    ("value", "form"),
    FORMS,
    ids=[f"{number}-{type(one[0]).__name__}" for number, one in enumerate(FORMS)],
)
def test_every_kind_of_value_has_one_form_that_survives_storage(value, form):
    got = to_jsonable(value)
    assert got == form
    assert type(got) is type(form)
    stored = json.dumps(got, allow_nan=False)
    assert json.loads(stored) == got
    assert to_jsonable(json.loads(stored)) == got


def test_the_form_shares_nothing_with_the_value():
    inner = [1]
    form = to_jsonable({"a": inner})
    inner.append(2)
    assert form == {"a": [1]}


def cycle() -> list[Any]:
    value: list[Any] = []
    value.append({"k": value})
    return value


def deep(levels: int) -> Any:
    value: Any = []
    for _ in range(levels):
        value = [value]
    return value


class Node(BaseModel):
    next: Node | None = None


def model_cycle() -> Node:
    node = Node()
    node.next = node
    return node


def generator() -> Iterator[int]:
    yield 1


async def coroutine() -> int:
    return 1


NONE: list[tuple[Any, str]] = [
    (float("nan"), "result: nan is not a JSON number"),
    ({"a": [1, {"b": float("-inf")}]}, "result.a[1].b: -inf is not"),
    (Decimal("NaN"), "result: NaN is not a number"),
    (10**5_000, "result: the number has too many digits"),
    ({"x": 1, 1: 2, "1": 3}, "result: two keys become '1'"),
    ([{"a": {b"a": 1, (object(),): 2}}], "result[0].a: a key of type tuple: object has no"),
    (cycle(), "result[0].k: it refers to itself"),
    (deep(100), "it is nested more than 100 levels deep"),
    (deep(50_000), "it is nested more than 100 levels deep"),
    (model_cycle(), "result: Node cannot be dumped"),
    (Broken(), "no 1"),
    (generator(), "result: generator can be read only once; return its values as a list"),
    ({"m": map(str, [1])}, "result.m: map can be read only once"),
    (object(), "result: object has no JSON form; return text, numbers"),
    (int, "result: type has no JSON form"),
    (Point, "result: type has no JSON form"),
    (len, "has no JSON form"),
    (pathlib.Path, "result: type has no JSON form"),
    ([Point(1, {2, object})], "result[0].y"),
]


@pytest.mark.parametrize(("value", "said"), NONE, ids=[str(number) for number in range(len(NONE))])
def test_what_has_no_form_is_refused_with_its_place(value, said):
    with pytest.raises(NotJsonError) as caught:
        to_jsonable(value)
    assert said in str(caught.value)


def test_a_coroutine_that_was_not_awaited_is_named():
    pending = coroutine()
    with pytest.raises(NotJsonError, match="coroutine was returned without being awaited"):
        to_jsonable(pending)
    pending.close()


def test_arrays_of_other_libraries_are_told_how_to_convert():
    class Array:
        def tolist(self) -> list[int]:
            return []

    with pytest.raises(NotJsonError, match=r"return its tolist\(\)"):
        to_jsonable(Array())


def test_the_same_object_twice_is_no_cycle():
    shared = [1]
    assert to_jsonable({"a": shared, "b": shared}) == {"a": [1], "b": [1]}


def test_text_that_no_store_can_hold_is_replaced_everywhere():
    assert storable("a\x00b\ud800c😀") == "a\ufffdb\ufffdc😀"
    assert to_jsonable({"k\x00": ["\udfff"]}) == {"k\ufffd": ["\ufffd"]}


def test_a_text_function_sees_every_text():
    def mask(text: str) -> str:
        return text.replace("secret", "***")

    value = {"secret": [Text("a secret"), KeyError("secret")], "n": 1}
    assert to_jsonable(value, text=mask) == {"***": ["a ***", "KeyError: '***'"], "n": 1}


@pytest.mark.parametrize(
    ("value", "size"),
    [
        ("a" * 98, 100),
        ("é" * 49, 100),
        (["\n" * 48], 100),
        (list(range(10)), 21),
        (b"abc" * 20, 93),
    ],
    ids=["ascii", "utf8", "escapes", "numbers", "bytes"],
)
def test_the_size_limit_is_exact(value, size):
    assert to_jsonable(value, max_bytes=size) is not None
    with pytest.raises(TooLargeError, match="bytes as JSON"):
        to_jsonable(value, max_bytes=size - 1)


def test_a_large_key_is_too_large_as_well():
    with pytest.raises(TooLargeError):
        to_jsonable({("k" * 200,): 1}, max_bytes=100)


def test_a_large_value_is_given_up_early():
    class Rows(list[int]):
        read = 0

        def __iter__(self):
            for number in range(10_000_000):
                Rows.read += 1
                yield number

    with pytest.raises(TooLargeError):
        to_jsonable(Rows(), max_bytes=1_000)
    assert Rows.read < 1_000


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00")),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00")),
            inner,
            max_size=4,
        )
    ),
    max_leaves=30,
)


@given(PLAIN)
def test_json_stays_as_it_is_and_its_size_is_known(value):
    assert to_jsonable(value) == value
    size = len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())
    assert to_jsonable(value, max_bytes=size) == value
    with pytest.raises(TooLargeError):
        to_jsonable(value, max_bytes=size - 1)


@given(
    st.sets(
        st.integers()
        | st.text(max_size=3)
        | st.none()
        | st.booleans()
        | st.decimals(allow_nan=False)
    )
)
def test_sets_come_in_one_order(value):
    try:
        form = to_jsonable(value)
    except NotJsonError:  # an infinite decimal
        assert any(isinstance(one, decimal.Decimal) for one in value)
        return
    assert form == to_jsonable(frozenset(list(value)[::-1]))
