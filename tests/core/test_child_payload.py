"""What a child gets of the payload, and what becomes of its changes."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopagent.core.child_merge import Merge, Taken
from loopagent.core.child_payload import carve, differences, upstream_rules
from loopagent.core.patch import apply_patch
from loopagent.core.paths import rules_of


CASE = {"case": {"id": 7, "notes": ["a"], "secret": "s"}, "log": []}
ALL = ("*",)


def merged(
    payload: Any,
    *children: tuple[Any, Any],
    upstream: tuple[str, ...] = ALL,
    scope: str = "",
    max_bytes: int = 100_000,
) -> tuple[Any, list[Taken]]:
    """The payload after children that started and ended so, and what became of each one's changes."""
    before = deepcopy(payload)
    merge = Merge(payload, max_bytes=max_bytes)
    path = carve(payload, ALL, scope).path
    rules = upstream_rules(upstream)
    taken = [
        merge.take(f"child {number}", differences(start, final), path, rules)
        for number, (start, final) in enumerate(children, 1)
    ]
    assert payload == before, "a merge changed the payload it was given"
    assert apply_patch(payload, merge.patch) == merge.payload
    return merge.payload, taken


def test_a_child_gets_its_part_and_gives_back_what_it_may() -> None:
    carved = carve(CASE, ("case.id", "case.notes"), "/case")
    assert (carved.payload, carved.path) == ({"id": 7, "notes": ["a"]}, ("case",))
    final = {"id": 8, "notes": ["a", "b"]}
    after, (taken,) = merged(
        CASE, (carved.payload, final), upstream=("case.notes:add,update",), scope="/case"
    )
    assert after == {"case": {"id": 7, "notes": ["a", "b"], "secret": "s"}, "log": []}
    assert taken.public() == {
        "changed": ["case.notes"],
        "refused": ["case.id (update is not permitted)"],
    }


@pytest.mark.parametrize(
    ("downstream", "scope"), [(ALL, "/nothing"), (("log",), "/case/id"), (ALL, "/case/id/more")]
)
def test_a_missing_part_is_a_problem(downstream: tuple[str, ...], scope: str) -> None:
    assert "no such part" in (carve(CASE, downstream, scope).problem or "")


def test_scope_goes_into_arrays_and_odd_keys() -> None:
    payload = {"a/b": [{"x": 1}, {"x": 2}]}
    assert carve(payload, ALL, "/a~1b/1").payload == {"x": 2}
    after, _ = merged(payload, ({"x": 2}, {"x": 3}), scope="/a~1b/1")
    assert after == {"a/b": [{"x": 1}, {"x": 3}]}


def test_fix_12_children_side_by_side_lose_nothing() -> None:
    base = {"a": 1, "b": 1}
    after, taken = merged(base, (base, {"a": 2, "b": 1}), (base, {"a": 1, "b": 2}))
    assert after == {"a": 2, "b": 2}
    assert [one.conflicts for one in taken] == [[], []]


def test_fix_12_of_two_changes_to_one_place_the_first_stands_and_both_are_told() -> None:
    base = {"a": 1, "b": {"c": 1, "d": 1}}
    after, (first, second) = merged(
        base, (base, {"a": 2, "b": {"c": 2, "d": 1}}), (base, {"a": 3, "b": 5})
    )
    assert after == {"a": 2, "b": {"c": 2, "d": 1}}
    assert first.changed == ["a", "b.c"]
    assert second.conflicts == ["a (changed by child 1 as well)", "b (changed by child 1 as well)"]


def test_the_same_change_twice_is_no_conflict() -> None:
    base = {"a": 1, "b": 1}
    after, (_, second) = merged(base, (base, {"a": 2}), (base, {"a": 2}))
    assert after == {"a": 2}
    assert not second.conflicts


def test_both_may_append_and_both_may_fill_one_new_object() -> None:
    base: dict[str, Any] = {"list": ["a"]}
    first = {"list": ["a", "b"], "new": {"x": 1}}
    after, taken = merged(base, (base, first), (base, {"list": ["a", "c"], "new": {"y": {"z": 2}}}))
    assert after == {"list": ["a", "b", "c"], "new": {"x": 1, "y": {"z": 2}}}
    assert not any(one.conflicts for one in taken)


def test_a_list_that_was_put_in_order_conflicts_with_an_appended_item() -> None:
    base = {"list": ["b", "a"]}
    after, (_, second) = merged(
        base, (base, {"list": ["a", "b"]}), (base, {"list": ["b", "a", "c"]})
    )
    assert after == {"list": ["a", "b"]}
    assert second.conflicts == ["list (changed by child 1 as well)"]


@pytest.mark.parametrize("upstream", [("case",), ("case.*",), ("case:add,update,delete",)])
def test_fix_13_what_was_not_sent_down_is_never_deleted(upstream: tuple[str, ...]) -> None:
    sent = carve(CASE, ("case.id", "case.notes"), "").payload
    for final in ({}, {"case": {}}, {"case": 5}, {"case": []}):
        after, _ = merged(CASE, (sent, final), upstream=upstream)
        assert after["case"]["secret"] == "s"


