from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from loopagent.core.patch import apply_patch
from loopagent.core.paths import ALL, Rules, parse_rules
from loopagent.core.payload import MAX_NOTES, PayloadChange, apply_change


DELETE = "__DELETE__"
BUCKETS = {
    "new": "newElements",
    "update": "updateElements",
    "remove": "removeElements",
    "replace": "replaceElements",
}
DOC = {"doc": {"title": "A", "tags": ["x", "y", "z"]}, "n": 1}


def rules(*texts: str) -> Rules:
    read, problems = parse_rules(texts)
    assert problems == []
    return read


def change(
    payload: Any, *, write: Rules = ALL, max_bytes: int = 1_000_000, **parts: Any
) -> PayloadChange:
    """Apply a request and check what must hold for every one."""
    request = {BUCKETS.get(name, name): one for name, one in parts.items()}
    frozen = json.dumps([payload, request])
    made = apply_change(payload, request, write=write, max_bytes=max_bytes)
    assert json.dumps([payload, request]) == frozen, "the input was changed"
    assert json.dumps(apply_patch(payload, made.patch), sort_keys=True) == json.dumps(
        made.payload, sort_keys=True
    )
    assert json.dumps([payload, request]) == frozen, "the patch changed its input"
    if not made.patch:
        assert made.payload is payload
    return made


def done(payload: Any, *, write: Rules = ALL, **parts: Any) -> Any:
    """The payload after a request about which there is nothing to say."""
    made = change(payload, write=write, **parts)
    assert (made.warnings, made.refused, made.problems) == ([], [], [])
    return made.payload


def with_doc(**doc: Any) -> Any:
    return {**DOC, "doc": {**DOC["doc"], **doc}}  # type: ignore[dict-item]


# --- the table of the protocol ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parts", "after", "warning"),
    [
        ({"new": {"doc": {"author": "Q"}}}, with_doc(author="Q"), None),
        ({"new": {"n": 2}}, {**DOC, "n": 2}, "n: was there already; taken as an update"),
        ({"update": {"m": 5}}, {**DOC, "m": 5}, "m: was not there; added"),
        ({"update": {"doc": {"tags": [{}, "Y"]}}}, with_doc(tags=["x", "Y", "z"]), None),
        (
            {"update": {"doc": {"tags": [{}, {}, {}, "w"]}}},
            with_doc(tags=["x", "y", "z", "w"]),
            None,
        ),
        ({"new": {"doc": {"tags": ["w"]}}}, with_doc(tags=["x", "y", "z", "w"]), None),
        ({"remove": {"doc": {"tags": [{}, DELETE]}}}, with_doc(tags=["x", "z"]), None),
        ({"remove": {"n": DELETE}}, {"doc": DOC["doc"]}, None),
        ({"replace": {"doc": {"title": "B"}}}, {"doc": {"title": "B"}, "n": 1}, None),
        (
            {"replace": {"doc": {"title": "B"}}, "update": {"doc": {"title": "C"}}},
            {"doc": {"title": "B"}, "n": 1},
            "doc: replaceElements has it, so nothing else was done to it",
        ),
        ({"update": {"doc": {"title": None}}}, with_doc(title=None), None),
    ],
)
def test_the_table_row_by_row(parts: dict[str, Any], after: Any, warning: str | None) -> None:
    made = change(DOC, **parts)
    assert made.payload == after
    assert made.warnings == ([] if warning is None else [warning])
    assert (made.refused, made.problems) == ([], [])


def test_a_sequence_of_changes_each_does_what_it_says_and_nothing_else() -> None:
    start = {"k": {"done": False, "facts": []}, "names": ["A", "B"], "n": {"x": 1, "y": 2}}
    now = done(start, new={"k": {"facts": ["f1", "f2"]}})
    assert now == {**start, "k": {"done": False, "facts": ["f1", "f2"]}}
    now = done(now, new={"k": {"facts": ["f3"]}})
    assert now["k"]["facts"] == ["f1", "f2", "f3"]
    now = done(now, replace={"names": ["A"]})
    assert now["names"] == ["A"]
    now = done(now, update={"n": {"x": 5}})
    assert now["n"] == {"x": 5, "y": 2}
    now = done(now, remove={"n": {"y": DELETE}})
    assert now["n"] == {"x": 5}
    now = done(now, update={"k": {"done": None}})
    assert now == {"k": {"done": None, "facts": ["f1", "f2", "f3"]}, "names": ["A"], "n": {"x": 5}}
    deep = change(now, update={"not": {"there": {"yet": 1}}})
    assert deep.payload == {**now, "not": {"there": {"yet": 1}}}
    assert deep.warnings == ["not: was not there; added"]
    forbidden = change(deep.payload, write=rules("k.*"), update={"n": {"x": 6}})
    assert forbidden.payload is deep.payload
    assert forbidden.refused == ["n.x (update is not permitted)"]


