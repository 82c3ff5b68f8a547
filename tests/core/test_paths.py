from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopagent.core.paths import ALL, OPERATIONS, Operation, Path, Rules, Wild, parse_rules, pointer
from loopagent.core.problems import path_text


def rules(*texts: str) -> Rules:
    read, problems = parse_rules(texts)
    assert problems == []
    return read


keys = st.text(max_size=6)
paths = st.lists(keys | st.integers(0, 20), max_size=5).map(tuple)
scalars = st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=4)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=20,
)


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("*", ()),
        ("a", ("a",)),
        ("a.b", ("a", "b")),
        (" a.b ", ("a", "b")),
        ("a.*", ("a", Wild.LEVELS)),
        ("*.a", (Wild.LEVELS, "a")),
        ("a.*.b", ("a", Wild.LEVELS, "b")),
        ("a[0].b", ("a", 0, "b")),
        ("a[*].b", ("a", Wild.POSITION, "b")),
        ("[2]", (2,)),
        ("a[0][1]", ("a", 0, 1)),
        ('a["x.y"]', ("a", "x.y")),
        ('a["x:y"].c', ("a", "x:y", "c")),
        ('["*"]', ("*",)),
        ('["say \\"hi\\""]', ('say "hi"',)),
        ('["\\u00e4"]', ("ä",)),
        ("['it\\'s']", ("it's",)),
        ('[""]', ("",)),
        ("a.0", ("a", "0")),
        ("straße.größe", ("straße", "größe")),
        ("two words.x", ("two words", "x")),
        ("a-b.c_d", ("a-b", "c_d")),
    ],
)
def test_patterns(text: str, pattern: tuple[Any, ...]) -> None:
    (rule,) = rules(text).rules
    assert rule.pattern == pattern
    assert rule.operations == OPERATIONS


@pytest.mark.parametrize(
    ("text", "operations"),
    [
        ("a.b:add", {"add"}),
        ("a.b:add,update", {"add", "update"}),
        ("a.b: Add , DELETE", {"add", "delete"}),
        ("*:update", {"update"}),
        ('a["x:y"]:add,update,delete', {"add", "update", "delete"}),
    ],
)
def test_operations(text: str, operations: set[str]) -> None:
    (rule,) = rules(text).rules
    assert rule.operations == operations


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "at its end"),
        ("   ", "at its end"),
        (".a", "character 1"),
        ("a.", "at its end"),
        ("a..b", "character 3"),
        ("a b.", "at its end"),
        ("a[", "character 2"),
        ("a[]", "character 2"),
        ("a[-1]", "character 2"),
        ("a[1", "character 2"),
        ("a[99999999999]", "character 2"),
        ("a[x]", "character 2"),
        ("a.[0]", "character 3"),
        ("a[0]b", "character 5"),
        ("a*", "character 2"),
        ('a["x', "character 2"),
        ('["\\q"]', "JSON string"),
        ("/a/b", "starts with /"),
        ("$.a", "starts with $"),
        ("a:", "operation is missing"),
        ("a:add,", "operation is missing"),
        ("a:remove", "unknown operation 'remove' (known: add, update, delete)"),
        ("a:updat", "did you mean update?"),
        ("a" * 1_001, "longer than 1000"),
    ],
)
def test_bad_rules_say_what_is_wrong_and_allow_nothing(text: str, complaint: str) -> None:
    read, problems = parse_rules([text])
    assert len(problems) == 1
    assert complaint in problems[0]
    assert read == Rules()
    assert not read.allows((), "add")
    assert not read.allows(("a",), "update")


def test_good_rules_beside_bad_ones_count_and_all_bad_ones_are_named() -> None:
    read, problems = parse_rules(["a..b", "c:add", "d:fly"])
    assert read.allows(("c",), "add")
    assert [one.partition(":")[0] for one in problems] == ["'a..b'", "'d"]


@given(st.text(max_size=30))
def test_no_text_makes_the_reader_raise(text: str) -> None:
    read, problems = parse_rules([text])
    assert len(read.rules) + len(problems) == 1


@given(paths.filter(bool))
def test_every_path_as_people_write_it_is_a_pattern_for_exactly_that_place(path: Path) -> None:
    text = "".join(f"[{json.dumps(one)}]" for one in path)
    (rule,) = rules(text).rules
    assert rule.pattern == path
    assert rule.covers(path)
    assert not rule.covers(path[:-1])


@pytest.mark.parametrize(
    ("text", "path", "covered"),
    [
        ("*", (), True),
        ("*", ("a", 0, "b"), True),
        ("a.b", ("a", "b"), True),
        ("a.b", ("a", "b", "c", 1), True),
        ("a.b", ("a",), False),
        ("a.b", ("a", "bc"), False),
        ("a.b", (), False),
        ("a.*", ("a",), False),
        ("a.*", ("a", "x"), True),
        ("a.*", ("a", "x", "y", 3), True),
        ("a.*", ("b", "x"), False),
        ("*.c", ("c",), False),
        ("*.c", ("a", "c"), True),
        ("*.c", ("a", "b", "c"), True),
        ("*.c", ("a", "b", "c", "d"), True),
        ("*.c", ("a", "b"), False),
        ("a.*.c", ("a", "c"), False),
        ("a.*.c", ("a", "c", "c"), True),
        ("a.*.*", ("a", "x"), False),
        ("a.*.*", ("a", "x", "y"), True),
        ("a[0]", ("a", 0), True),
        ("a[0]", ("a", 1), False),
        ("a[0]", ("a", "0"), False),
        ("a.0", ("a", 0), False),
        ("a.0", ("a", "0"), True),
        ("a[*].b", ("a", 7, "b"), True),
        ("a[*].b", ("a", "x", "b"), False),
        ("a[*].b", ("a", 7), False),
        ('["*"]', ("x",), False),
        ('["x.y"]', ("x.y", "z"), True),
        ('["x.y"]', ("x", "y"), False),
    ],
)
def test_what_a_pattern_covers(text: str, path: Path, *, covered: bool) -> None:
    assert rules(text).allows(path, "update") is covered