def test_fix_13_deleting_needs_to_be_permitted_by_name() -> None:
    kept, (taken,) = merged({"a": {"b": 1}}, ({"a": {"b": 1}}, {"a": {}}), upstream=("a.b",))
    assert kept == {"a": {"b": 1}}
    assert taken.refused == ["a.b (delete is not permitted)"]
    shorter, (taken,) = merged({"a": [1, 2]}, ({"a": [1, 2]}, {"a": [1]}), upstream=("a",))
    assert shorter == {"a": [1, 2]}
    assert taken.refused == ["a (delete is not permitted)"]
    gone, _ = merged({"a": {"b": 1}}, ({"a": {"b": 1}}, {"a": {}}), upstream=("a.b:delete",))
    assert gone == {"a": {}}


def test_fix_14_a_deletion_is_a_change_like_any_other() -> None:
    base = {"a": 1, "b": 1}
    after, (taken,) = merged(base, (base, {"a": 1}))
    assert after == {"a": 1}
    assert taken.changed == ["b"]


def test_fix_15_positions_are_positions() -> None:
    base = {"items": [{"n": 1, "x": 1}, {"n": 2, "x": 2}]}
    final = {"items": [{"n": 5, "x": 5}, {"n": 6, "x": 6}]}
    after, (taken,) = merged(base, (base, final), upstream=("items[1].n:update",))
    assert after == {"items": [{"n": 1, "x": 1}, {"n": 6, "x": 2}]}
    assert len(taken.refused) == 3


def test_a_list_of_which_only_parts_were_sent_keeps_its_items() -> None:
    base = {"items": [{"n": 1, "x": 1}, {"n": 2, "x": 2}]}
    sent = carve(base, ("items[*].n",), "").payload
    after, (taken,) = merged(base, (sent, {"items": [{"n": 2}]}))
    assert after == base
    assert "was not given" in taken.refused[0]
    after, _ = merged(base, (sent, {"items": [{"n": 9}, {"n": 2}]}))
    assert after == {"items": [{"n": 9, "x": 1}, {"n": 2, "x": 2}]}


def test_items_for_a_list_that_was_not_sent_are_appended() -> None:
    after, _ = merged({"log": ["old"], "q": 1}, ({"q": 1}, {"q": 1, "log": ["new"]}))
    assert after == {"log": ["old", "new"], "q": 1}


def test_fix_17_falsy_values_are_values() -> None:
    base = {"a": 1, "b": 1, "c": 1, "d": 1}
    final: dict[str, Any] = {"a": 0, "b": "", "c": [], "d": None, "e": {}, "f": False}
    assert merged(base, (base, final))[0] == final


def test_too_large_a_payload_refuses_that_child_only() -> None:
    base = {"a": 1}
    after, (big, small) = merged(
        base, (base, {"a": 1, "b": "x" * 100}), (base, {"a": 2}), max_bytes=50
    )
    assert after == {"a": 2}
    assert "more than 50 bytes" in big.refused[0]
    assert small.changed == ["a"]


def test_there_is_no_room_inside_a_text() -> None:
    after, (taken,) = merged({"a": "text"}, ({}, {"a": {"b": 1}}))
    assert after == {"a": "text"}
    assert "no room" in taken.refused[0]


# --- for all payloads ------------------------------------------------------------------------------

KEYS = st.sampled_from(["a", "b", "c", "d"])
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-2, 2), st.sampled_from(["", "x"]))
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
PAYLOADS = st.dictionaries(KEYS, VALUES, max_size=4)
PATTERNS = st.lists(
    st.sampled_from(["*", "a", "b", "a.b", "a.*", "c[0]", "c[*].a", "a.*.b", "d"]), max_size=3
).map(tuple)


@given(PAYLOADS, PAYLOADS)
def test_one_child_that_may_everything_gets_its_way(base: Any, final: Any) -> None:
    after, (taken,) = merged(base, (base, final))
    assert after == final
    assert not taken.refused
    assert not taken.conflicts


@given(PAYLOADS, st.lists(PAYLOADS, max_size=3), PATTERNS, PATTERNS)
def test_no_child_ever_takes_away_what_it_did_not_see(
    base: Any, finals: list[Any], down: tuple[str, ...], up: tuple[str, ...]
) -> None:
    sent = carve(base, down, "").payload
    after, _ = merged(base, *((sent, one) for one in finals), upstream=up)
    seen = rules_of(down)
    for path in _leaves(base, ()):
        given = path in _leaves(sent, ())  # an empty one on the way to what may be seen was seen
        if not given and not any(seen.allows(path, one) for one in ("add", "update", "delete")):
            found = after
            for key in path:
                assert isinstance(found, dict | list)
                found = found[key]


@given(PAYLOADS, st.lists(PAYLOADS, max_size=3), PATTERNS)
def test_nothing_changes_where_nothing_may(
    base: Any, finals: list[Any], up: tuple[str, ...]
) -> None:
    after, _ = merged(base, *((base, one) for one in finals), upstream=up)
    rules = upstream_rules(up)
    for change in differences(base, after):
        path = tuple(change["path"])
        if change["op"] == "append":
            path = (*path, 0)
        assert any(rules.allows(path, one) for one in ("add", "update", "delete"))


def _leaves(value: Any, path: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """Places of everything that holds nothing."""
    if isinstance(value, dict) and value:
        return [one for key, inner in value.items() for one in _leaves(inner, (*path, key))]
    if isinstance(value, list) and value:
        return [one for key, inner in enumerate(value) for one in _leaves(inner, (*path, key))]
    return [path]
