"""Conditions of `where`: what they mean, and what is said about those that cannot be read."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopagent.core.pipeline.moment import moment_at
from loopagent.core.pipeline.predicates import read_predicate


ENTRY: dict[str, Any] = {
    "total": 120,
    "text": "120.50",
    "name": "Ann Lee",
    "state": "on hold",
    "done": True,
    "gone": None,
    "tags": ["new", 5],
    "due": "2024-03-05",
    "not_paid": 1,
    "order": 2,
    "in": 3,
    "a.b": "dotted",
    "first name": "Ann",
    "who": {"city": "Rome", "list": [{"n": 1}, {"n": 2}]},
}
MOMENT = moment_at(1_709_251_199)


def holds(source: str, entry: Any = None) -> bool:
    predicate = read_predicate(source)
    assert not isinstance(predicate, str), predicate
    return predicate.holds(ENTRY if entry is None else entry, MOMENT)


@pytest.mark.parametrize(
    "source",
    [
        "total > 100",
        "total>=120",
        "total == 120",
        "total = '120'",
        "total === 120.0",
        "total <> 5",
        "total !== 5",
        "text > 99",  # a number in text is compared as a number
        "text == 120.5",
        "state == 'on hold'",
        'name contains "Lee"',
        "name CONTAINS Lee",
        "tags contains new",
        "tags contains '5'",
        "who contains city",
        "name startsWith Ann and name endsWith Lee",
        r"name matches '^A\w+ L'",
        "state in [open, 'on hold']",
        "state in ('on hold')",
        "total in [1, 120]",
        "state not in [open, closed]",
        "not state in [open]",
        "name not contains Bob",
        "done == true",
        "done == TRUE",
        "gone == null",
        "gone is null",
        "missing is null",
        "done is not null",
        "missing.deep == null",
        "not gone != null",
        "who.city == Rome",
        "who.list[0].n == 1",
        "who.list[-1].n == 2",
        "who.list[*].n contains 2",
        '["first name"] == Ann',
        "a.b == dotted",  # a key with a dot is found as it is
        "$.total == 120",
        "@.who.city == Rome",
        "not_paid == 1 and order == 2 and in == 3",
        "due > today",
        "due > now",
        "due >= 2024-03-05",
        "total > 500 or total < 200 and done == true",
        "(total > 500 or total < 200) and done == true",
        "total > 1 && (done == false || done == true)",
        "!(total > 500)",
        "not not total > 1",
        "(((total > 1)))",
    ],
)
def test_conditions_that_hold(source: str) -> None:
    assert holds(source)


@pytest.mark.parametrize(
    "source",
    [
        "total > 500",
        "total == null",
        "gone == ''",
        "gone > 0",
        "gone < 0",
        "missing contains a",
        "missing startsWith a",
        "missing endsWith a",
        "missing matches a",
        "name == 'ann lee'",
        "total == name",  # a word on the right is text
        "done == 1",
        "tags == new",
        "not (total > 1 or total > 500)",
        "total > 500 or total < 200 and done == false",
        "state in []",
        "due < 2024-01-01",
    ],
)
def test_conditions_that_do_not_hold(source: str) -> None:
    assert not holds(source)


def test_entries_need_not_be_objects() -> None:
    assert not holds("total > 1", 5)
    assert holds("$ > 1", 5)
    assert holds("@ contains x", "axb")
    assert holds("[0] == 1", [1])


def test_objects_and_lists_are_equal_by_content() -> None:
    assert holds('who == \'{"city":"Rome"}\'', {"who": {"city": "Rome"}})
    assert not holds("who == 5", {"who": [5]})


def test_today_and_now_are_the_moment_the_pipeline_began() -> None:
    assert MOMENT == ("2024-02-29", "2024-02-29T23:59:59Z")
    assert moment_at(0).now == "1970-01-01T00:00:00Z"
    assert moment_at(951_782_400).today == "2000-02-29"
    assert moment_at(4_107_542_400).today == "2100-03-01"
    assert moment_at(1_735_689_600.9).now == "2025-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("total", "expected one of == != <= >= < > contains"),
        ("", "expected a field path"),
        ("total >", "expected a value"),
        ("total > 5 6", "expected and, or or the end; put text with spaces into quotes"),
        ("state == on hold", "put text with spaces into quotes"),
        ("(total > 5", "expected )"),
        ("total > 5)", "expected and, or or the end"),
        ("state in open", "expected a list behind in"),
        ("state in [open", "expected , or ]"),
        ("state in [open closed]", "expected , or ]"),
        ("total > {{ limit }}", "templates are not filled in here"),
        ("name matches '('", "unclosed group"),
        ("name matches '(?=x)'", "look-around"),
        ("total + 1 > 5", "expected one of"),
        ("a..b == 1", ".. is for jsonpath only"),
        ("name == 'half", "expected a value; quoted text has no escapes"),
        ("and total > 1", "expected one of"),
        ("total > 1 or", "expected a field path"),
        ("not " * 40 + "a == 1", "nested more than 30 levels"),
        ("(" * 5_000, "at most 1000 characters"),
        ("(" * 500, "nested more than 30 levels"),
        ("f(total) > 1", "expected one of"),
    ],
)
def test_what_cannot_be_read_is_said(source: str, reason: str) -> None:
    assert reason in str(read_predicate(source))


@given(
    st.lists(
        st.sampled_from([*"ab.[]()*'\"=<>!&|,0 -", " and ", " or ", "not ", " in "]), max_size=30
    ).map("".join),
    st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.sampled_from("ab"), x)),
)  # fmt: skip
def test_no_condition_and_no_entry_is_a_crash(source: str, entry: Any) -> None:
    predicate = read_predicate(source)
    assert isinstance(predicate, str) or predicate.holds(entry, MOMENT) in {True, False}