def test_operations_count_by_themselves_and_rules_add_up() -> None:
    both = rules("a:add", "a.b:update,delete", "*.log:add")
    granted: dict[Operation, list[Path]] = {
        "add": [("a",), ("a", "b"), ("x", "log")],
        "update": [("a", "b")],
        "delete": [("a", "b", "c")],
    }
    for operation, places in granted.items():
        assert all(both.allows(place, operation) for place in places)
    assert not both.allows(("a",), "delete")
    assert not both.allows(("x", "log"), "update")


def test_everything() -> None:
    assert rules("*").everything
    assert ALL.everything
    assert not rules("*:add,update").everything
    assert not rules("a.*", "b").everything
    assert not Rules().everything


@given(paths)
def test_a_rule_below_needs_none_above(path: Path) -> None:
    deeper = (*path, "leaf")
    text = "".join(f"[{json.dumps(one)}]" for one in deeper)
    assert rules(text).allows(deeper, "add")
    assert not rules(text).allows(path, "add")


@pytest.mark.parametrize(
    ("texts", "value", "shown"),
    [
        (["*"], {"a": 1}, {"a": 1}),
        (["*"], 5, 5),
        (["a"], {"a": {"x": 1}, "b": 2}, {"a": {"x": 1}}),
        (["a.x"], {"a": {"x": 1, "y": 2}, "b": 2}, {"a": {"x": 1}}),
        (["a.x"], {"a": 5, "b": 2}, {}),
        (["a.x"], {"a": {}, "b": 2}, {"a": {}}),
        (["a.*"], {"a": {"x": 1, "y": {"z": 0}}, "b": 2}, {"a": {"x": 1, "y": {"z": 0}}}),
        (["*.id"], {"a": {"id": 1, "n": 2}, "id": 3}, {"a": {"id": 1}}),
        (["a[1]"], {"a": [1, 2, 3]}, {"a": [{}, 2, {}]}),
        (["a[*].n"], {"a": [{"n": 1, "s": 2}, 7, {"s": 3}]}, {"a": [{"n": 1}, {}, {}]}),
        (["a:add"], {"a": None, "b": 0}, {"a": None}),
        ([], {"a": 1}, {}),
        ([], [1], []),
        ([], "secret", None),
        (["a"], "secret", None),
        (["[0]"], [{"x": 1}, {"x": 2}], [{"x": 1}, {}]),
        (['["x.y"]'], {"x.y": 1, "x": {"y": 2}}, {"x.y": 1}),
    ],
)
def test_filter_keeps_what_may_be_read(texts: list[str], value: Any, shown: Any) -> None:
    before = json.dumps(value)
    assert rules(*texts).filter(value) == shown
    assert json.dumps(value) == before


def leaves(value: Any, path: Path = ()) -> list[tuple[Path, Any]]:
    if isinstance(value, dict):
        inner = [leaf for key, one in value.items() for leaf in leaves(one, (*path, key))]
    elif isinstance(value, list):
        inner = [leaf for index, one in enumerate(value) for leaf in leaves(one, (*path, index))]
    else:
        return [(path, value)]
    return inner or [(path, value)]


TEXTS = st.sampled_from(
    ["*", "a.*", "*.b", "a[0]", "a[*].b", "b:add", 'a["x"]', "a.*.b", "[1]", "*.*"]
)
SMALL = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b", "x"]), inner, max_size=3)
    ),
    max_leaves=15,
)


@given(st.lists(TEXTS, max_size=3), SMALL)
def test_filter_shows_a_leaf_exactly_when_a_rule_covers_it(texts: list[str], value: Any) -> None:
    some = rules(*texts)
    full = dict(leaves(value))
    for path, leaf in leaves(some.filter(value)):
        if leaf not in ({}, [], None) or any(rule.covers(path) for rule in some.rules):
            assert any(rule.covers(path) for rule in some.rules)
            assert full[path] == leaf
    shown = dict(leaves(some.filter(value)))
    for path, leaf in full.items():
        if path and any(rule.covers(path) for rule in some.rules):
            assert shown[path] == leaf


@given(paths)
def test_a_pointer_leads_back_to_the_path(path: Path) -> None:
    parts = [one.replace("~1", "/").replace("~0", "~") for one in pointer(path).split("/")[1:]]
    assert parts == [str(one) for one in path]


def test_paths_are_shown_as_they_are_written_in_rules() -> None:
    path: Path = ("a", 0, "x.y", "b")
    assert path_text(path) == 'a[0]["x.y"].b'
    assert rules(path_text(path)).rules[0].pattern == path
