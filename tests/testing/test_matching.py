from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopagent.matching import differences, pattern_problems


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=4).filter(lambda key: "$" not in key), inner, max_size=3)
    ),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("wanted", "got"),
    [
        ({"a": 1}, {"a": 1.0, "b": 2}),
        ([{"a": 1}], [{"a": 1, "b": 2}]),
        ({"$contains": "b"}, "abc"),
        ({"$contains": {"id": 2}}, [{"id": 1}, {"id": 2, "x": 0}]),
        ({"$matches": "^a.c$"}, "abc"),
        ({"$length": 2}, [1, 2]),
        ({"$length": 1}, {"a": 1}),
        ({"a": {"$absent": True}}, {}),
        ({"a": {"$absent": False}}, {"a": 0}),
        ({"a": {"$not": 1}}, {"a": 2}),
        ({"a": {"$not": 1}}, {}),
        ({"$any": True}, 0),
    ],
)
def test_what_fits(wanted: Any, got: Any) -> None:
    assert differences(wanted, got) == []


@pytest.mark.parametrize(
    ("wanted", "got", "lines"),
    [
        (1, True, ["(value): expected 1, got true"]),
        ({"a": {"b": 1}}, {"a": {"b": 2}}, ["a.b: expected 1, got 2"]),
        ({"a": 1}, {}, ["a: expected 1, but it is missing"]),
        ({"a": 1}, [1], ['(value): expected {"a": 1}, got [1]']),
        ([1, 2], [1], ["(value): expected 2 items, got 1: [1]"]),
        ([1, 2], [1, 3], ["[1]: expected 2, got 3"]),
        ({"a": {"$any": True}}, {}, ["a: expected $any true, but it is missing"]),
        ({"a": {"$absent": True}}, {"a": 1}, ["a: expected $absent true, got 1"]),
        ({"a": {"$absent": False}}, {}, ["a: expected $absent false, got nothing"]),
        ({"$contains": "x"}, "abc", ['(value): expected $contains "x", got "abc"']),
        ({"$contains": 1}, "1", ['(value): expected $contains 1, got "1"']),
        ({"$matches": "x"}, 5, ['(value): expected $matches "x", got 5']),
        (
            {"$not": {"a": 1}},
            {"a": 1, "b": 1},
            ['(value): expected $not {"a": 1}, got {"a": 1, "b": 1}'],
        ),
    ],
)
def test_each_difference_names_its_place(wanted: Any, got: Any, lines: list[str]) -> None:
    assert differences(wanted, got) == lines


def test_as_a_whole_nothing_may_be_there_that_is_not_expected() -> None:
    assert differences({"a": {"b": 1}}, {"a": {"b": 1, "c": 2}, "d": 3}, whole=True) == [
        "a.c: not expected, got 2",
        "d: not expected, got 3",
    ]


def test_long_texts_are_shown_from_where_they_part() -> None:
    [line] = differences("a" * 300 + "x", "a" * 300 + "y")
    assert line.startswith("(value): from character 300 on, expected …")
    assert 'x"' in line
    assert len(line) < 400


@pytest.mark.parametrize(
    ("wanted", "problems"),
    [
        (
            {"a": [{"$contain": 1}]},
            [(("a", 0, "$contain"), "unknown operator; did you mean $contains?")],
        ),
        ({"$any": True, "b": 1}, [(("$any",), "an operator stands alone in its object")]),
        ({"$matches": "("}, [(("$matches",), "must be a regular expression")]),
        ({"$length": -1}, [(("$length",), "must be a number from 0 on")]),
        (
            {"$not": {"$what": 1}},
            [
                (
                    ("$not", "$what"),
                    "unknown operator; known: $any, $absent, $contains, $matches, $length, $not",
                )
            ],
        ),
    ],
)
def test_a_wrong_operator_is_found_before_anything_runs(wanted: Any, problems: Any) -> None:
    assert pattern_problems(wanted) == problems


@given(JSON)
def test_everything_fits_itself(value: Any) -> None:
    assert differences(value, value) == []
    assert differences(value, value, whole=True) == []
    assert pattern_problems(value) == []


@given(JSON, JSON)
def test_as_a_whole_only_the_same_json_fits(one: Any, other: Any) -> None:
    same = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    assert (differences(one, other, whole=True) == []) == same