# --- values ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [None, False, 0, "", 0.0, [], {}, "x", [None], {"a": None}])
def test_falsy_values_are_values(value: Any) -> None:
    assert done({"k": 1}, new={"v": value}) == {"k": 1, "v": value}
    assert done({"v": "old", "k": 1}, replace={"v": value}) == {"k": 1, "v": value}
    if value != {}:
        assert done({"v": "old"}, update={"v": value}) == {"v": value}


@pytest.mark.parametrize(("old", "new"), [(True, 1), (1, True), (0, False), (1, 1.0), ("1", 1)])
def test_values_that_python_takes_for_equal_are_different(old: Any, new: Any) -> None:
    after = done({"v": old}, update={"v": new})["v"]
    assert json.dumps(after) == json.dumps(new)


@pytest.mark.parametrize(
    "key", ["a.b", "a/b", "~", "~1", "", "0", "-", "*", '"', "ä", "a[0]", "__proto__"]
)
def test_any_key_works(key: str) -> None:
    inner = done({}, new={"o": {key: [{key: 1}]}})
    assert inner == {"o": {key: [{key: 1}]}}
    assert done(inner, update={"o": {key: [{key: 2}]}}) == {"o": {key: [{key: 2}]}}
    assert done(inner, remove={"o": {key: [DELETE]}}) == {"o": {key: []}}
    assert done(inner, remove={"o": {key: DELETE}}) == {"o": {}}


def test_an_empty_object_says_nothing_about_what_is_there() -> None:
    empty: Any
    for part in ("new", "update", "remove"):
        for empty in ({"doc": {}, "n": {}}, {"doc": {"tags": {}}}):
            asked: dict[str, Any] = {part: empty}
            assert done(DOC, **asked) is DOC
    assert done(DOC, new={"doc": {"meta": {}}}) == with_doc(meta={})


@pytest.mark.parametrize(
    "request_", [{}, {"reasoning": "why"}, {"updateElements": None}, {"newElements": {}}]
)
@pytest.mark.parametrize("payload", [DOC, {}, None, 5, "text", [1]])
def test_a_request_that_asks_for_nothing_is_nothing(payload: Any, request_: Any) -> None:
    made = change(payload, **request_)
    assert made == PayloadChange(payload)


def test_the_same_change_again_is_no_change() -> None:
    parts: dict[str, Any] = {
        "update": {"doc": {"title": "B", "tags": [{}, "Y", {}, "w"]}},
        "replace": {"n": 2},
    }
    once = done(DOC, **parts)
    assert done(once, **parts) is once


# --- arrays ----------------------------------------------------------------------------------------


def test_positions_mean_the_old_array_whatever_else_is_asked() -> None:
    made = change(
        {"l": ["a", "b", "c", "d"]},
        remove={"l": [DELETE, {}, DELETE]},
        update={"l": [{}, "B", {}, "D", "past"]},
        new={"l": ["new"]},
    )
    assert made.payload == {"l": ["B", "D", "past", "new"]}
    assert made.warnings == []
    assert made.patch == [
        {"op": "replace", "path": "/l/1", "value": "B"},
        {"op": "replace", "path": "/l/3", "value": "D"},
        {"op": "add", "path": "/l/4", "value": "past"},
        {"op": "add", "path": "/l/5", "value": "new"},
        {"op": "remove", "path": "/l/2"},
        {"op": "remove", "path": "/l/0"},
    ]
    assert made.counts == {"added": 2, "updated": 2, "deleted": 2}


def test_marks_count_in_updates_too_for_keys_and_items() -> None:
    assert done(
        {"o": {"a": 1, "b": 2}, "l": [1, 2]}, update={"o": {"a": DELETE}, "l": [DELETE]}
    ) == {
        "o": {"b": 2},
        "l": [2],
    }


