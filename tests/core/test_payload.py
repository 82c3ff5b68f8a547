"""Payload changes: the table of the protocol, permissions, suspicious losses, and what holds for any request."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopagent.core.paths import parse_path, parse_rules, show_path
from loopagent.core.payload import PayloadChange, apply_change, apply_patch
from loopagent.core.scratchpad import Scratchpad, apply
from loopagent.core.shrink import suspicious


ALL, _ = parse_rules(["*"])
BASE = {"doc": {"title": "A", "tags": ["x", "y", "z"]}, "n": 1}


def change(
    payload: Any, request: dict[str, Any], write: Any = ALL, max_bytes: int = 100_000
) -> PayloadChange:
    """Apply, and hold every application to what must always be so."""
    before = copy.deepcopy(payload)
    made = apply_change(payload, request, write=write, max_bytes=max_bytes)
    assert payload == before, "the payload that came in was changed"
    assert apply_patch(payload, made.patch) == made.payload
    return made


TABLE: list[tuple[dict[str, Any], Any]] = [
    (
        {"newElements": {"doc": {"author": "Q"}}},
        {"doc": {"title": "A", "tags": ["x", "y", "z"], "author": "Q"}, "n": 1},
    ),
    ({"newElements": {"n": 2}}, {**BASE, "n": 2}),
    ({"updateElements": {"m": 5}}, {**BASE, "m": 5}),
    (
        {"updateElements": {"doc": {"tags": [{}, "Y"]}}},
        {"doc": {"title": "A", "tags": ["x", "Y", "z"]}, "n": 1},
    ),
    (
        {"updateElements": {"doc": {"tags": [{}, {}, {}, "w"]}}},
        {"doc": {"title": "A", "tags": ["x", "y", "z", "w"]}, "n": 1},
    ),
    (
        {"newElements": {"doc": {"tags": ["w"]}}},
        {"doc": {"title": "A", "tags": ["x", "y", "z", "w"]}, "n": 1},
    ),
    (
        {"removeElements": {"doc": {"tags": [{}, "__DELETE__"]}}},
        {"doc": {"title": "A", "tags": ["x", "z"]}, "n": 1},
    ),
    ({"removeElements": {"n": "__DELETE__"}}, {"doc": BASE["doc"]}),
    ({"replaceElements": {"doc": {"title": "B"}}}, {"doc": {"title": "B"}, "n": 1}),
    (
        {"replaceElements": {"doc": {"title": "B"}}, "updateElements": {"doc": {"title": "C"}}},
        {"doc": {"title": "B"}, "n": 1},
    ),
    (
        {"updateElements": {"doc": {"title": None}}},
        {"doc": {"title": None, "tags": ["x", "y", "z"]}, "n": 1},
    ),
    ({"updateElements": {"doc": {"tags": "__DELETE__"}}}, {"doc": {"title": "A"}, "n": 1}),
    (
        {"updateElements": {"doc": {"tags": ["__DELETE__", "Y", "__DELETE__"]}}},
        {"doc": {"title": "A", "tags": ["Y"]}, "n": 1},
    ),
    ({"newElements": {"a.b": 1}}, {**BASE, "a.b": 1}),
    ({"n": 7}, {**BASE, "n": 7}),
    ({"fresh": 7}, {**BASE, "fresh": 7}),
    ({"newElements": {}}, BASE),
]


@pytest.mark.parametrize(("request_", "result"), TABLE, ids=range(len(TABLE)))
def test_the_table(request_: dict[str, Any], result: Any) -> None:
    assert change(BASE, request_).payload == result


def test_what_is_the_same_already_is_no_change() -> None:
    assert change(BASE, {"updateElements": {"n": 1}}).patch == []
    assert change(BASE, {"updateElements": {"n": True}}).patch == [
        {"op": "replace", "path": "/n", "value": True}
    ]


def test_corrections_are_told() -> None:
    assert "taken as an update" in change(BASE, {"newElements": {"n": 2}}).warnings[0]
    assert "added" in change(BASE, {"updateElements": {"m": 2}}).warnings[0]
    assert "nothing to remove" in change(BASE, {"removeElements": {"m": "__DELETE__"}}).warnings[0]


def test_too_large_is_a_problem_and_changes_nothing() -> None:
    made = change(BASE, {"newElements": {"big": "x" * 2000}}, max_bytes=1000)
    assert made.payload == BASE
    assert made.problems


def test_permissions_are_by_path_and_operation() -> None:
    write, wrong = parse_rules(["doc.title:update", "list:add", "deep.inner.*"])
    assert wrong == []
    asked = {
        "updateElements": {"doc": {"title": "B", "tags": ["q"]}, "n": 5},
        "newElements": {"list": [1], "deep": {"inner": {"a": 1}}},
        "removeElements": {"n": "__DELETE__"},
    }
    made = change({**BASE, "deep": {"inner": {}}}, asked, write)
    assert made.payload == {
        "doc": {"title": "B", "tags": ["x", "y", "z"]},
        "n": 1,
        "list": [1],
        "deep": {"inner": {"a": 1}},
    }
    assert "n (delete)" in made.refused
    assert "doc.tags[0] (update)" in made.refused


def test_bad_rules_are_named_and_allow_nothing() -> None:
    rules, wrong = parse_rules(["a:frob", "a..b[", ""])
    assert len(wrong) == 3
    assert not rules.allows(("a",), "add")


def test_reading_shows_only_what_may_be_seen() -> None:
    read, _ = parse_rules(["doc.title", "rows[0].*"])
    assert read.filter({**BASE, "rows": [{"a": 1}, {"a": 2}]}) == {
        "doc": {"title": "A"},
        "rows": [{"a": 1}],
    }


@pytest.mark.parametrize("path", [("a", "b"), ("a", 0, "x.y"), ('q"\\', "b c")])
def test_paths_survive_being_written(path: tuple[Any, ...]) -> None:
    assert parse_path(show_path(path)) == path


KEYS = st.sampled_from(["a", "b", "c", "x.y", "d/e", "~"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["t", "__DELETE__"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
PARTS = st.dictionaries(KEYS, VALUES, max_size=3)
REQUESTS = st.fixed_dictionaries(
    {},
    optional={
        "newElements": PARTS,
        "updateElements": PARTS,
        "removeElements": PARTS,
        "replaceElements": PARTS,
    },
)


@given(st.dictionaries(KEYS, VALUES, max_size=4), REQUESTS)
def test_the_patch_always_leads_to_the_new_payload(
    payload: dict[str, Any], request_: dict[str, Any]
) -> None:
    made = change(payload, request_)
    json.dumps(made.patch)
    for key, old in payload.items():
        if not any(key in part for part in request_.values()):
            assert made.payload[key] is old


@given(st.dictionaries(KEYS, VALUES, max_size=4), REQUESTS)
def test_without_permission_nothing_changes(
    payload: dict[str, Any], request_: dict[str, Any]
) -> None:
    nothing, _ = parse_rules([])
    assert change(payload, request_, nothing).payload == payload


def test_losses_that_look_like_accidents_are_told() -> None:
    old = {
        "text": "word " * 100,
        "rows": list(range(10)),
        "map": {str(one): one for one in range(10)},
        "object": {"a": 1},
    }
    made = change(
        old, {"replaceElements": {"text": "word...", "rows": [1], "map": {"1": 1}, "object": 5}}
    )
    told = suspicious(old, made.patch)
    assert [one.split()[0] for one in told] == ["/text", "/rows", "/map", "/object"]
    assert suspicious({"n": 1}, change({"n": 1}, {"updateElements": {"n": 2}}).patch) == []


def test_the_scratchpad_replaces_notes_and_keeps_to_its_bounds() -> None:
    task = {"id": "1", "title": "T", "status": "pending"}
    pad, warnings, problems = apply(
        Scratchpad(),
        {"notes": "n", "taskList": {"upsert": [task], "remove": ["9"]}},
        max_tasks=1,
        max_notes_chars=10,
    )
    assert (pad.notes, [one.id for one in pad.tasks], len(warnings), problems) == (
        "n",
        ["1"],
        1,
        [],
    )
    kept, _, _ = apply(
        pad,
        {"taskList": {"upsert": [{**task, "status": "completed"}]}},
        max_tasks=1,
        max_notes_chars=10,
    )
    assert (kept.notes, kept.tasks[0].status) == ("n", "completed")
    cleared, _, _ = apply(pad, {"notes": None}, max_tasks=1, max_notes_chars=10)
    assert cleared.notes == ""
    _, _, wrong = apply(
        pad,
        {"notes": "x" * 11, "taskList": {"upsert": [{**task, "id": "2"}]}},
        max_tasks=1,
        max_notes_chars=10,
    )
    assert [one.path for one in wrong] == ["scratchpad.notes", "scratchpad.taskList.upsert"]
