from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopagent.documents import DocumentError, read_document, read_list, show_loc


YAML = Path("x.yaml")
JSON = Path("x.json")


def read(text: str, path: Path = YAML) -> dict[str, Any]:
    return read_document(text, path).value


def complaints(text: str, path: Path = YAML) -> list[str]:
    with pytest.raises(DocumentError) as caught:
        read_document(text, path)
    assert str(caught.value) == "\n".join(caught.value.problems)
    return caught.value.problems


VALUES_OF_YAML: list[tuple[str, Any]] = [
    ("~", None),
    ("", None),
    ("null", None),
    ("Null", None),
    ("true", True),
    ("FALSE", False),
    ("5", 5),
    ("-0", 0),
    ("+5", 5),
    ("017", 17),
    ("0x1F", 31),
    ("0o17", 15),
    ("1.5", 1.5),
    (".5", 0.5),
    ("1e3", 1000.0),
    ("-1.5E-2", -0.015),
    ("1.", 1.0),
    # what other versions of YAML read differently
    ("yes", "yes"),
    ("off", "off"),
    ("tRUE", "tRUE"),
    ("1_000", "1_000"),
    ("1:30", "1:30"),
    ("2024-01-01", "2024-01-01"),
    ("Infinity", "Infinity"),
    ("nan", "nan"),
    ("NaN", "NaN"),
    ("1 2", "1 2"),
    ("0b1", "0b1"),
    ("٣", "٣"),
    ("<<", "<<"),
    ("=", "="),
    ('"5"', "5"),
    ("'true'", "true"),
    ("!!str 5", "5"),
    ("|\n  line\n  next", "line\nnext\n"),
    ("[1, [], {}]", [1, [], {}]),
    ('"\\ud83d\\ude00"', "😀"),
    ('"\\ud83d"', "�"),
]


@pytest.mark.parametrize(("text", "value"), VALUES_OF_YAML)
def test_values_of_yaml(text: str, value: Any) -> None:
    found = read(f"v: {text}\n")["v"]
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize("text", [".inf", "-.Inf", ".NaN", "1e999", "9" * 5_000])
def test_numbers_that_json_cannot_hold_are_refused(text: str) -> None:
    (problem,) = complaints(f"a: 1\nv: {text}\n")
    assert problem.startswith("x.yaml:2:4: v: ")
    assert "JSON" in problem


def test_positions() -> None:
    document = read_document("a: 1\nb:\n  - x\n  - c: 2\n    d: [3, 4]\n", YAML)
    assert document.position(("a",)) == (1, 1)
    assert document.position(("b", 0)) == (3, 5)
    assert document.position(("b", 1, "d")) == (5, 5)
    assert document.position(("b", 1, "d", 1)) == (5, 12)
    assert document.position(("b", 1, "missing", 5)) == (4, 5)
    assert document.position(("missing",)) == (1, 1)
    assert document.position(()) == (1, 1)


def test_aliases_are_copies() -> None:
    assert read("a: &x {k: [1]}\nb: *x\n") == {"a": {"k": [1]}, "b": {"k": [1]}}


def test_every_complaint_about_the_content_comes_at_once() -> None:
    text = "a: 1\na: 2\nb: {x: 1, x: 1}\nc: .inf\nd: !secret x\n? [1]\n: 2\nf: !!binary aGk=\ng: !!set {x}\nh: !o [1]"
    assert complaints(text) == [
        "x.yaml:2:1: a: this key stands twice, first in line 1",
        "x.yaml:3:11: b.x: this key stands twice, first in line 3",
        "x.yaml:4:4: c: .inf is not a number that JSON can hold",
        "x.yaml:5:4: d: the tag !secret is not supported; write the plain value",
        "x.yaml:6:3: (file): a key must be text",
        "x.yaml:8:4: f: the tag !!binary is not supported; write the plain value",
        "x.yaml:9:4: g: the tag !!set is not supported; write the plain value",
        "x.yaml:10:4: h: the tag !o is not supported; write the plain value",
    ]


