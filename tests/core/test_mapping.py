"""Output mappings: results that go into the payload."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopagent.core.mapping import MAX_REFUSED, Outputs, mapping_faults
from loopagent.core.patch import apply_patch
from loopagent.core.paths import ALL, parse_rules


def put(payload: Any, *writes: tuple[str, Any], rules: Any = ALL) -> Outputs:
    outputs = Outputs(payload, rules)
    for target, value in writes:
        outputs.put(target, value)
    return outputs


@pytest.mark.parametrize(
    ("payload", "target", "value", "after"),
    [
        ({}, "total", 3, {"total": 3}),
        (None, "total", 3, {"total": 3}),
        ({}, "a.b.c", 3, {"a": {"b": {"c": 3}}}),
        ({"a": {"b": 1}}, "a.b", None, {"a": {"b": None}}),
        ({"rows": [{}, {}]}, "rows[1].ok", True, {"rows": [{}, {"ok": True}]}),
        ({"rows": [1]}, "rows[1]", 2, {"rows": [1, 2]}),
        ({"rows": [1]}, "rows[]", 2, {"rows": [1, 2]}),
        ({}, "rows[]", 2, {"rows": [2]}),
        ({}, "payload.total", 3, {"total": 3}),
        ({}, '["odd.key"].x', 3, {"odd.key": {"x": 3}}),
    ],
)
def test_values_go_where_the_path_says(payload: Any, target: str, value: Any, after: Any) -> None:
    outputs = put(payload, (target, value))
    assert outputs.payload == after
    assert not outputs.refused
    assert apply_patch(payload or {}, outputs.patch) == after


def test_positions_make_an_array_item_by_item() -> None:
    outputs = put({}, ("made.rows[0].x", 1), ("made.rows[1]", 2), ("made.rows[0].y", 3))
    assert outputs.payload == {"made": {"rows": [{"x": 1, "y": 3}, 2]}}
    assert outputs.refused == []


@pytest.mark.parametrize(
    ("payload", "target", "fault"),
    [
        (
            {"rows": []},
            "rows[3]",
            "rows has 0 items, so the next is at [0]; a path that ends in [] appends",
        ),
        ({"rows": 5}, "rows.x", "there is no object at rows"),
        ({"rows": 5}, "rows[0]", "there is no array at rows"),
        ({"rows": 5}, "rows[]", "not an array"),
        (
            {},
            "rows[1].x",
            "an array that is not there begins at [0]; a path that ends in [] appends",
        ),
        ({}, "a.*", "not one place"),
        ({}, "", "not a path"),
    ],
)
def test_what_cannot_be_put_is_said_and_nothing_changes(
    payload: Any, target: str, fault: str
) -> None:
    outputs = put(payload, (target, 1))
    assert outputs.payload == payload
    assert not outputs.patch
    assert fault in outputs.refused[0]


def test_write_rules_hold() -> None:
    rules, _ = parse_rules(["out.*", "log:add"])
    outputs = put(
        {"log": [1]}, ("out.x", 1), ("log[]", 2), ("secret", 3), ("log[0]", 4), rules=rules
    )
    assert outputs.payload == {"log": [1, 2], "out": {"x": 1}}
    assert [one.split(":")[0] for one in outputs.refused] == ["'secret'", "'log[0]'"]


def test_parts_of_a_result() -> None:
    outputs = Outputs({}, ALL)
    outputs.take({"*": "all", "items[0].id": "first", "gone": "x"}, {"items": [{"id": 7}]})
    assert outputs.payload == {"all": {"items": [{"id": 7}]}, "first": 7}
    assert outputs.refused == ["the result has nothing at 'gone'"]


def test_many_refusals_are_counted() -> None:
    outputs = put({"x": 1}, *[("x.y", 1)] * (MAX_REFUSED + 5))
    assert len(outputs.refused) == MAX_REFUSED
    assert outputs.left_out == 5


def test_faults_that_can_be_seen_beforehand() -> None:
    assert mapping_faults({"*": "a.b", "x": "rows[{{ index }}].y"}) == []
    faults = mapping_faults({"a..b": "x", "y": 3, "z": "p.*"})
    assert len(faults) == 3


@given(
    st.lists(
        st.tuples(st.sampled_from(["a", "a.b", "l[]", "l[0]", "l[1].x", "c.d.e"]), st.integers())
    )
)
def test_the_patch_always_leads_to_the_payload(writes: list[tuple[str, int]]) -> None:
    start: dict[str, Any] = {"l": [{"x": 1}], "c": {}}
    outputs = put(start, *writes)
    assert apply_patch(start, outputs.patch) == outputs.payload
    assert start == {"l": [{"x": 1}], "c": {}}
