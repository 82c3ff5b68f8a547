from __future__ import annotations

from typing import Any

import pytest

from loopagent.core.patch import apply_patch


@pytest.mark.parametrize(
    ("operation", "after"),
    [
        ({"op": "add", "path": "/b", "value": 1}, {"a": [1, 2], "b": 1}),
        ({"op": "add", "path": "/a/-", "value": 3}, {"a": [1, 2, 3]}),
        ({"op": "add", "path": "/a/0", "value": 0}, {"a": [0, 1, 2]}),
        ({"op": "add", "path": "/a/2", "value": 3}, {"a": [1, 2, 3]}),
        ({"op": "replace", "path": "/a/1", "value": None}, {"a": [1, None]}),
        ({"op": "remove", "path": "/a/0"}, {"a": [2]}),
        ({"op": "remove", "path": "/a"}, {}),
        ({"op": "replace", "path": "", "value": 5}, 5),
        ({"op": "add", "path": "/~01~1", "value": 1}, {"a": [1, 2], "~1/": 1}),
        ({"op": "add", "path": "/", "value": 1}, {"a": [1, 2], "": 1}),
    ],
)
def test_patch_operations(operation: dict[str, Any], after: Any) -> None:
    start = {"a": [1, 2]}
    assert apply_patch(start, [operation]) == after
    assert start == {"a": [1, 2]}


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "replace", "path": "/b", "value": 1},
        {"op": "remove", "path": "/b"},
        {"op": "remove", "path": "/a/2"},
        {"op": "remove", "path": ""},
        {"op": "add", "path": "/a/3", "value": 1},
        {"op": "add", "path": "/a/01", "value": 1},
        {"op": "add", "path": "/a/x", "value": 1},
        {"op": "replace", "path": "/a/-", "value": 1},
        {"op": "add", "path": "/a/0/x", "value": 1},
        {"op": "add", "path": "/x/y", "value": 1},
        {"op": "add", "path": "a", "value": 1},
        {"op": "add", "path": "/a"},
        {"op": "move", "path": "/a", "from": "/b"},
        {"path": "/a"},
        {"op": "add", "value": 1},
    ],
)
def test_patches_that_do_not_fit_are_errors(operation: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r".+"):
        apply_patch({"a": [1, 2]}, [operation])


def test_what_a_patch_puts_in_is_not_changed_by_its_later_operations() -> None:
    value: dict[str, Any] = {"l": [1]}
    patch: list[dict[str, Any]] = [
        {"op": "add", "path": "/v", "value": value},
        {"op": "add", "path": "/v/l/-", "value": 2},
        {"op": "add", "path": "/w", "value": value},
    ]
    assert apply_patch({}, patch) == {"v": {"l": [1, 2]}, "w": {"l": [1]}}
    assert value == {"l": [1]}