def test_objects_in_arrays_merge_at_any_depth() -> None:
    start = {"rows": [{"id": 1, "cells": [{"v": 1}, {"v": 2}]}, {"id": 2}]}
    made = change(
        start, update={"rows": [{"cells": [{}, {"v": 3}]}]}, remove={"rows": [{"cells": [DELETE]}]}
    )
    assert made.payload == {"rows": [{"id": 1, "cells": [{"v": 3}]}, {"id": 2}]}
    assert made.payload["rows"][1] is start["rows"][1]


def test_arrays_in_arrays_are_positional_too() -> None:
    assert done({"m": [[1, 2], [3]]}, update={"m": [[{}, 9], [{}, 4]]}) == {"m": [[1, 9], [3, 4]]}


def test_items_of_another_kind_are_assigned() -> None:
    assert done({"l": [1, {"a": 1}, [1]]}, update={"l": [{"b": 2}, 5, None]}) == {
        "l": [{"b": 2}, 5, None]
    }


def test_replacing_inside_an_array_swaps_single_items_whole() -> None:
    start = {"l": [{"a": 1, "b": 2}, {"a": 3, "b": 4}, 5]}
    made = change(start, replace={"l": [{}, {"a": 9}, {}]})
    assert made.payload == {"l": [{"a": 1, "b": 2}, {"a": 9}, 5]}
    assert made.warnings == [
        "l: an array with {} in replaceElements swaps single items; others stay"
    ]
    assert change(start, replace={"l": [{}, DELETE]}).payload == {"l": [{"a": 1, "b": 2}, 5]}
    assert change(start, replace={"l": [{}, {}, {}, "w"]}).payload == {"l": [*start["l"], "w"]}


def test_replacing_an_array_without_places_swaps_it_whole() -> None:
    assert done({"l": [1, 2, 3]}, replace={"l": [9]}) == {"l": [9]}
    assert done({"l": [1, 2, 3]}, replace={"l": []}) == {"l": []}


def test_positions_past_the_end_append_without_holes() -> None:
    made = change({"l": [1]}, update={"l": [{}, {}, {}, "w"]})
    assert made.payload == {"l": [1, "w"]}
    assert made.warnings == ["l[3]: past the end; appended at position 1"]


def test_an_update_of_a_list_that_is_not_there_drops_its_places() -> None:
    assert change({}, update={"l": [{}, {}, "w"]}).payload == {"l": ["w"]}


def test_an_append_of_nothing_appends_nothing() -> None:
    assert done({"l": [1]}, new={"l": [{}, {}]}) == {"l": [1]}
    made = change({"l": [1]}, new={"l": [DELETE]})
    assert made.payload == {"l": [1]}
    assert made.warnings


@pytest.mark.parametrize("shorter", [[], ["x"], ["x", "y"]])
def test_a_model_that_tries_to_shorten_by_update_is_told_how(shorter: list[str]) -> None:
    made = change(DOC, update={"doc": {"tags": shorter}})
    assert made.payload is DOC
    assert "never shortens" in made.warnings[0]
    assert "replaceElements" in made.warnings[0]


# --- what models get wrong -------------------------------------------------------------------------


@pytest.mark.parametrize("value", [None, True, 1, "y", ["y"], {"deep": 1}])
def test_removals_without_a_mark_remove_nothing(value: Any) -> None:
    made = change(DOC, remove={"doc": {"tags": value, "title": value}})
    assert made.payload is DOC
    assert all('mark what goes with "__DELETE__"' in one for one in made.warnings)
    assert made.warnings


@pytest.mark.parametrize("mark", ["_DELETE_", "__delete__", "DELETE", "__REMOVE__"])
def test_a_mark_that_is_nearly_right_counts_among_removals_only(mark: str) -> None:
    made = change({"n": 1, "l": [1, 2]}, remove={"n": mark, "l": [{}, mark]})
    assert made.payload == {"l": [1]}
    assert made.warnings == [
        f'n: "{mark}" read as "__DELETE__"',
        f'l[1]: "{mark}" read as "__DELETE__"',
    ]
    assert done({"n": 1}, update={"n": mark}) == {"n": mark}


def test_removing_what_is_not_there_is_a_warning() -> None:
    made = change(
        DOC, remove={"x": DELETE, "y": {"z": DELETE}, "doc": {"tags": [{}, {}, {}, DELETE]}}
    )
    assert made.payload is DOC
    assert [one.partition(":")[0] for one in made.warnings] == ["x", "y", "doc.tags"]
    assert change({"l": [1]}, update={"l": [{}, DELETE]}).warnings == [
        "l[1]: there is no such item; nothing to remove"
    ]


