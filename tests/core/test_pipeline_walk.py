"""Walking: what is asked for, in which order, what comes out, and that the order of settlement plays no part."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopagent.core.effects import RunAction
from loopagent.core.outcome import Outcome
from loopagent.core.outcomes import Outcomes
from loopagent.core.pipeline.diagnosis import note_on
from loopagent.core.pipeline.memo import Memo
from loopagent.core.pipeline.trace import Failed, Needs, Value, calls_of
from loopagent.core.pipeline.walker import Bounds, Spot, walk
from loopagent.core.problems import Problem
from loopagent.core.protocol.pipeline import AgentPipelineRequest


Action = Callable[[dict[str, Any]], Any]
LIST = {"tool": "list"}
GET = {"tool": "get", "with": {"id": "{{item}}"}}


def make(action: str, params: dict[str, Any], spot: Spot) -> RunAction | list[Problem]:
    if "bad" in params:
        return [Problem("with.bad", "is not known here")]
    return RunAction(f"1:{spot.key}", action, params, timeout_ms=1, repeatable=True)


class Drive:
    """Settles the calls of a pipeline, one at a time, until it ends."""

    def __init__(self, *steps: dict[str, Any], **actions: Action) -> None:
        self.request = AgentPipelineRequest.model_validate({"steps": list(steps)})
        self.actions = actions
        self.results = Outcomes()
        self.memo: Memo | None = Memo()
        self.bounds = Bounds(window=3)
        self.scope: dict[str, Any] = {"payload": {"n": 7}}
        self.most = 0

    def look(self) -> Value | Failed | Needs:
        return walk(
            self.request, scope=self.scope, key="pipe", results=self.results, call=make,
            bounds=self.bounds, at=0.0, memo=self.memo,
        )  # fmt: skip

    def needs(self) -> list[str]:
        found = self.look()
        assert isinstance(found, Needs)
        return [one.id.removeprefix("1:") for one in found.effects]

    def settle(self, effect: RunAction) -> None:
        made = self.actions[effect.action](effect.params)
        key = effect.id.removeprefix("1:")
        self.know(key, made if isinstance(made, Outcome) else Outcome.done(made))

    def know(self, key: str, outcome: Outcome) -> None:
        self.results = self.results.plus(key, outcome)

    def end(self, choose: Callable[[int], int] = lambda _: 0) -> Value | Failed:
        """Go on to the end; `choose` says which of the calls under way settles next."""
        while isinstance(found := self.look(), Needs):
            self.most = max(self.most, len(found.effects))
            self.settle(found.effects[choose(len(found.effects))])
        return found

    def value(self) -> Any:
        found = self.end()
        assert isinstance(found, Value), found
        return found.value

    def failure(self) -> str:
        found = self.end()
        assert isinstance(found, Failed), found
        return str(found.failure)


def broken(params: dict[str, Any]) -> Outcome:
    return Outcome.failed("down", f"no {params.get('id')}", may_have_run=True)


def odd_fails(params: dict[str, Any]) -> Any:
    return broken(params) if params["id"] % 2 else {"id": params["id"], "sq": params["id"] ** 2}


def numbers(count: int) -> Action:
    return lambda _: list(range(count))


def test_stages_run_one_after_another_and_the_last_value_counts() -> None:
    drive = Drive(LIST, {"where": "$ > 1"}, {"count": True}, list=numbers(5))
    assert drive.needs() == ["pipe.0"]
    assert drive.value() == 3
    assert list(drive.results) == ["pipe.0"]


def test_text_that_holds_json_is_read_and_a_wrapper_is_taken_off() -> None:
    assert Drive(LIST, {"first": 1}, list=lambda _: '{"rows": [4, 5]}').value() == [4]
    assert Drive(LIST, list=lambda _: '{"a": 1}').value() == {"a": 1}
    assert Drive(LIST, {"head": 1}, list=lambda _: "{a\nb").value() == "{a"


def test_templates_take_the_stream_the_scope_and_names_of_let() -> None:
    seen: list[dict[str, Any]] = []
    drive = Drive(
        {"let": {"name": "rate", "value": [LIST, {"last": 1}, {"jsonpath": "$[0]"}]}},
        {"tool": "open", "with": {"n": "{{payload.n}}"}},
        {"tool": "put", "with": {"all": "{{$}}", "a": "{{ $.a }}", "text": "r={{rate}} {{$.a}}", "deep": [{"x": "{{rate}}"}]},
         "pipeInto": "body"},
        list=numbers(3), open=lambda params: {"a": params["n"]}, put=seen.append,
    )  # fmt: skip
    assert drive.needs() == ["pipe.0.0"]
    assert drive.value() is None
    assert seen == [
        {"all": {"a": 7}, "a": 7, "text": "r=2 7", "deep": [{"x": 2}], "body": {"a": 7}}
    ]
    assert list(drive.results) == ["pipe.0.0", "pipe.1", "pipe.2"]


def test_values_that_come_out_of_data_are_not_evaluated_again() -> None:
    drive = Drive(
        LIST, {"tool": "get", "with": {"id": "{{$[0]}}"}},
        list=lambda _: ["{{payload.n}}"], get=lambda params: params,
    )  # fmt: skip
    assert drive.value() == {"id": "{{payload.n}}"}


def test_let_works_on_the_stream_and_lets_it_pass() -> None:
    count = {"let": {"name": "n", "value": [{"count": True}]}}
    drive = Drive(
        LIST, count, {"tool": "get", "with": {"id": "{{n}}", "first": "{{$[0]}}"}},
        list=numbers(4), get=lambda params: params,
    )  # fmt: skip
    assert drive.value() == {"id": 4, "first": 0}


def test_map_asks_for_a_window_and_keeps_the_order_of_entries() -> None:
    drive = Drive(
        LIST,
        {"map": {"do": [GET, {"jsonpath": "$.sq"}]}},
        list=numbers(7),
        get=lambda p: {"sq": p["id"] ** 2},
    )
    found = drive.end(lambda count: count - 1)
    assert isinstance(found, Value)
    assert found.value == [0, 1, 4, 9, 16, 25, 36]
    assert drive.most == 3
    assert [one.key for one in calls_of(found.trace)] == [
        "pipe.0",
        *(f"pipe.1.{n}.0" for n in range(7)),
    ]


def test_a_slow_entry_holds_up_nobody_else() -> None:
    drive = Drive(LIST, {"map": {"do": [GET]}}, list=numbers(9), get=lambda p: p["id"])
    drive.know("pipe.0", Outcome.done(list(range(9))))
    for n in (1, 2, 4):
        drive.know(f"pipe.1.{n}.0", Outcome.done(n))
    assert drive.needs() == ["pipe.1.0.0", "pipe.1.3.0", "pipe.1.5.0"]


def test_maps_nest_and_inner_names_hide_outer_ones() -> None:
    inner = {
        "map": {"as": "x", "do": [{"tool": "get", "with": {"id": "{{x}}", "of": "{{item.n}}"}}]}
    }
    drive = Drive(
        LIST, {"map": {"do": [{"jsonpath": "$.xs"}, inner, {"count": True}]}},
        list=lambda _: [{"n": 1, "xs": [1, 2]}, {"n": 2, "xs": []}, {"n": 3, "xs": [3, 4, 5]}], get=lambda p: p,
    )  # fmt: skip
    assert drive.value() == [2, 0, 3]
    assert "pipe.1.2.1.0.0" in drive.results
    assert drive.most == 3


def test_a_failed_entry_becomes_null_and_is_named() -> None:
    drive = Drive(
        LIST, {"map": {"do": [GET, {"jsonpath": "$.sq"}]}}, list=numbers(10), get=odd_fails
    )
    found = drive.end()
    assert isinstance(found, Value)
    assert found.value == [0, None, 4, None, 16, None, 36, None, 64, None]
    assert note_on(found) == (
        "5 of 10 entries of steps[1] (map) failed and are null: entry 1: do[0] (get): no 1; "
        "entry 3: do[0] (get): no 3; entry 5: do[0] (get): no 5; and 2 more"
    )


def test_fix_25_without_continue_on_error_no_entry_starts_after_the_window_that_failed() -> None:
    body = {"do": [GET], "continueOnError": False}
    drive = Drive(
        LIST,
        {"map": body},
        {"count": True},
        list=numbers(10),
        get=lambda p: broken(p) if p["id"] == 4 else 1,
    )
    found = drive.end(lambda count: count - 1)
    assert isinstance(found, Failed)
    assert str(found.failure) == "steps[1] (map): entry 4: do[0] (get): no 4"
    assert found.failure.code == "down"
    assert found.failure.may_have_run
    assert sorted(drive.results) == ["pipe.0", *(f"pipe.1.{n}.0" for n in range(6))]
    assert note_on(found) == (
        "before that: list 10 entries; 6 of 10 entries were tried, 1 failed; calls: list 1 ok, get 5 ok, get 1 failed"
    )


def test_a_failed_call_is_the_failure_of_the_pipeline_with_its_stage_named() -> None:
    drive = Drive(
        LIST,
        {"count": True},
        {"tool": "get", "with": {"id": "{{$}}"}},
        {"count": True},
        list=numbers(2),
        get=broken,
    )
    found = drive.end()
    assert isinstance(found, Failed)
    assert str(found.failure) == "steps[2] (get): no 2"
    assert note_on(found) == "before that: list 2 entries, count 2; calls: list 1 ok, get 1 failed"


@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        ([LIST, {"where": "a == 1"}], "steps[1] (where): where needs a list, got an object with the keys a, b"),
        ([LIST, {"map": {"do": [{"count": True}]}}], "steps[1] (map): map needs a list, got an object"),
        ([{"let": {"name": "x", "value": [LIST, {"first": 1}]}}], "steps[0] (let x): value[1] (first): first needs a list"),
        ([LIST, {"tool": "list", "with": {"x": "{{$.c.d}}"}}], "steps[1] (list): with.x: {{ $.c.d }}: $.c is missing; $ is an object with a, b"),
        ([LIST, {"tool": "list", "with": {"bad": 1}}], "steps[1] (list): with.bad: is not known here"),
        ([LIST, {"jsonpath": "$.c"}, {"first": 1}], "steps[2] (first): first needs a list, got null"),
    ],
)  # fmt: skip
def test_stages_that_cannot_work_say_where_and_why(
    steps: list[dict[str, Any]], reason: str
) -> None:
    assert reason in Drive(*steps, list=lambda _: {"a": 1, "b": [1]}).failure()


def test_fix_6_a_map_whose_calls_keep_failing_starts_no_further_entries() -> None:
    drive = Drive(
        LIST,
        {"map": {"do": [GET]}},
        list=numbers(100),
        get=lambda p: p["id"] if p["id"] < 3 else broken(p),
    )
    found = drive.end(lambda count: count - 1)
    assert isinstance(found, Value)
    assert found.value == [0, 1, 2, *[None] * 97]
    assert len(drive.results) == 1 + 8 + 12
    assert note_on(found) == (
        "97 of 100 entries of steps[1] (map) failed and are null: entry 3: do[0] (get): no 3; entry 4: do[0] (get): no 4; "
        "entry 5: do[0] (get): no 5; and 14 more; from entry 20 on none was started: get failed 5 time(s) in a row"
    )
    hopeless = Drive(
        LIST,
        {"map": {"do": [GET]}},
        list=numbers(100),
        get=lambda _: Outcome.failed("key", "none", fatal=True),
    )
    hopeless.value()
    assert len(hopeless.results) == 1 + 1 + 12


def test_limits() -> None:
    many = Drive(LIST, {"map": {"do": [GET]}}, list=numbers(4), get=lambda _: 1)
    many.bounds = replace(many.bounds, max_entries=3)
    assert many.failure() == (
        "steps[1] (map): 4 entries, and at most 3 are allowed; put where or first before map"
    )
    large = Drive(LIST, {"map": {"do": [GET]}}, list=numbers(4), get=lambda _: "x" * 600)
    large.bounds = replace(large.bounds, max_bytes=1_000)
    assert "its calls gave more than 1000 bytes" in large.failure()
    assert len(large.results) < 5


def test_fix_5_calls_of_a_map_are_counted_before_its_first_one() -> None:
    twice = {"map": {"do": [GET, {"let": {"name": "x", "value": [GET]}}]}}
    drive = Drive(LIST, twice, list=numbers(4), get=lambda _: 1)
    drive.bounds = replace(drive.bounds, room=lambda action, _: 7 if action == "get" else None)
    assert drive.failure() == "steps[1] (map): 8 calls of get would be needed and 7 are left"
    assert list(drive.results) == ["pipe.0"]


@pytest.mark.parametrize(
    ("steps", "value", "note"),
    [
        (
            [{"where": "tota > 5"}, {"select": "id"}, {"count": True}],
            0,
            (
                "steps[1] (where) left nothing of 3 entries, their fields are id, total, name; "
                "stages: list 3 entries, where 0 entries, select 0 entries, count 0"
            ),
        ),
        (
            [{"select": "Id"}],
            [None] * 3,
            (
                "steps[1] (select) left only null for 3 entries, their fields are id, total, name; "
                "stages: list 3 entries, select 3 entries"
            ),
        ),
        (
            [{"jsonpath": "$.rows"}],
            None,
            (
                "steps[1] (jsonpath) left nothing of 3 entries, their fields are id, total, name; "
                "stages: list 3 entries, jsonpath null"
            ),
        ),
        (
            [{"select": "name"}, {"grep": "zz"}],
            [],
            (
                "steps[2] (grep) left nothing of 3 entries, the first is a; "
                "stages: list 3 entries, select 3 entries, grep 0 entries"
            ),
        ),
        ([{"where": "total > 5"}, {"count": True}], 2, ""),
    ],
)
def test_an_empty_value_says_which_stage_emptied_it(
    steps: list[dict[str, Any]], value: Any, note: str
) -> None:
    rows = [{"id": 1, "total": 3, "name": "a"}, {"id": 2, "total": 7}, {"id": 3, "total": 8}]
    found = Drive(LIST, *steps, list=lambda _: rows).end()
    assert isinstance(found, Value)
    assert (found.value, note_on(found)) == (value, note)


def test_an_empty_answer_of_an_action_is_seen_as_such() -> None:
    found = Drive(LIST, {"where": "a > 1"}, list=lambda _: []).end()
    assert isinstance(found, Value)
    assert note_on(found) == "stages: list 0 entries, where 0 entries"


SHAPES = [
    [LIST, {"map": {"do": [GET, {"jsonpath": "$.sq"}]}}, {"where": "$ > 3"}],
    [LIST, {"map": {"do": [GET], "continueOnError": False}}, {"count": True}],
    [LIST, {"map": {"do": [{"let": {"name": "x", "value": [GET]}}, {"tool": "put", "with": {"id": "{{item}}", "x": "{{x}}"}}]}}],
    [LIST, {"map": {"do": [{"tool": "few", "with": {"id": "{{item}}"}},
                           {"map": {"as": "in", "do": [{"tool": "get", "with": {"id": "{{in}}"}}], "continueOnError": False}},
                           {"count": True}]}}, {"distinct": ""}],
]  # fmt: skip


@given(
    st.sampled_from(SHAPES), st.integers(0, 40), st.lists(st.integers(0, 99)), st.booleans(),
    st.sets(st.integers(0, 20)), st.booleans(),
)  # fmt: skip
def test_any_order_of_settlement_gives_the_same(
    steps: list[dict[str, Any]],
    count: int,
    order: list[int],
    remember: bool,
    bad: set[int],
    fatal: bool,
) -> None:
    def some_fail(params: dict[str, Any]) -> Any:
        failed = Outcome.failed("down", f"no {params['id']}", fatal=fatal)
        return failed if params["id"] in bad else {"sq": params["id"] ** 2}

    def drive(picks: list[int], *, memo: bool) -> tuple[Any, str, list[Any]]:
        ran = Drive(
            *steps, list=numbers(count), get=some_fail, put=lambda params: params,
            few=lambda params: list(range(0, params["id"] % 5 * 3, 1 + params["id"] % 2)),
        )  # fmt: skip
        ran.memo = Memo() if memo else None
        todo = list(picks)
        found = ran.end(lambda count: todo.pop() % count if todo else 0)
        end = found.value if isinstance(found, Value) else str(found.failure)
        calls = [(one.key, one.params, one.outcome.ok) for one in calls_of(found.trace)]
        return end, note_on(found), [calls, sorted(ran.results)]

    assert drive(order, memo=remember) == drive([], memo=False)


def test_what_was_found_is_kept_as_long_as_it_rests_on_the_same_outcomes() -> None:
    drive = Drive(
        LIST, {"map": {"do": [GET]}}, {"where": "$ != 5"}, list=numbers(3), get=lambda p: p["id"]
    )
    assert drive.value() == [0, 1, 2]
    first = drive.look()
    second = drive.look()
    assert isinstance(first, Value)
    assert isinstance(second, Value)
    assert first.value is second.value
    drive.know("pipe.1.1.0", Outcome.done(5))
    assert drive.value() == [0, 2]
    drive.know("pipe.0", Outcome.done([9]))
    assert drive.value() == [0]


def test_a_memo_of_other_names_is_not_used() -> None:
    drive = Drive({"tool": "get", "with": {"id": "{{payload.n}}"}}, get=lambda p: p["id"])
    assert drive.value() == 7
    drive.scope = {"payload": {"n": 8}}
    found = drive.look()
    assert isinstance(found, Value)
    assert [one.params for one in calls_of(found.trace)] == [{"id": 8}]


def test_walking_again_costs_little_per_entry() -> None:
    made: list[str] = []
    drive = Drive(
        LIST, {"map": {"do": [GET, {"count": True}]}}, list=numbers(300), get=lambda _: [1]
    )
    plain = make

    def counted(action: str, params: dict[str, Any], spot: Spot) -> RunAction | list[Problem]:
        made.append(spot.key)
        return plain(action, params, spot)

    while isinstance(
        found := walk(drive.request, scope={}, key="pipe", results=drive.results, call=counted,
                      bounds=drive.bounds, memo=drive.memo),
        Needs,
    ):  # fmt: skip
        drive.settle(found.effects[0])
    assert len(made) == len(set(made)) == 301
