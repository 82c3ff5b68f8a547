from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopagent.core.paths import ALL
from loopagent.core.payload import apply_change
from loopagent.core.shrink import ShrinkLimits, suspicious


def losses(old: Any, *, limits: ShrinkLimits | None = None, **request: Any) -> list[str]:
    change = apply_change(old, request, write=ALL, max_bytes=10_000_000)
    assert change.problems == []
    return suspicious(old, change.payload, change.patch, limits)


def texts(old: str, new: str) -> list[str]:
    return losses({"t": old, "k": 1}, updateElements={"t": new})


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        (100, 31, None),
        (100, 29, "/t shrank from 100 to 29 characters"),
        (100, 9, "/t shrank from 100 to 9 characters, a critical loss"),
        (99, 1, None),
        (100, 0, "/t shrank from 100 to 0 characters, a critical loss"),
        (100, 200, None),
    ],
)
def test_text_that_shrinks(old: int, new: int, found: str | None) -> None:
    assert texts("x" * old, "y" * new) == ([] if found is None else [found])


@pytest.mark.parametrize(
    "cut",
    [
        "One, two ...",
        "One, two…",
        "One [truncated]",
        "One (rest unchanged)",
        "One, etc.",
        "One and more",
        "One and so on",
        "the text remains the same",
    ],
)
def test_traces_of_abbreviation_in_a_shorter_text(cut: str) -> None:
    (found,) = texts("One, two, three, four, five, six, seven", cut)
    assert found.startswith("/t became shorter and looks abbreviated")


def test_traces_that_were_there_before_or_in_a_longer_text_mean_nothing() -> None:
    assert texts("One, two ... three, four", "One, two ... three") == []
    assert texts("One", "One, two ...") == []
    assert texts("A ketchup fetched from the stretcher", "A ketchup fetched") == []


@pytest.mark.parametrize(
    ("kept", "found"),
    [(5, None), (4, ""), (2, ""), (1, ", a critical loss"), (0, ", a critical loss")],
)
def test_lists_that_lose_items(kept: int, found: str | None) -> None:
    old = {"l": list(range(10)), "k": 1}
    expected = [] if found is None else [f"/l lost {10 - kept} of 10 items{found}"]
    assert losses(old, replaceElements={"l": list(range(kept))}) == expected
    marks: list[Any] = [{}] * kept + ["__DELETE__"] * (10 - kept)
    assert losses(old, removeElements={"l": marks}) == expected


@pytest.mark.parametrize(("kept", "found"), [(5, None), (4, ""), (2, ""), (1, ", a critical loss")])
def test_objects_that_lose_keys(kept: int, found: str | None) -> None:
    old = {"o": {f"k{n}": n for n in range(10)}}
    expected = [] if found is None else [f"/o lost {10 - kept} of 10 keys{found}"]
    assert losses(old, replaceElements={"o": {f"k{n}": n for n in range(kept)}}) == expected
    marks = {f"k{n}": "__DELETE__" for n in range(kept, 10)}
    assert losses(old, removeElements={"o": marks}) == expected


def test_keys_that_are_swapped_for_others_are_lost_too() -> None:
    old = {"o": {"a": 1, "b": 2, "c": 3}}
    assert losses(old, replaceElements={"o": {"x": 1, "y": 2, "c": 3}}) == ["/o lost 2 of 3 keys"]


def test_removals_of_more_than_a_few_characters() -> None:
    old = {"long": "x" * 49, "short": "x" * 48, "o": {"a": list(range(30))}, "k": 1}
    marks = {"long": "__DELETE__", "short": "__DELETE__", "o": {"a": "__DELETE__"}}
    found = losses(old, removeElements=marks)
    assert "/long was removed (51 characters)" in found
    assert "/o/a was removed (110 characters)" in found
    assert not any(one.startswith("/short") for one in found)


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ({"a": 1}, "gone", "/v was an object and became a single value"),
        ([1], 5, "/v was a list and became a single value"),
        ({"a": 1}, None, "/v was an object and became null"),
        ({"a": 1}, [1], "/v was an object and became a list"),
        ({}, 1, None),
        ([], "x", None),
        ("text", {"a": 1}, None),
    ],
)
def test_containers_that_become_something_else(old: Any, new: Any, found: str | None) -> None:
    expected = [] if found is None else [found]
    assert losses({"v": old, "k": 1}, replaceElements={"v": new}) == expected