def test_a_mark_beats_a_change_of_the_same_place_and_says_so() -> None:
    made = change(
        {"n": 1, "l": [1]}, remove={"n": DELETE, "l": [DELETE]}, update={"n": 5, "l": [5]}
    )
    assert made.payload == {"l": []}
    assert len(made.warnings) == 2
    assert change({}, remove={"n": DELETE}, new={"n": 5}).payload == {"n": 5}


def test_marks_inside_new_values_are_left_out() -> None:
    made = change(
        {"k": 1}, new={"o": {"a": DELETE, "b": [1, DELETE, {"c": DELETE}]}}, replace={"k": [DELETE]}
    )
    assert made.payload == {"o": {"b": [1, {}]}, "k": []}
    assert len(made.warnings) == 4
    assert "__DELETE__" not in json.dumps(made.payload)


def test_replacing_by_a_mark_removes() -> None:
    assert done({"n": 1, "k": 2}, replace={"n": DELETE}) == {"k": 2}
    assert change({"k": 2}, replace={"n": DELETE}).warnings


def test_new_and_update_of_one_place() -> None:
    assert done({}, new={"o": {"a": 1}}, update={"o": {"a": 1}}) == {"o": {"a": 1}}
    assert change({}, new={"o": {"a": 1}}, update={"o": {"b": 2}}).payload == {
        "o": {"a": 1, "b": 2}
    }
    assert done({"n": 1}, new={"n": 2}, update={"n": 3}) == {"n": 3}


@pytest.mark.parametrize(
    ("key", "part"),
    [("n", "updateElements"), ("m", "newElements"), ("_x", "newElements"), ("", "newElements")],
)
def test_keys_beside_the_parts_are_moved_where_they_belong(key: str, part: str) -> None:
    stray: dict[str, Any] = {key: 7}
    made = change(DOC, **stray)
    assert made.payload == {**DOC, key: 7}
    assert f"taken as part of {part}" in made.warnings[0]


def test_a_null_beside_the_parts_is_a_value_and_one_inside_comes_first() -> None:
    assert change(DOC, n=None).payload == {**DOC, "n": None}
    made = change(DOC, n=5, update={"n": 6})
    assert made.payload["n"] == 6
    assert "the one inside counts" in made.warnings[0]
    assert change(DOC, n=5, update={"m": 6}).payload == {**DOC, "n": 5, "m": 6}


def test_misspelt_names_of_parts_are_read_as_meant_unless_the_payload_has_such_keys() -> None:
    made = change(DOC, new_elements={"m": 1}, UpdateElements={"n": 2}, Reasoning="why")
    assert made.payload == {**DOC, "m": 1, "n": 2}
    assert made.warnings[0] == "new_elements: read as newElements"
    own = {"new_elements": 1}
    assert change(own, new_elements=2).payload == {"new_elements": 2}


@pytest.mark.parametrize("value", ["text", 5, True, ["a"], 0, ""])
def test_parts_of_a_wrong_type_are_problems(value: Any) -> None:
    made = change(DOC, update=value, remove=value, new={"m": 1})
    assert made.payload is DOC
    assert [one.path for one in made.problems] == [
        "payloadChangeRequest.removeElements",
        "payloadChangeRequest.updateElements",
    ]
    assert all(
        "must be an object in the shape of the payload" in one.message for one in made.problems
    )


@pytest.mark.parametrize("payload", [5, "text", True, 0, ""])
def test_a_payload_without_elements_cannot_be_changed(payload: Any) -> None:
    for parts in ({"update": {"a": 1}}, {"stray": 1}):
        made = change(payload, **parts)
        assert made.payload == payload
        assert "has no elements" in made.problems[0].message


def test_no_payload_counts_as_an_empty_object() -> None:
    made = change(None, new={"a": 1}, update={"b": 2})
    assert made.payload == {"a": 1, "b": 2}
    assert made.patch == [{"op": "replace", "path": "", "value": {"a": 1, "b": 2}}]
    assert change(None, remove={"a": DELETE}).payload is None


def test_a_payload_that_is_a_list_is_changed_by_position() -> None:
    assert done([1, {"a": 1}], update=[{}, {"a": 2}], new=[3]) == [1, {"a": 2}, 3]
    assert done([1, 2], remove=[DELETE]) == [2]
    assert "must be a list" in change([1], update={"a": 1}).problems[0].message
    assert "ignored" in change([1], stray=1).warnings[0]


