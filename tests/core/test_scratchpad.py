from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopagent.core.scratchpad import Scratchpad, Task, apply


def task(key: str, status: str = "pending", **more: Any) -> dict[str, Any]:
    return {"id": key, "title": key.upper(), "status": status, **more}


def pad(*keys: str, notes: str = "") -> Scratchpad:
    return Scratchpad(notes=notes, tasks=tuple(Task.model_validate(task(one)) for one in keys))


def done(start: Scratchpad, change: Any, **limits: int) -> Scratchpad:
    after, warnings, problems = apply(start, change, **limits)
    assert (warnings, problems) == ([], [])
    return after


def refused(change: Any, start: Scratchpad | None = None, **limits: int) -> list[str]:
    before = start or pad("a", notes="kept")
    after, _, problems = apply(before, change, **limits)
    assert after is before
    assert problems
    return [str(one) for one in problems]


@pytest.mark.parametrize(
    ("change", "notes"),
    [
        ({}, "old"),
        ({"taskList": {}}, "old"),
        ({"notes": "new"}, "new"),
        ({"notes": ""}, ""),
        ({"notes": None}, ""),
    ],
)
def test_notes_are_replaced_whole_when_present(change: dict[str, Any], notes: str) -> None:
    assert done(pad("a", notes="old"), change) == pad("a", notes=notes)


def test_upsert_adds_at_the_end_and_replaces_whole_tasks_in_place() -> None:
    start = done(pad(), {"taskList": {"upsert": [task("a", notes="n"), task("b")]}})
    after = done(start, {"taskList": {"upsert": [task("a", "completed"), task("c")]}})
    assert [one.id for one in after.tasks] == ["a", "b", "c"]
    assert after.tasks[0] == Task(id="a", title="A", status="completed", notes=None)


def test_removal_comes_before_upsert() -> None:
    after = done(pad("a", "b"), {"taskList": {"remove": ["a"], "upsert": [task("a", "blocked")]}})
    assert [(one.id, one.status) for one in after.tasks] == [("b", "pending"), ("a", "blocked")]


def test_removal_makes_room_for_new_tasks() -> None:
    change = {"taskList": {"remove": ["a"], "upsert": [task("c")]}}
    assert [one.id for one in done(pad("a", "b"), change, max_tasks=2).tasks] == ["b", "c"]


def test_more_tasks_than_allowed_are_refused_with_what_to_do() -> None:
    change = {"notes": "new", "taskList": {"upsert": [task("b"), task("c")]}}
    (problem,) = refused(change, max_tasks=2)
    assert problem.startswith("scratchpad.taskList.upsert: there would be 3 tasks, 2 are allowed")
    assert "remove completed" in problem


def test_a_list_that_is_too_long_already_can_still_be_worked_on() -> None:
    start = pad("a", "b", "c")
    assert (
        len(done(start, {"taskList": {"upsert": [task("a", "completed")]}}, max_tasks=2).tasks) == 3
    )
    assert refused({"taskList": {"upsert": [task("d")]}}, start, max_tasks=2)


def test_long_notes_and_long_tasks_are_refused() -> None:
    change = {
        "notes": "x" * 11,
        "taskList": {"upsert": [task("a", notes="x" * 99), task("b"), task("c", notes="x" * 99)]},
    }
    problems = refused(change, max_notes_chars=10, max_task_chars=50)
    assert [one.partition(":")[0] for one in problems] == [
        "scratchpad.notes",
        "scratchpad.taskList.upsert[0]",
        "scratchpad.taskList.upsert[2]",
    ]


def test_everything_malformed_is_named_at_once() -> None:
    change = {
        "notes": 5,
        "taskList": {
            "remove": [1],
            "upsert": [
                task("a", "done"),
                {"id": "b"},
                "c",
                task(""),
                {"title": "T", "status": "blocked"},
            ],
        },
    }
    where = {one.partition(":")[0] for one in refused(change)}
    inside = "scratchpad.taskList.upsert"
    assert where == {
        "scratchpad.notes",
        "scratchpad.taskList.remove[0]",
        f"{inside}[0].status",
        f"{inside}[1].title",
        f"{inside}[1].status",
        f"{inside}[2]",
        f"{inside}[3].id",
        f"{inside}[3].title",
        f"{inside}[4].id",
    }


@pytest.mark.parametrize(
    "change", [{"taskList": []}, {"taskList": {"upsert": {}}}, {"taskList": {"remove": "a"}}]
)
def test_wrong_shapes_are_problems(change: Any) -> None:
    assert refused(change)[0].startswith("scratchpad.taskList")


@pytest.mark.parametrize("change", [[], "notes", 5])
def test_something_that_is_no_object_is_a_problem(change: Any) -> None:
    assert refused(change)[0].startswith("scratchpad: ")


def test_removing_what_is_not_there_and_naming_a_task_twice_are_warnings() -> None:
    change = {"taskList": {"remove": ["x", "x"], "upsert": [task("b"), task("b", "blocked")]}}
    after, warnings, problems = apply(pad("a"), change)
    assert problems == []
    assert after.tasks[1].status == "blocked"
    assert warnings == [
        "scratchpad: there is no task 'x' to remove",
        "scratchpad: task 'b' stands twice in upsert; the last one counts",
    ]


def test_a_stored_scratchpad_comes_back_the_same() -> None:
    start = done(pad(), {"notes": "n", "taskList": {"upsert": [task("a", notes="x"), task("b")]}})
    assert Scratchpad.model_validate_json(start.model_dump_json()) == start


TASKS = st.lists(
    st.builds(task, st.sampled_from("abcd"), st.sampled_from(["pending", "completed"])), max_size=6
)


@given(TASKS, TASKS, st.lists(st.sampled_from("abcd"), max_size=3))
def test_applying_a_change_again_changes_nothing_more(
    first: Any, upsert: Any, remove: list[str]
) -> None:
    start, _, _ = apply(pad(), {"taskList": {"upsert": first}})
    before = start.model_dump()
    change = {"notes": "n", "taskList": {"remove": remove, "upsert": upsert}}
    once, _, _ = apply(start, change)
    twice, _, _ = apply(once, change)
    assert {one.id: one for one in twice.tasks} == {one.id: one for one in once.tasks}
    assert {one.id for one in once.tasks} == (
        {one["id"] for one in first} - set(remove) | {one["id"] for one in upsert}
    )
    assert start.model_dump() == before


@given(
    st.recursive(
        st.none() | st.booleans() | st.text(max_size=3),
        lambda x: (
            st.lists(x)
            | st.dictionaries(st.sampled_from(["notes", "taskList", "upsert", "remove", "id"]), x)
        ),
        max_leaves=8,
    )
)
def test_nothing_makes_it_raise(change: Any) -> None:
    start = pad("a", notes="n")
    after, _, problems = apply(start, change)
    assert after is start or not problems