@pytest.mark.parametrize(
    ("text", "where", "what"),
    [
        ("", "1:1", "is empty"),
        ("# only a comment", "1:1", "is empty"),
        ("- a\n- b", "1:1", "is no object"),
        ("just text", "1:1", "is no object"),
        ("a: [1,\nb: 2", "2:5", "not YAML"),
        ("a: 1\n  b: 2", "2:4", "not YAML: mapping values are not allowed here"),
        ("a:\n\tb: 1", "2:1", "not YAML"),
        ('a: "x', "1:6", "not YAML"),
        ("a: *nope", "1:4", "undefined alias"),
        ("a: @x", "1:4", "not YAML"),
        ("a: 1\n---\nb: 2", "2:1", "another document"),
        ("a: 1\nb: x\x00y", "2:5", "the character U+0000 is not allowed"),
        ('a: "\\UFFFFFFFF"', "1:1", "not YAML"),
        ('a: "\\U7FFFFFFF"', "1:1", "not YAML"),
        ("%YAML 9.9\n---\na: 1", "1:1", "not YAML"),
        ("a: &x [*x]", "1:4", "nested too deeply"),
        ("a: " + "[" * 100 + "]" * 100, "1:64", "nested too deeply"),
        ("a:\n" + "  [\n" * 2_000, "1:1", "nested too deeply"),
    ],
)
def test_broken_yaml(text: str, where: str, what: str) -> None:
    (problem,) = complaints(text)
    assert problem.startswith(f"x.yaml:{where}: ")
    assert what in problem


def test_aliases_that_multiply_are_stopped() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    (problem,) = complaints("\n".join(lines))
    assert "do aliases multiply" in problem


def test_json_with_tabs_escapes_and_positions() -> None:
    document = read_document(
        '{\n\t"a": "x\\/y \\ud83d\\ude00 \\u00e4",\n\t"b": [1, null]\n}\n', JSON
    )
    assert document.value == {"a": "x/y 😀 ä", "b": [1, None]}
    assert document.position(("b", 1)) == (3, 11)


@pytest.mark.parametrize(
    ("text", "where", "what"),
    [
        ('{"a" 1}', "1:6", "not JSON: Expecting ':' delimiter"),
        ("{a: 1}", "1:2", "not JSON"),
        ('{"a": 1\n"b": 2}', "2:1", "not JSON: Expecting ',' delimiter"),
        ("{} {}", "1:4", "not JSON: Extra data"),
        ('{"a": NaN}', "1:1", "NaN is not a number"),
        ('{"a": 1e999}', "1:7", "1e999 is not a number"),
        ('{"a": 1, "a": 1}', "1:10", "stands twice"),
        ("[1]", "1:1", "is no object"),
        ('{"a": ' + "[" * 9_000, "1:1", "nested too deeply"),
    ],
)
def test_broken_json(text: str, where: str, what: str) -> None:
    (problem,) = complaints(text, JSON)
    assert problem.startswith(f"x.json:{where}: ")
    assert what in problem


def test_lists_with_the_place_of_each_item() -> None:
    assert read_list("- a: 1\n- b\n", YAML) == [((1, 3), {"a": 1}), ((2, 3), "b")]
    assert read_list("[1,\n 2]", JSON) == [((1, 2), 1), ((2, 2), 2)]
    assert read_list("[]", YAML) == []


@pytest.mark.parametrize("text", ["a: 1", "", "x"])
def test_what_is_no_list_is_refused(text: str) -> None:
    with pytest.raises(DocumentError, match=r"^x\.yaml:1:1: \(file\): must be a list$"):
        read_list(text, YAML)


def test_places_as_people_write_them() -> None:
    assert show_loc(("a", 0, "b")) == "a[0].b"
    assert show_loc(()) == "(file)"


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=20), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=20), VALUES, max_size=4))
def test_json_comes_out_as_it_went_in(value: dict[str, Any]) -> None:
    assert read(json.dumps(value), JSON) == value
    assert read(json.dumps(value, indent="\t"), JSON) == value


@given(
    st.text(st.characters(codec="utf-8"), max_size=60)
    | st.text(st.sampled_from("a:-[]{}\"'\n &*!|>%#,?"), max_size=30)
)
def test_no_text_raises_anything_else(text: str) -> None:
    for path in (YAML, JSON):
        assert all(one.startswith(f"{path}:") for one in problems_of(text, path))


def problems_of(text: str, path: Path) -> list[str]:
    try:
        read_document(text, path)
    except DocumentError as error:
        return error.problems
    return []


def test_a_name_that_is_given_twice_is_what_it_was_given_last_and_no_warning() -> None:
    assert read_document("a: &x 1\nb: &x 2\nc: *x", YAML).value == {"a": 1, "b": 2, "c": 2}


def test_there_is_an_end_to_complaints() -> None:
    assert len(complaints("a: 1\n" * 300)) == 100