def test_many_notes_are_counted_not_listed() -> None:
    made = change({}, update={f"k{n}": n for n in range(100)})
    assert len(made.payload) == 100
    assert len(made.warnings) == MAX_NOTES + 1
    assert made.warnings[-1] == "and 70 more like these"
    refused = change({}, write=rules("a"), new={f"k{n}": n for n in range(100)}).refused
    assert len(refused) == MAX_NOTES + 1


# --- limits ----------------------------------------------------------------------------------------


def test_a_payload_that_grows_too_large_is_refused_whole() -> None:
    made = change({"a": "x"}, new={"b": "y" * 100}, update={"a": "z"}, max_bytes=100)
    assert made == PayloadChange({"a": "x"}, problems=made.problems)
    (problem,) = made.problems
    assert "the payload would have 116 bytes, 100 are allowed" in problem.message


def test_size_is_counted_in_bytes_to_the_last_one() -> None:
    value = {"a": "ä" * 10}
    assert change({}, new=value, max_bytes=28).problems == []
    assert change({}, new=value, max_bytes=27).problems


def test_a_payload_that_is_too_large_already_may_shrink() -> None:
    start = {"a": "x" * 100, "b": "y" * 100}
    assert change(start, update={"a": "x"}, max_bytes=50).payload["a"] == "x"
    assert change(start, remove={"a": DELETE}, max_bytes=50).payload == {"b": "y" * 100}
    assert change(start, new={"c": 1}, max_bytes=50).problems


@given(
    st.lists(st.integers(0, 9), max_size=30),
    st.lists(st.sampled_from([{}, DELETE, 7, "abc"]), max_size=30),
)
def test_no_mix_of_small_changes_slips_past_the_limit(items: list[int], places: list[Any]) -> None:
    start = {"l": items}
    size = len(json.dumps(start, separators=(",", ":")))
    made = change(
        start, update={"l": places}, new={"k": 1} if len(places) % 2 else {}, max_bytes=size
    )
    assert len(json.dumps(made.payload, separators=(",", ":"))) <= size


def nest(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"n": value}
    return value


@pytest.mark.parametrize("part", ["new", "update", "replace", "remove"])
def test_deep_nesting_is_a_problem_not_a_crash(part: str) -> None:
    assert change({}, **{part: nest(100)}).problems == []
    payload: Any
    for payload in ({}, nest(100)):
        for levels in (102, 900):
            made = change(payload, **{part: nest(levels)})
            assert made.payload is payload
            if part != "remove":
                assert "levels deep" in made.problems[0].message


def test_cost_grows_with_the_change_not_with_the_payload() -> None:
    class Untouchable(dict[str, Any]):
        def __iter__(self) -> Any:
            raise AssertionError("was looked at")

        items = keys = values = __iter__

    big = Untouchable()
    made = apply_change(
        {"big": big, "rows": [big, {"n": 10}]},
        {"updateElements": {"rows": [{}, {"n": 2}]}},
        write=ALL,
        max_bytes=10,
    )
    assert made.payload["big"] is big
    assert made.payload["rows"] == [big, {"n": 2}]
    assert made.patch == [{"op": "replace", "path": "/rows/1/n", "value": 2}]


