"""Answers to a form: typed values, or one problem a field."""

import json
import math
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopagent.core.forms import MAX_TEXT_CHARS, check_answers
from loopagent.core.problems import Problem


COLOURS = [
    {"value": "r", "label": "Red"},
    {"value": "g", "label": "Green"},
    {"value": "x", "label": "Same"},
    {"value": "y", "label": "Same"},
]
MIXED = [
    {"value": 1, "label": "One"},
    {"value": True, "label": "Yes"},
    {"value": 2.5, "label": "Half"},
    {"value": "2", "label": "1"},
]
KINDS: dict[str, dict[str, Any]] = {
    **{name: {} for name in ("text", "textarea", "email", "number", "currency")},
    **{name: {} for name in ("date", "datetime", "time", "daterange")},
    **{name: {"options": MIXED} for name in ("buttongroup", "radio", "dropdown", "checkbox")},
    "slider": {"min": 0, "max": 10},
}


def question(kind: str, extra: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {"id": "a", "label": "A", "type": {"type": kind, **(extra or {})}, **more}


def ask(
    value: Any, kind: str, extra: dict[str, Any] | None = None, **more: Any
) -> tuple[dict[str, Any], list[Problem]]:
    return check_answers({"questions": [question(kind, extra, **more)]}, {"a": value})


def refusal(value: Any, kind: str, extra: dict[str, Any] | None = None, **more: Any) -> Problem:
    typed, problems = ask(value, kind, extra, **more)
    assert typed == {}
    assert len(problems) == 1
    assert problems[0].path == "values.a"
    return problems[0]


ACCEPTED: list[tuple[str, dict[str, Any], Any, Any]] = [
    ("text", {}, " {{ 7*7 }} <%x%> ", " {{ 7*7 }} <%x%> "),
    ("textarea", {"maxLength": 3}, "abc", "abc"),
    ("text", {}, "x" * MAX_TEXT_CHARS, "x" * MAX_TEXT_CHARS),
    ("email", {}, " a.b+c@example.co.uk ", "a.b+c@example.co.uk"),
    ("number", {}, "12", 12),
    ("number", {}, " -0.5 ", -0.5),
    ("number", {}, "1e3", 1000.0),
    ("number", {}, 0, 0),
    ("currency", {"min": 1, "max": 2}, "1.50", 1.5),
    ("number", {"min": 1, "max": 2}, 2, 2),
    ("number", {}, "9" * 300, int("9" * 300)),
    ("slider", {"min": 0, "max": 10}, "3", 3),
    ("slider", {"min": 1, "max": 10, "step": 3}, 7, 7),
    ("slider", {"min": 0, "max": 1, "step": 0.1}, 0.1 * 3, 0.1 * 3),
    ("slider", {"min": -(10**308), "max": 10**308}, 10**308, 10**308),
    ("date", {}, "2024-02-29", "2024-02-29"),
    ("date", {}, "2000-02-29", "2000-02-29"),
    ("datetime", {}, "2026-03-01T14:30", "2026-03-01T14:30"),
    ("datetime", {}, "2026-03-01T14:30:59.123Z", "2026-03-01T14:30:59.123Z"),
    ("datetime", {}, "2026-03-01T14:30+05:30", "2026-03-01T14:30+05:30"),
    ("time", {}, "00:00", "00:00"),
    ("time", {}, " 23:59 ", "23:59"),
    (
        "daterange",
        {},
        {"start": "2026-01-01", "end": "2026-01-01"},
        {"start": "2026-01-01", "end": "2026-01-01"},
    ),
    ("radio", {"options": COLOURS}, "r", "r"),
    ("dropdown", {"options": COLOURS}, "Green", "g"),
    ("buttongroup", {"options": MIXED}, 1.0, 1),
    ("radio", {"options": MIXED}, True, True),
    ("radio", {"options": MIXED}, "true", True),
    ("radio", {"options": MIXED}, "True", True),
    ("radio", {"options": MIXED}, "2.5", 2.5),
    ("radio", {"options": MIXED}, "2", "2"),
    ("checkbox", {"options": MIXED}, "One", 1),
    ("checkbox", {"options": COLOURS, "multiple": True}, "Red", ["r"]),
    ("checkbox", {"options": COLOURS, "multiple": True}, ["g", "r", "Green"], ["g", "r"]),
    ("radio", {"options": COLOURS, "multiple": True}, "r", "r"),
    ("hologram", {"depth": 3}, {"x": [1, None, "é", True]}, {"x": [1, None, "é", True]}),
]


def names(rows: list[tuple[str, dict[str, Any], Any, Any]]) -> list[str]:
    return [f"{row[0]}-{number}" for number, row in enumerate(rows)]


@pytest.mark.parametrize(("kind", "extra", "value", "expected"), ACCEPTED, ids=names(ACCEPTED))
def test_accepted(kind: str, extra: dict[str, Any], value: Any, expected: Any) -> None:
    typed, problems = ask(value, kind, extra)
    assert problems == []
    assert typed == {"a": expected}
    assert type(typed["a"]) is type(expected)


def test_true_and_one_are_two_choices() -> None:
    typed, problems = ask([1, True, 1.0], "checkbox", {"options": MIXED, "multiple": True})
    assert problems == []
    assert json.dumps(typed["a"]) == "[1, true]"


REFUSED: list[tuple[str, dict[str, Any], Any, Any]] = [
    ("text", {}, 5, "must be text"),
    ("text", {"maxLength": 3}, "abcd", "at most 3 characters"),
    ("text", {"maxLength": 0}, "a", "at most 0 characters"),
    ("text", {}, "x" * (MAX_TEXT_CHARS + 1), f"at most {MAX_TEXT_CHARS} characters"),
    ("email", {}, "a@b", "e-mail"),
    ("email", {}, "a b@example.org", "e-mail"),
    ("email", {}, "a@@example.org", "e-mail"),
    ("email", {"maxLength": 5}, "a@example.org", "at most 5 characters"),
    ("number", {}, "1,5", "a point for decimals"),
    ("number", {}, "٣", "digits 0-9"),
    ("number", {}, "\uff11\uff12", "digits 0-9"),
    ("number", {}, "1_000", "must be a number"),
    ("number", {}, "0x10", "must be a number"),
    ("number", {}, "NaN", "must be a number"),
    ("number", {}, True, "must be a number"),
    ("number", {}, [1], "must be a number"),
    ("number", {}, "1e999", "finite"),
    ("number", {}, "9" * 400, "finite"),
    ("number", {}, 10**400, "finite"),
    ("number", {}, 10**5000, "finite"),
    ("number", {}, math.nan, "finite"),
    ("number", {}, -math.inf, "finite"),
    ("number", {"min": 3}, "2", "at least 3"),
    ("currency", {"max": 9.5}, 10, "at most 9.5"),
    ("slider", {"min": 0, "max": 10}, 11, "at most 10"),
    ("slider", {"min": 0, "max": 10}, 2.5, "steps of 1 from 0"),
    ("slider", {"min": 1, "max": 10, "step": 3}, "6", "steps of 3 from 1"),
    ("slider", {"min": 0, "max": 10**12}, 10**11 + 0.5, "steps of 1"),
    ("date", {}, "2023-02-29", "YYYY-MM-DD"),
    ("date", {}, "1900-02-29", "YYYY-MM-DD"),
    ("date", {}, "2026-04-31", "YYYY-MM-DD"),
    ("date", {}, "2026-13-01", "YYYY-MM-DD"),
    ("date", {}, "2026-00-10", "YYYY-MM-DD"),
    ("date", {}, "2026-01-00", "YYYY-MM-DD"),
    ("date", {}, "0000-01-01", "YYYY-MM-DD"),
    ("date", {}, "٢٠٢٦-01-01", "YYYY-MM-DD"),
    ("date", {}, 20260101, "YYYY-MM-DD"),
    ("datetime", {}, "2026-03-01", "ISO 8601"),
    ("datetime", {}, "2026-03-01 14:30", "ISO 8601"),
    ("datetime", {}, "2026-03-01T24:00", "ISO 8601"),
    ("datetime", {}, "2026-02-30T10:00", "day of the calendar"),
    ("time", {}, "24:00", "HH:mm"),
    ("time", {}, "9:30", "HH:mm"),
    ("time", {}, "09:30:00", "HH:mm"),
    ("daterange", {}, "2026-01-01", "start and end"),
    ("daterange", {}, {"start": "2026-01-02", "end": "2026-01-01"}, "before it starts"),
    ("daterange", {}, {"start": "2026-01-02", "end": ""}, "end must be a day"),
    ("daterange", {}, {"end": "2026-01-02"}, "start must be a day"),
    ("radio", {"options": COLOURS}, "blue", 'must be one of "r", "g"'),
    ("radio", {"options": COLOURS}, "red", "must be one of"),
    ("radio", {"options": COLOURS}, "Same", "more than one option"),
    ("radio", {"options": MIXED}, "1", "more than one option"),
    ("radio", {"options": COLOURS}, ["r"], "must be one of"),
    ("radio", {"options": [{"value": 1, "label": "One"}]}, True, "must be one of 1"),
    ("checkbox", {"options": COLOURS}, ["r"], "must be one of"),
    ("checkbox", {"options": COLOURS, "multiple": True}, ["r", "blue"], "must be one of"),
    ("checkbox", {"options": COLOURS, "multiple": True}, ["r", ["g"]], "must be one of"),
    ("dropdown", {"options": [{"value": n, "label": ""} for n in range(99)]}, 100, "19, …"),
    ("hologram", {}, ["x" * MAX_TEXT_CHARS], f"at most {MAX_TEXT_CHARS} characters"),
    ("hologram", {}, [math.nan], "finite"),
    ("hologram", {}, {"x": b"raw"}, "JSON"),
]


@pytest.mark.parametrize(("kind", "extra", "value", "message"), REFUSED, ids=names(REFUSED))
def test_refused(kind: str, extra: dict[str, Any], value: Any, message: str) -> None:
    problem = refusal(value, kind, extra)
    assert message in problem.message
    assert problem.got
    assert len(problem.got) < 200


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("blank", [None, "", " \n\t", []])
def test_blank(kind: str, blank: Any) -> None:
    assert ask(blank, kind, KINDS[kind]) == ({}, [])
    assert refusal(blank, kind, KINDS[kind], required=True).message == "an answer is required"


@pytest.mark.parametrize("blank", [{}, {"start": "", "end": None}])
def test_a_date_range_without_dates_is_blank(blank: dict[str, Any]) -> None:
    assert ask(blank, "daterange") == ({}, [])
    assert refusal(blank, "daterange", required=True).message == "an answer is required"


def test_false_and_zero_are_answers() -> None:
    no = {"options": [{"value": False, "label": "No"}]}
    assert ask(False, "radio", no, required=True)[0] == {"a": False}
    assert ask(0, "number", required=True, defaultValue=5)[0] == {"a": 0}


def test_the_default_fills_a_blank_and_is_typed() -> None:
    assert ask("", "number", defaultValue="7", required=True) == ({"a": 7}, [])
    assert ask("8", "number", defaultValue="7") == ({"a": 8}, [])


def test_a_default_that_does_not_fit_is_told() -> None:
    problem = refusal("", "number", defaultValue="many")
    assert "default does not fit: must be a number" in problem.message
    assert problem.got == ""
    assert ask("8", "number", defaultValue="many") == ({"a": 8}, [])


def test_every_bad_field_is_told_at_once() -> None:
    ids = ("count", "when", "name", "note")
    kinds = ("number", "date", "text", "text")
    form = {
        "questions": [
            {"id": name, "label": name, "type": {"type": kind}, "required": name == "name"}
            for name, kind in zip(ids, kinds, strict=True)
        ]
    }
    values = {"count": "1,5", "when": "soon", "note": "kept", "extra": 1}
    typed, problems = check_answers(form, values)
    assert typed == {"note": "kept"}
    assert sorted(one.path for one in problems) == [
        "values.count",
        "values.extra",
        "values.name",
        "values.when",
    ]
    extra = next(one for one in problems if one.path == "values.extra")
    assert "count, when, name, note" in extra.message
    assert extra.got == "number 1"


def test_a_long_unknown_name_is_cut() -> None:
    _, problems = check_answers({"questions": [question("text")]}, {"b" * 10_000: 1})
    assert len(problems[0].path) < 100


def test_the_limit_is_a_parameter() -> None:
    form = {"questions": [question("text")]}
    assert check_answers(form, {"a": "abc"}, max_chars=3) == ({"a": "abc"}, [])
    _, problems = check_answers(form, {"a": "abcd"}, max_chars=3)
    assert "at most 3 characters" in problems[0].message


def test_free_values_are_not_nested_without_end() -> None:
    deep: list[Any] = []
    for _ in range(5_000):
        deep = [deep]
    assert "levels deep" in refusal(deep, "hologram").message
    circle: list[Any] = []
    circle.append(circle)
    assert refusal(circle, "hologram").message


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("piece", ["1", "a", "1.", "a@", "@a.", " ", "2026-01-01T"])
def test_long_text_is_read_in_linear_time(kind: str, piece: str) -> None:
    text = "x" + piece * (99_000 // len(piece)) + "?"
    start = time.perf_counter()
    for value in (text[1:], text, text * 12):
        ask(value, kind, KINDS[kind])
    assert time.perf_counter() - start < 1


def test_inputs_are_not_changed() -> None:
    options = {"options": COLOURS, "multiple": True}
    form = {"questions": [question("checkbox", options, defaultValue=["r"])]}
    values = {"a": ["Red", "r"], "z": 1}
    before = json.dumps([form, values])
    check_answers(form, values)
    assert json.dumps([form, values]) == before


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)


@given(kind=st.sampled_from([*KINDS, "hologram"]), value=anything, required=st.booleans())
def test_no_answer_makes_it_raise(kind: str, value: Any, required: bool) -> None:
    typed, problems = ask(value, kind, KINDS.get(kind), required=required)
    assert len(typed) + len(problems) <= 1
    json.dumps(typed, allow_nan=False)
    # What was accepted is accepted again, unchanged.
    if typed:
        assert ask(typed["a"], kind, KINDS.get(kind)) == (typed, [])


@given(st.dates())
def test_every_day_of_the_calendar_is_one(day: Any) -> None:
    assert ask(day.isoformat(), "date") == ({"a": day.isoformat()}, [])


@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**20), 10**20))
def test_every_number_as_text_is_that_number(number: float) -> None:
    assert ask(repr(number), "number") == ({"a": number}, [])
