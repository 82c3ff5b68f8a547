"""The verbs that only compute, one by one, and paths: values in, values out."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopagent.core.pipeline.moment import moment_at
from loopagent.core.pipeline.paths import MAX_MATCHES, Path, read_path
from loopagent.core.pipeline.values import decoded, describe, mean_of, number_of, same, total_of
from loopagent.core.pipeline.verbs import TABLE, Refusal, operate
from loopagent.core.protocol.pipeline import AgentPipelineRequest
from loopagent.core.protocol.stages import VERBS, StageBase


ORDERS: list[Any] = [
    {"id": 1, "total": 30, "who": {"name": "b"}, "lines": [{"sku": "x"}, {"sku": "y"}]},
    {"id": 2, "total": "7.5", "who": {"name": "a"}, "lines": []},
    {"id": 3, "total": None, "who": {"name": "b"}},
    {"id": 4, "total": 200, "who": {"name": "c"}},
]
TEXT = "alpha\nBeta\r\ngamma\n"


def stage(**fields: Any) -> StageBase:
    steps = [{"tool": "t"}, fields]
    return AgentPipelineRequest.model_validate({"steps": steps}).steps[1]


def run(value: Any, **fields: Any) -> Any:
    before = copy.deepcopy(value)
    made = operate(stage(**fields), value, moment_at(0))
    assert value == before, "a verb changed what it was given"
    return made


def ids(entries: list[Any]) -> list[int]:
    return [one["id"] for one in entries]


def test_every_verb_is_somewhere() -> None:
    assert {one.verb for one in TABLE} | {"tool", "map", "let"} == set(VERBS)


@pytest.mark.parametrize(
    ("fields", "made"),
    [
        ({"where": "total > 5 and who.name != c"}, [1, 2]),
        ({"where": "lines[*].sku contains y"}, [1]),
        ({"sort": "total"}, [2, 1, 4, 3]),
        ({"sort": "-total"}, [4, 1, 2, 3]),
        ({"sort": ["who.name", "-id"]}, [2, 3, 1, 4]),
        ({"sort": "nothing"}, [1, 2, 3, 4]),
        ({"first": 2}, [1, 2]),
        ({"first": 0}, []),
        ({"last": 2}, [3, 4]),
        ({"last": 0}, []),
        ({"last": 9}, [1, 2, 3, 4]),
        ({"distinct": "who.name"}, [1, 2, 4]),
        ({"distinct": ""}, [1, 2, 3, 4]),
        ({"distinct": True}, [1, 2, 3, 4]),
        ({"grep": '"b"'}, [1, 3]),
        ({"grep": {"pattern": "NAME.*B", "ignoreCase": True, "invert": True}}, [2, 4]),
    ],
)
def test_verbs_that_keep_entries(fields: dict[str, Any], made: list[int]) -> None:
    assert ids(run(ORDERS, **fields)) == made
    assert ids(run({"rows": ORDERS}, **fields)) == made


@pytest.mark.parametrize(
    ("value", "fields", "made"),
    [
        (ORDERS, {"select": "id"}, [1, 2, 3, 4]),
        (ORDERS[:1], {"select": ["id"]}, [1]),
        (ORDERS[:1], {"select": ["id", "who.name"]}, [{"id": 1, "name": "b"}]),
        (ORDERS[:1], {"select": ["who.name", "x.name"]}, [{"who.name": "b", "x.name": None}]),
        (ORDERS[:2], {"select": "lines[*].sku"}, [["x", "y"], []]),
        (ORDERS[1:3], {"select": "lines[0].sku"}, [None, None]),
        (ORDERS, {"count": True}, 4),
        ({"a": 1, "b": 2}, {"count": True}, 2),
        ({"rows": [1, 2, 3]}, {"count": True}, 3),
        ("abc", {"count": True}, 3),
        (None, {"count": None}, 0),
        (False, {"count": True}, 1),
        ([1, 1.0, "1", True, {"a": 1, "b": 2}, {"b": 2, "a": 1}], {"distinct": True},
         [1, "1", True, {"a": 1, "b": 2}]),
        ([[1, [2]], 3, []], {"flatten": True}, [1, [2], 3]),
        ([3, 20, "1"], {"sort": "$"}, ["1", 3, 20]),
        ([3, 20, "1x"], {"sort": "$"}, ["1x", 20, 3]),
        (TEXT, {"lines": True}, ["alpha", "Beta", "gamma"]),
        ("", {"lines": True}, []),
        (TEXT, {"grep": "^[a-z]"}, ["alpha", "gamma"]),
        (TEXT, {"head": 2}, "alpha\nBeta"),
        (TEXT, {"tail": 1}, "gamma"),
        (TEXT, {"tail": 0}, ""),
        (TEXT, {"tail": 9}, "alpha\nBeta\ngamma"),
        ({"a": {"b": [1, 2]}}, {"jsonpath": "$.a.b[-1]"}, 2),
        ({"a": {"b": [1, 2]}}, {"jsonpath": "a.b[*]"}, [1, 2]),
        ({"a": {"b": [1, 2]}}, {"jsonpath": "$..b"}, [1, 2]),
        ({"a": {"b": 1}, "c": {"b": 2}}, {"jsonpath": "$.*.b"}, [1, 2]),
        ({"a": {"b": 1}, "b": 2}, {"jsonpath": "$..b"}, [2, 1]),
        ({"a": [{"b": 1}]}, {"jsonpath": "$..*"}, [[{"b": 1}], {"b": 1}, 1]),
        ({"x y": 1}, {"jsonpath": "$['x y']"}, 1),
        ({"rows": [1]}, {"jsonpath": "$.rows"}, [1]),
        ({"rows": [{"a": 1}]}, {"jsonpath": "$[0].a"}, 1),
        ({"a": 1}, {"jsonpath": "$.b"}, None),
        (5, {"jsonpath": "$"}, 5),
    ],
)  # fmt: skip
def test_verbs_that_make_something_new(value: Any, fields: dict[str, Any], made: Any) -> None:
    found = run(value, **fields)
    assert found == made
    assert repr(found) == repr(made), "1 and True are not the same"


def test_group_by() -> None:
    assert run(ORDERS, groupBy="who.name") == [
        {"name": "b", "count": 2},
        {"name": "a", "count": 1},
        {"name": "c", "count": 1},
    ]
    body = {"by": "who.name", "sum": "total", "avg": ["total", "id"], "min": "id", "max": "x"}
    assert run(ORDERS, groupBy=body)[0] == {
        "name": "b", "count": 2, "sum_total": 30, "avg_total": 30, "avg_id": 2, "min_id": 1, "max_x": None,
    }  # fmt: skip
    several = run(ORDERS, groupBy={"by": ["who.name", "other.name"]})
    assert several[0] == {"who.name": "b", "other.name": None, "count": 2}


def test_sums_are_those_of_the_written_numbers() -> None:
    assert total_of([0.1, 0.2]) == 0.3
    assert mean_of([0.1, 0.2]) == 0.15
    assert total_of([1e308, 1e308]) is None
    assert total_of([10**4200]) is None
    assert mean_of([1, 2, 3]) == 2
    assert mean_of([10**3000, 1]) is None
    assert repr(mean_of([2, 4])) == "3"


@pytest.mark.parametrize(
    ("value", "number"),
    [("5", 5), (" -2.50 ", -2.5), ("1e3", 1000.0), (".5", 0.5), ("007", 7), (True, None), ("", None),
     ("5 EUR", None), ("1e999", None), ("NaN", None), ("9" * 50, None), (None, None), ("٣", None)],
)  # fmt: skip
def test_what_counts_as_a_number(value: Any, number: Any) -> None:
    assert number_of(value) == number


def test_equality_is_by_number_or_by_text() -> None:
    assert same(5, "5.0")
    assert not same("5", "5.0")
    assert same(True, "true")
    assert not same(None, "null")
    assert not same(None, 0)
    assert same({"a": [1]}, {"a": [1]})
    assert not same([1], [2])


@pytest.mark.parametrize(
    ("value", "fields", "reason"),
    [
        (
            {"page": 1, "items": [1], "odd key": 2},
            {"where": "a == 1"},
            (
                'where needs a list, got an object with the keys page, items, ["odd key"]; '
                "put jsonpath before it, such as $.items"
            ),
        ),
        ({"odd key": 2}, {"first": 1}, 'such as $["odd key"]'),
        ({}, {"first": 1}, "got an empty object"),
        (None, {"select": "a"}, "select needs a list, got null"),
        ("a\nb", {"last": 1}, "put lines before it"),
        (5, {"flatten": True}, "flatten needs a list, got 5"),
        ([1, 2], {"head": 1}, "head needs text, got a list of 2; use first"),
        ([1, 2], {"tail": 1}, "use last"),
        ([1, 2], {"lines": True}, "it has entries already"),
        (True, {"grep": "x"}, "grep needs text or a list, got true"),
    ],
)
def test_what_does_not_fit_is_said_with_a_way_out(
    value: Any, fields: dict[str, Any], reason: str
) -> None:
    made = run(value, **fields)
    assert isinstance(made, Refusal)
    assert reason in made.message


@pytest.mark.parametrize("text", ["$..*..*..*", "$[*][*][*][*]"])
def test_a_path_that_leads_to_too_much_is_refused(text: str) -> None:
    wide = [[[0] * 60] * 60] * 60
    made = run(wide, jsonpath=text)
    assert isinstance(made, Refusal) or len(made) <= MAX_MATCHES


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "got nothing"),
        ("a[", "character 2"),
        ("a[?(@.b > 1)]", "use where"),
        ("$.a[0:2]", "use where, first, last or select"),
        ("a]b", "character 2"),
        ("a[0]b", "character 5"),
        ("..a", "jsonpath only"),
        ("a." * 300, "at most 500"),
        ("a()", "filters"),
    ],
)
def test_paths_that_cannot_be_read(text: str, reason: str) -> None:
    assert reason in str(read_path(text))


def test_a_path_is_named_by_its_last_key() -> None:
    for text, name in (("a.b", "b"), ("a.b[0]", "b"), ("[0]", "[0]"), ('a["x y"]', "x y")):
        path = read_path(text)
        assert isinstance(path, Path)
        assert path.name == name


def test_text_that_clearly_holds_json_is_read() -> None:
    assert decoded(' {"a": 1}') == {"a": 1}
    assert decoded("[1]") == [1]
    for text in ("5", "{x", "[1e999]", "[NaN]", "[" * 5_000, "[" * 200 + "]" * 200, "plain"):
        assert decoded(text) is text


def test_values_are_described() -> None:
    values = (None, [1], [], {"a": 1}, "ab", 5, False)
    assert [describe(one) for one in values] == [
        "null", "1 entry", "0 entries", "object with 1 key", "text of 2 characters", "5", "false",
    ]  # fmt: skip


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["a", "b", "rows"]), inner, max_size=3),
    max_leaves=12,
)  # fmt: skip
STAGES = [
    {"where": "a > 1 or b contains x or $ == 1"}, {"select": "a"}, {"select": ["a", "b[0]"]}, {"sort": ["-a", "b"]},
    {"first": 1}, {"last": 1}, {"count": True}, {"distinct": "a"}, {"distinct": ""}, {"flatten": True},
    {"groupBy": {"by": "a", "sum": "b", "avg": "b", "min": "b", "max": "b"}}, {"jsonpath": "$..a"},
    {"jsonpath": "$..*"}, {"lines": True}, {"grep": "a"}, {"head": 1}, {"tail": 1},
]  # fmt: skip


@given(JSON, st.lists(st.sampled_from(STAGES), max_size=4))
def test_no_value_is_a_crash(value: Any, stages: list[dict[str, Any]]) -> None:
    for fields in stages:
        value = run(value, **fields)
        if isinstance(value, Refusal):
            assert value.message
            return
        assert json.loads(json.dumps(value, allow_nan=False)) == value