# --- permissions -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("write", "parts", "after", "refused"),
    [
        (["doc.*"], {"update": {"doc": {"title": "B"}}}, with_doc(title="B"), []),
        (["doc.title"], {"update": {"doc": {"title": "B"}}}, with_doc(title="B"), []),
        (
            ["doc.title"],
            {"update": {"n": 2, "doc": {"title": "B"}}},
            with_doc(title="B"),
            ["n (update"],
        ),
        (["doc"], {"update": {"doc": {"title": "B"}}}, with_doc(title="B"), []),
        (["doc:add"], {"update": {"doc": {"title": "B"}}}, DOC, ["doc.title (update"]),
        (["doc:add"], {"new": {"doc": {"by": "Q"}}}, with_doc(by="Q"), []),
        (["doc:update"], {"new": {"doc": {"by": "Q"}}}, DOC, ["doc.by (add"]),
        (["doc:add,update"], {"remove": {"doc": {"title": DELETE}}}, DOC, ["doc.title (delete"]),
        (
            ["doc.title:delete"],
            {"remove": {"doc": {"title": DELETE}}},
            {"doc": {"tags": ["x", "y", "z"]}, "n": 1},
            [],
        ),
        (["doc.*"], {"remove": {"doc": DELETE}}, DOC, ["doc (delete"]),
        (
            ["doc.tags:add"],
            {"new": {"doc": {"tags": ["w"]}}},
            with_doc(tags=["x", "y", "z", "w"]),
            [],
        ),
        (["doc.tags:update"], {"new": {"doc": {"tags": ["w"]}}}, DOC, ["doc.tags[3] (add"]),
        (
            ["doc.tags[1]"],
            {"update": {"doc": {"tags": ["X", "Y"]}}},
            with_doc(tags=["x", "Y", "z"]),
            ["doc.tags[0] (update"],
        ),
        (
            ["doc.tags[*]:delete"],
            {"remove": {"doc": {"tags": [DELETE]}}},
            with_doc(tags=["y", "z"]),
            [],
        ),
        (
            ["doc.tags[1]:delete"],
            {"remove": {"doc": {"tags": [DELETE, DELETE]}}},
            with_doc(tags=["x", "z"]),
            ["doc.tags[0] (delete"],
        ),
        ([], {"new": {"m": 1}}, DOC, ["m (add"]),
    ],
)
def test_writes_are_permitted_place_by_place(
    write: list[str], parts: dict[str, Any], after: Any, refused: list[str]
) -> None:
    made = change(DOC, write=rules(*write), **parts)
    assert made.payload == after
    assert [one.partition(" is")[0] for one in made.refused] == refused
    assert made.problems == []


def test_a_part_may_be_added_where_the_whole_may_not() -> None:
    write = rules("a.b.*", "c[*].d")
    made = change(
        {}, write=write, new={"a": {"b": {"x": 1}, "y": 2}, "c": [{"d": 1, "e": 2}], "f": {"g": 1}}
    )
    assert made.payload == {"a": {"b": {"x": 1}}, "c": [{"d": 1}]}
    assert made.refused == [
        "a.y (add is not permitted)",
        "c[0].e (add is not permitted)",
        "f.g (add is not permitted)",
    ]
    empty = change({}, write=write, new={"a": {}, "c": []})
    assert empty.payload == {}
    assert len(empty.refused) == 2


def test_a_whole_replacement_is_checked_as_the_changes_it_makes() -> None:
    start = {"o": {"a": 1, "b": 2, "c": {"d": 1}}}
    made = change(
        start, write=rules("o:add,update"), replace={"o": {"b": 3, "c": {"d": 2}, "e": 4}}
    )
    assert made.payload == {"o": {"a": 1, "b": 3, "c": {"d": 2}, "e": 4}}
    assert made.refused == ["o.a (delete is not permitted)"]
    below = change(start, write=rules("o.*"), replace={"o": {"b": 3}})
    assert below.payload == {"o": {"b": 3}}
    assert below.refused == []
    kind = change(start, write=rules("o:update"), replace={"o": 5})
    assert kind.payload is start
    assert kind.refused == ["o (update is not permitted)"]


def test_a_list_replaced_without_all_permissions_changes_item_by_item() -> None:
    start = {"l": [1, 2, 3]}
    shorter = change(start, write=rules("l:add,update"), replace={"l": [9]})
    assert shorter.payload == {"l": [9, 2, 3]}
    assert shorter.refused == ["l[2] (delete is not permitted)", "l[1] (delete is not permitted)"]
    assert change(start, write=rules("l.*"), replace={"l": [9]}).payload == {"l": [9]}
    assert change(start, write=rules("l:add"), replace={"l": [1, 2, 3, 4]}).payload == {
        "l": [1, 2, 3, 4]
    }
    assert change(start, write=rules("l[*]:update"), replace={"l": [1, 5, 3, 4]}).payload == {
        "l": [1, 5, 3]
    }


# --- whatever comes --------------------------------------------------------------------------------

KEYS = st.sampled_from(["a", "b", "c.d", "e/f~g", "0", ""])
SCALARS = (
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["", "x", "ä", 1.0, DELETE])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(KEYS, VALUES, max_size=4)
PAYLOADS = OBJECTS.filter(lambda one: DELETE not in json.dumps(one))
REQUESTS = st.fixed_dictionaries({}, optional=dict.fromkeys(BUCKETS, OBJECTS))
RULES = st.lists(
    st.sampled_from(
        [
            "*",
            "a",
            "b.*",
            "a[*]",
            "a[0].b",
            "*.a",
            "a:add",
            "b:update",
            "*:delete",
            '["c.d"]:add,update',
        ]
    ),
    max_size=3,
)