def test_top_level_keys_that_go_missing() -> None:
    six = {f"k{n}": n for n in range(6)}
    one = losses(six, removeElements={"k0": "__DELETE__"})
    two = losses(six, removeElements={"k0": "__DELETE__", "k1": "__DELETE__"})
    assert one == []
    assert two == ["(the whole) lost 2 of its 6 top-level keys: k0, k1"]
    five = {f"k{n}": n for n in range(5)}
    assert losses(five, removeElements={"k0": "__DELETE__", "k1": "__DELETE__"}) == []


def test_losses_inside_what_was_replaced_whole_are_found() -> None:
    old = {"doc": {"parts": [{"text": "x" * 200}, {"text": "kept"}], "a/b~c": {"t": "y" * 200}}}
    new = {"parts": [{"text": "short"}, {"text": "kept"}], "a/b~c": {"t": "cut"}}
    assert losses(old, replaceElements={"doc": new}) == [
        "/doc/parts/0/text shrank from 200 to 5 characters, a critical loss",
        "/doc/a~1b~0c/t shrank from 200 to 3 characters, a critical loss",
    ]


def nested(depth: int, leaf: Any) -> Any:
    return leaf if depth == 0 else {"n": nested(depth - 1, leaf)}


def test_places_deeper_than_ten_levels_are_not_looked_at() -> None:
    assert len(losses(nested(10, "x" * 200), updateElements=nested(10, ""))) == 1
    assert losses(nested(11, "x" * 200), updateElements=nested(11, "")) == []
    assert losses(nested(11, "x" * 200), replaceElements=nested(11, "")) == []
    assert losses(nested(12, 1), removeElements=nested(12, "__DELETE__")) == []


def test_only_places_that_changed_are_looked_at() -> None:
    class Untouchable(dict[str, Any]):
        def __iter__(self) -> Any:
            raise AssertionError("was looked at")

        items = keys = values = __iter__

    old = {"big": Untouchable(), "n": 1}
    assert losses(old, updateElements={"n": 2}) == []


def test_thresholds_are_settings_and_many_warnings_are_counted() -> None:
    old = {f"t{n}": "x" * 100 for n in range(5)}
    cut = {f"t{n}": "" for n in range(5)}
    assert losses(old, updateElements=cut, limits=ShrinkLimits(text_chars=101)) == []
    found = losses(old, updateElements=cut, limits=ShrinkLimits(max_warnings=2))
    assert len(found) == 3
    assert found[-1] == "and 3 more losses like these"


VALUES = st.recursive(
    st.none() | st.integers(0, 3) | st.text("ab.…", max_size=120),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["a", "b", "c/~", "0"]), inner, max_size=4)
    ),
    max_leaves=15,
)
OBJECTS = st.dictionaries(st.sampled_from(["a", "b", "c/~", "0"]), VALUES, max_size=4)


@given(OBJECTS, OBJECTS, st.sampled_from(["updateElements", "replaceElements", "removeElements"]))
def test_no_change_makes_the_analysis_raise(old: Any, wanted: Any, bucket: str) -> None:
    for one in losses(old, **{bucket: wanted}):
        assert one.startswith(("/", "(the whole)", "and "))


@given(OBJECTS)
def test_what_only_grows_is_never_suspicious(old: Any) -> None:
    assert losses(old, newElements={"fresh": "x ... and more"}) == []
