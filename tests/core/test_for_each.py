"""ForEach: windows, templates, stopping, mappings, approval of the whole, and any order of settlement."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopagent.core.agent_spec import ApprovalPolicy, Limits, PayloadSpec
from loopagent.core.effects import KeepValue, SetTimer
from loopagent.core.events import CancelRequested, Settled
from loopagent.core.outcome import Outcome
from tests.core.play import Play, agent, calls, report


ITEMS = [{"id": number} for number in range(6)]


def loop(**fields: Any) -> dict[str, Any]:
    action = fields.pop("action", {"name": "work", "params": {"item": "{{ item.id }}"}})
    body = {"collectionPath": "rows", "action": action, **fields}
    return {"taskComplete": False, "nextStep": {"type": "ForEach", "forEach": body}}


def play(rows: Any = ITEMS, **options: Any) -> Play:
    return Play(agent(**options), payload={"rows": rows})


def finish(run: Play, value: Any = "ok") -> Play:
    """Settle whatever is pending, again and again, until the model is asked."""
    while run.state.calling is None and not run.state.ended:
        one = next(iter(run.state.pending.values()))
        if isinstance(one, KeepValue):
            value = {"$artifact": {"artifactId": "x", "chars": 9, "head": "[", "tail": "]"}}
        run.settle(one.id.partition(":")[2], value)
    return run


def test_one_after_the_other_with_the_item_filled_in() -> None:
    run = play().reply(loop())
    for number in range(6):
        (call,) = calls(run)
        assert call.id == f"1:each.{number}"
        assert call.params == {"item": number}
        run.settle(f"each.{number}", number * 10)
    assert run.state.turn == 2
    told = report(run)
    assert told["ok"] is True
    assert told["result"]["done"] == 6
    assert [one["result"] for one in told["result"]["results"]] == [0, 10, 20, 30, 40, 50]


def test_a_window_slides_in_parallel() -> None:
    run = play().reply(loop(executionMode="parallel", maxConcurrency=3))
    assert [one.params["item"] for one in calls(run)] == [0, 1, 2]
    run.settle("each.1", "b")
    assert [one.params["item"] for one in calls(run)] == [0, 2, 3]
    finish(run)
    assert [one["index"] for one in report(run)["result"]["results"]] == list(range(6))


def test_the_agents_own_limit_bounds_the_window() -> None:
    run = play(limits=Limits(max_concurrency=2)).reply(loop(executionMode="parallel"))
    assert len(calls(run)) == 2


@settings(max_examples=60, deadline=None)
@given(st.data(), st.integers(1, 4), st.booleans())
def test_any_order_of_settlement_gives_the_same_next_prompt(
    data: st.DataObject, width: int, together: bool
) -> None:
    def run_it(pick: Any) -> Play:
        run = play().reply(
            loop(executionMode="parallel", maxConcurrency=width, continueOnError=True)
        )
        while run.state.calling is None:
            pending = sorted(run.state.pending)
            chosen = pick(pending)
            events = [Settled(one, outcome_of(one), 5.0) for one in chosen]
            if together:
                run.give(*events)
            else:
                for event in events:
                    run.give(event)
        return run

    def outcome_of(effect_id: str) -> Outcome:
        number = int(effect_id.rpartition(".")[2])
        if number % 3 == 2:
            return Outcome.failed("broken", f"no {number}")
        return Outcome.done(number)

    def drawn(pending: list[str]) -> list[str]:
        count = data.draw(st.integers(1, len(pending)))
        return list(data.draw(st.permutations(pending)))[:count]

    in_order = run_it(lambda pending: pending[:1])
    assert run_it(drawn).said == in_order.said


def test_fix_25_a_failed_item_is_a_failure_and_stops_the_loop() -> None:
    run = play().reply(loop(executionMode="parallel", maxConcurrency=2))
    run.settle("each.0", error="broken")
    assert [one.id for one in calls(run)] == ["1:each.1"], "nothing new starts, what runs may end"
    run.settle("each.1", "ok")
    told = report(run)
    assert told["ok"] is False
    assert told["result"]["notStarted"] == 4
    assert told["result"]["stopped"] == "a pass failed"
    assert told["result"]["failures"] == [
        {"index": 0, "ok": False, "error": {"code": "broken", "message": "it broken"}}
    ]


def test_continue_on_error_goes_through_and_lists_the_failures() -> None:
    run = play().reply(loop(continueOnError=True))
    for number in range(6):
        run.settle(f"each.{number}", number, error="broken" if number == 3 else None)
    told = report(run)
    assert (told["result"]["done"], told["result"]["failed"]) == (5, 1)
    assert "notStarted" not in told["result"]


def test_fix_6_a_row_of_failures_stops_even_then() -> None:
    run = play([{"id": one} for one in range(50)]).reply(loop(continueOnError=True))
    count = 0
    while run.state.calling is None and run.state.asks == []:
        run.settle(f"each.{count}", error="broken")
        count += 1
    assert count == 5
    assert report(run)["result"]["stopped"] == "5 passes in a row failed"


def test_items_beyond_the_limit_are_counted_not_dropped_silently() -> None:
    run = finish(play().reply(loop(maxIterations=2)))
    assert report(run)["result"]["left"] == 4
    assert report(run)["result"]["done"] == 2


def test_fix_27_full_results_stay_behind_a_handle() -> None:
    rows = [{"id": number} for number in range(30)]
    run = play(rows).reply(loop())
    for number in range(30):
        run.settle(f"each.{number}", f"result {number}")
    (keep,) = run.state.pending.values()
    assert isinstance(keep, KeepValue)
    assert [one["result"] for one in keep.value] == [f"result {one}" for one in range(30)]
    stored = {"artifactId": "abc", "chars": 900, "head": "[", "tail": "]"}
    run.settle("kept", {"$artifact": stored})
    told = report(run)
    assert len(told["result"]["first"]) == 5
    assert told["all"] == {"artifact": "A", "chars": 900}
    assert len(run.said) < 900


@pytest.mark.parametrize(
    ("params", "filled"),
    [
        ({"item": "{{ index }}"}, {"item": 1}),
        ({"item": "{{ row.id + 1 }}"}, {"item": 3}),
        ({"item": "{{ payload.rows[0].id }}"}, {"item": 1}),
        ({"item": "{{ at }}"}, {"item": 1}),
    ],
)
def test_templates_see_item_index_and_payload(params: Any, filled: Any) -> None:
    action = {"name": "work", "params": params}
    run = play([{"id": 1}, {"id": 2}])
    run.reply(loop(action=action, itemVariable="row", indexVariable="at"))
    run.settle("each.0", "ok")
    assert calls(run)[0].params == filled


def test_values_out_of_data_are_not_evaluated_again() -> None:
    spec = agent(actions=(agent().actions[0].model_copy(update={"parameters": {}}),))
    run = Play(spec, payload={"rows": ["{{ payload.secret }}"], "secret": "s3"})
    run.reply(loop(action={"name": "work", "params": {"text": "{{ item }}"}}))
    assert calls(run)[0].params == {"text": "{{ payload.secret }}"}


def test_what_a_model_may_not_read_is_not_there_for_templates() -> None:
    spec = agent(payload=PayloadSpec(read=("rows",)))
    run = Play(spec, payload={"rows": [{"id": 1}], "secret": 7})
    run.reply(loop(action={"name": "work", "params": {"item": "{{ payload.secret }}"}}))
    assert report(run)["result"]["failures"][0]["error"]["code"] == "invalid_params"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"collectionPath": "nothing"}, "nothing at this path; the payload is an object with rows"),
        ({"collectionPath": "rows[0]"}, "there is an object"),
        ({"collectionPath": "static:{}"}, "JSON array"),
        ({"collectionPath": "static:[1,"}, "JSON array"),
        ({"action": {"name": "work", "params": {"item": "{{ itm.id }}"}}}, "itm"),
        ({"action": {"name": "work", "params": {"item": "{{ item.id"}}}, "params.item"),
        ({"action": {"name": "wrok", "params": {}}}, "work"),
        ({"action": {"name": "work", "params": {"item": "seven"}}}, "integer"),
        (
            {"action": {"name": "work", "params": {"item": 1}, "outputMapping": {"*": 3}}},
            "payload path",
        ),
        ({"delayBetweenIterationsMs": 10**9}, "at most"),
    ],
)
def test_what_is_wrong_is_said_before_anything_runs(fields: dict[str, Any], words: str) -> None:
    run = play().reply(loop(**fields))
    assert run.state.turn == 2
    assert not calls(run)
    assert words in run.said


def test_fix_5_calls_are_reserved_for_the_whole_loop() -> None:
    work = agent().actions[0].model_copy(update={"max_calls": 3})
    run = Play(agent(actions=(work,)), payload={"rows": ITEMS}).reply(loop())
    assert "may be called 3 more time(s)" in run.said
    assert not calls(run)


def test_a_static_collection() -> None:
    run = finish(play().reply(loop(collectionPath='static:[{"id":1},{"id":2}]')))
    assert report(run)["result"]["done"] == 2


def test_an_empty_collection_is_done_at_once() -> None:
    run = play([]).reply(loop())
    assert run.state.turn == 2
    assert report(run)["result"]["done"] == 0


def test_output_mapping_writes_the_payload_in_item_order() -> None:
    action = {
        "name": "work",
        "params": {"item": "{{ item.id }}"},
        "outputMapping": {"score": "rows[{{ index }}].score", "*": "log[]"},
    }
    run = play([{"id": 1}, {"id": 2}]).reply(loop(action=action, executionMode="parallel"))
    run.settle("each.1", {"score": 20}).settle("each.0", {"score": 10})
    assert run.state.payload["rows"] == [{"id": 1, "score": 10}, {"id": 2, "score": 20}]
    assert run.state.payload["log"] == [{"score": 10}, {"score": 20}]
    (changed,) = [one for one in run.facts if one.type == "payload.changed"]
    assert [one["path"] for one in changed.data["patch"]] == [
        "/rows/0/score",
        "/log",
        "/rows/1/score",
        "/log/1",
    ]


def test_fix_16_a_mapping_that_may_not_write_is_reported() -> None:
    spec = agent(payload=PayloadSpec(write=("log",)))
    action = {"name": "work", "params": {"item": 1}, "outputMapping": {"*": "rows[0]"}}
    run = Play(spec, payload={"rows": [{"id": 1}]}).reply(loop(action=action)).settle("each.0", 5)
    assert run.state.payload == {"rows": [{"id": 1}]}
    assert "update is not allowed" in run.said


def test_later_items_see_what_earlier_ones_wrote_when_one_after_the_other() -> None:
    action = {
        "name": "work",
        "params": {"item": "{{ default(payload.total, 0) + item.id }}"},
        "outputMapping": {"*": "total"},
    }
    run = play([{"id": 1}, {"id": 2}, {"id": 3}]).reply(loop(action=action))
    for number in range(3):
        (call,) = calls(run)
        run.settle(f"each.{number}", call.params["item"])
    assert run.state.payload["total"] == 6


def test_pauses_are_durable_timers_between_items() -> None:
    run = play([{"id": 1}, {"id": 2}]).reply(loop(delayBetweenIterationsMs=1500))
    run.settle("each.0", "ok")
    (timer,) = run.state.pending.values()
    assert isinstance(timer, SetTimer)
    assert timer.due == run.at + 1.5
    run.settle("pause.1")
    assert [one.id for one in calls(run)] == ["1:each.1"]
    finish(run)
    assert report(run)["result"]["done"] == 2


MAIL = {"name": "mail", "params": {"item": "{{ item.id }}"}}


def test_one_approval_covers_the_loop_and_shows_what_it_is() -> None:
    run = play().reply(loop(action=MAIL, executionMode="parallel"))
    (ask,) = run.state.asks
    assert ask.id == "1:all.mail.ask"
    assert ask.subject["passes"] == 6
    assert ask.subject["first"] == [{"item": 0}, {"item": 1}, {"item": 2}]
    assert not calls(run)
    run.answer("approve")
    assert len(calls(run)) == 6
    finish(run)
    assert report(run)["result"]["done"] == 6


def test_a_refused_loop_asks_nothing_more() -> None:
    run = play().reply(loop(action=MAIL)).answer("reject", feedback="Not today.")
    told = report(run)
    assert "Not today." in told["result"]["stopped"]
    assert told["result"]["notStarted"] == 5
    assert run.state.counters.mistakes == 0


def test_fix_2_a_forbidden_action_is_not_there_for_loops() -> None:
    run = play(approval=ApprovalPolicy(external="never")).reply(loop(action=MAIL))
    assert "mail" in run.said
    assert not run.state.asks


def test_fix_8_cancel_keeps_what_was_done() -> None:
    action = {"name": "work", "params": {"item": 1}, "outputMapping": {"*": "log[]"}}
    run = play().reply(loop(action=action))
    run.settle("each.0", "a").settle("each.1", "b")
    run.give(CancelRequested(99.0, "enough", "human"))
    assert run.state.status == "cancelled"
    assert run.state.payload["log"] == ["a", "b"]
    (told,) = [one for one in run.facts if one.type == "loop.completed"]
    assert told.data == {
        "kind": "forEach",
        "done": 2,
        "failed": 0,
        "notStarted": 4,
        "stopped": "the run ended",
    }


def test_a_limit_in_the_middle_keeps_what_was_done() -> None:
    action = {"name": "work", "params": {"item": 1}, "outputMapping": {"*": "log[]"}}
    run = play(limits=Limits(max_seconds=4)).reply(loop(action=action))
    for number in range(4):
        if run.state.ended:
            break
        run.settle(f"each.{number}", number)
    assert run.state.result is not None
    assert run.state.result.reason == "limit"
    assert run.state.payload["log"][:2] == [0, 1]


def test_a_thousand_items_are_stored_in_parts() -> None:
    rows = [{"id": number} for number in range(300)]
    run = play(rows).reply(loop(executionMode="parallel"))
    for number in range(300):
        run.settle(f"each.{number}", number)
    assert len(run.spilled) >= 4
    finish(run)
    assert report(run)["result"]["done"] == 300


def test_a_pipeline_in_each_pass() -> None:
    stages = [
        {"tool": "work", "with": {"item": "{{ item.id }}"}},
        {"where": "n > 1"},
        {"count": True},
    ]
    body = {"collectionPath": "rows", "executionMode": "parallel", "pipeline": {"steps": stages}}
    asked = {"taskComplete": False, "nextStep": {"type": "ForEach", "forEach": body}}
    run = play([{"id": 7}, {"id": 8}]).reply(asked)
    assert [(one.id, one.params) for one in calls(run)] == [
        ("1:each.0.pipe.0", {"item": 7}),
        ("1:each.1.pipe.0", {"item": 8}),
    ]
    run.settle("each.1.pipe.0", [{"n": 1}, {"n": 2}, {"n": 3}])
    run.settle("each.0.pipe.0", error="broken")
    told = report(run)
    assert told["action"].startswith("forEach pipeline work")
    assert told["result"]["results"] == [{"index": 1, "ok": True, "result": 2}]
    assert told["result"]["failures"][0]["index"] == 0
    assert "broken" in told["result"]["failures"][0]["error"]["code"]


def test_what_is_wrong_with_a_pipeline_is_said_before_anything_runs() -> None:
    body = {"collectionPath": "rows", "pipeline": {"steps": [{"tool": "nothing"}]}}
    run = play().reply({"taskComplete": False, "nextStep": {"type": "ForEach", "forEach": body}})
    assert "nextStep.forEach.pipeline" in run.said
    assert not calls(run)


def test_one_approval_covers_the_pipelines_of_a_loop() -> None:
    stages = [{"tool": "mail", "with": {"item": "{{ item.id }}"}}]
    body = {"collectionPath": "rows", "executionMode": "parallel", "pipeline": {"steps": stages}}
    run = play([{"id": 7}, {"id": 8}])
    run.reply({"taskComplete": False, "nextStep": {"type": "ForEach", "forEach": body}})
    (ask,) = run.state.asks
    assert ask.subject["passes"] == 2
    assert ask.subject["params"] == {"item": "{{ item.id }}"}
    run.answer("approve")
    assert len(calls(run)) == 2


def test_fix_26_what_parallel_items_write_is_kept_from_all_of_them() -> None:
    action = {
        "name": "work",
        "params": {"item": "{{ item.id }}"},
        "outputMapping": {"*": "done.n{{ index }}"},
    }
    run = play([{"id": 1}, {"id": 2}, {"id": 3}])
    run.reply(loop(action=action, executionMode="parallel"))
    run.settle("each.2", "c").settle("each.0", "a").settle("each.1", "b")
    assert run.state.payload["done"] == {"n0": "a", "n1": "b", "n2": "c"}