@given(PAYLOADS, REQUESTS, RULES)
def test_the_patch_leads_from_the_old_payload_to_the_new_one(
    payload: Any, parts: Any, write: list[str]
) -> None:
    made = change(payload, write=rules(*write), **parts)
    assert made.problems == []
    assert DELETE not in json.dumps(made.payload)


@given(PAYLOADS, REQUESTS, RULES)
def test_every_operation_of_a_patch_is_permitted_by_some_rule(
    payload: Any, parts: Any, write: list[str]
) -> None:
    written = rules(*write)
    assume(not written.everything)
    names = {"add": "add", "replace": "update", "remove": "delete"}
    for operation in change(payload, write=written, **parts).patch:
        place = at(payload, operation["path"])
        for path in leaves(operation.get("value"), place) if operation["op"] == "add" else [place]:
            assert written.allows(path, names[operation["op"]])  # type: ignore[arg-type]


def at(payload: Any, pointer: str) -> tuple[str | int, ...]:
    """A pointer as a path; what is not there yet is taken from the kind of what is around it."""
    path: list[str | int] = []
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        path.append(int(key) if isinstance(payload, list) else key)
        try:
            payload = payload[path[-1]]
        except (KeyError, IndexError, TypeError):
            payload = None
    return tuple(path)


def leaves(value: Any, path: tuple[str | int, ...]) -> list[tuple[str | int, ...]]:
    if isinstance(value, dict) and value:
        return [leaf for key, one in value.items() for leaf in leaves(one, (*path, key))]
    if isinstance(value, list) and value:
        return [leaf for index, one in enumerate(value) for leaf in leaves(one, (*path, index))]
    return [path]


@given(PAYLOADS, REQUESTS)
def test_without_permission_nothing_changes(payload: Any, parts: Any) -> None:
    made = change(payload, write=Rules(), **parts)
    assert made.payload is payload
    assert made.patch == []


@given(PAYLOADS, REQUESTS)
def test_what_the_request_does_not_name_is_the_same_object(payload: Any, parts: Any) -> None:
    start = {"left": payload, "work": payload, "alone": [payload]}
    asked: dict[str, Any] = {name: {"work": one} for name, one in parts.items()}
    made = change(start, **asked)
    assert made.payload["left"] is payload
    assert made.payload["alone"] is start["alone"]
    assert next(iter(made.payload)) == "left"


@given(PAYLOADS, OBJECTS)
def test_replacing_is_idempotent(payload: Any, wanted: Any) -> None:
    wanted = json.loads(json.dumps(wanted).replace(DELETE, "y"))
    assume("{}" not in json.dumps(wanted))
    once = change(payload, replace=wanted)
    assert once.payload == {**payload, **wanted}
    assert change(once.payload, replace=wanted).payload is once.payload


@given(PAYLOADS, OBJECTS)
def test_updating_is_idempotent(payload: Any, wanted: Any) -> None:
    wanted = json.loads(json.dumps(wanted).replace(DELETE, "y"))
    once = change(payload, update=wanted)
    assume(
        not any("past the end" in one for one in once.warnings) and "{}" not in json.dumps(wanted)
    )
    twice = change(once.payload, update=wanted)
    assert json.dumps(twice.payload) == json.dumps(once.payload)


@given(PAYLOADS, PAYLOADS)
def test_any_payload_can_be_reached_by_replacing_and_removing(old: Any, new: Any) -> None:
    assume("{}" not in json.dumps(new))
    gone = {key: DELETE for key in old if key not in new}
    assert change(old, replace=new, remove=gone).payload == new


@given(PAYLOADS, REQUESTS)
def test_a_thousand_runs_of_one_default_never_see_each_other(payload: Any, parts: Any) -> None:
    before = copy.deepcopy(payload)
    for _ in range(3):
        change(payload, **parts)
    assert payload == before


@given(
    st.dictionaries(st.sampled_from([*BUCKETS.values(), "reasoning", "a", "new_elements"]), VALUES),
    VALUES,
)
def test_no_request_makes_it_raise(request: Any, payload: Any) -> None:
    made = apply_change(payload, request, write=ALL, max_bytes=1_000)
    assert made.problems == [] or made.payload is payload
