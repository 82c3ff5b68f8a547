"""While: the condition before each pass, what a pass sees, pauses, and how it stops."""

from __future__ import annotations

from typing import Any

import pytest

from loopagent.core.action_spec import ActionSpec
from loopagent.core.effects import SetTimer
from tests.core.play import Play, agent, calls, report


def loop(condition: str, **fields: Any) -> dict[str, Any]:
    action = fields.pop("action", {"name": "work", "params": {"item": "{{ attempt }}"}})
    body = {"condition": condition, "action": action, **fields}
    return {"taskComplete": False, "nextStep": {"type": "While", "while": body}}


def play(payload: Any = None, **options: Any) -> Play:
    return Play(agent(**options), payload=payload or {"status": "open"})


def through(run: Play, *values: Any) -> Play:
    for number, value in enumerate(values):
        run.settle(f"pass.{number}", value)
    return run


def test_it_goes_on_as_long_as_the_condition_holds() -> None:
    run = play().reply(loop("attempt < 4"))
    assert calls(run)[0].params == {"item": 1}
    through(run, "a", "b", "c")
    assert run.state.turn == 2
    assert report(run)["ok"] is True
    assert [one["result"] for one in report(run)["result"]["results"]] == ["a", "b", "c"]


def test_a_condition_that_never_holds_means_no_pass() -> None:
    run = play().reply(loop("payload.status == 'done'"))
    assert run.state.turn == 2
    assert report(run)["result"]["done"] == 0


def test_it_sees_the_last_result_and_all_of_them() -> None:
    run = play().reply(loop("last == null || last.more"))
    through(run, {"more": True}, {"more": True}, {"more": False})
    assert report(run)["result"]["done"] == 3
    run = play().reply(loop("size(results) < 2"))
    assert report(through(run, 1, 2))["result"]["done"] == 2


def test_it_sees_what_passes_write() -> None:
    action = {"name": "work", "params": {"item": 1}, "outputMapping": {"state": "status"}}
    run = play().reply(loop("payload.status !== 'done'", action=action))
    through(run, {"state": "half"}, {"state": "done"})
    assert run.state.payload == {"status": "done"}
    assert report(run)["result"]["done"] == 2


def test_a_pass_may_have_a_name_of_its_own() -> None:
    action = {"name": "work", "params": {"item": "{{ poll.attemptNumber * 10 }}"}}
    run = play().reply(loop("attempt <= 2", action=action, itemVariable="poll"))
    assert calls(run)[0].params == {"item": 10}


def test_the_most_passes_are_the_most() -> None:
    run = through(play().reply(loop("true", maxIterations=2)), 1, 2)
    assert "2 passes are the most" in report(run)["result"]["stopped"]


def test_a_failed_pass_ends_it_unless_it_is_to_go_on() -> None:
    run = play().reply(loop("attempt < 9")).settle("pass.0", error="broken")
    assert report(run)["result"]["stopped"] == "a pass failed"
    assert report(run)["ok"] is False
    run = play().reply(loop("attempt < 3", continueOnError=True))
    run.settle("pass.0", error="broken").settle("pass.1", "fine")
    assert (report(run)["result"]["done"], report(run)["result"]["failed"]) == (1, 1)


def test_a_condition_that_breaks_in_the_middle_is_an_error_that_is_reported() -> None:
    run = play().reply(loop("attempt == 1 || last > 5")).settle("pass.0", "text")
    assert "cannot be evaluated" in report(run)["result"]["stopped"]
    assert report(run)["result"]["done"] == 1
    assert report(run)["ok"] is False


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"condition": "payload.status =="}, "condition"),
        ({"condition": "paylod.status == 1"}, "paylod"),
        ({"condition": "__import__('os')"}, "condition"),
        ({"condition": "true", "delayBetweenIterationsMs": 10**9}, "at most"),
        ({"condition": "true", "backoff": 0.5}, "backoff"),
        ({"condition": "true", "action": {"name": "none", "params": {}}}, "none"),
    ],
)
def test_fix_23_what_is_wrong_is_said_before_anything_runs(
    fields: dict[str, Any], words: str
) -> None:
    run = play().reply(loop(**fields))
    assert not calls(run)
    assert words in run.said


def test_pauses_grow_with_a_backoff_up_to_the_limit() -> None:
    run = play().reply(loop("attempt < 6", delayBetweenIterationsMs=1000, backoff=10))
    pauses: list[float] = []
    for number in range(4):
        run.settle(f"pass.{number}", "x")
        (timer,) = run.state.pending.values()
        assert isinstance(timer, SetTimer)
        pauses.append(round(timer.due - run.at, 3))
        run.settle(f"pause.{number + 1}")
    assert pauses == [1.0, 10.0, 100.0, 1000.0]


def test_one_approval_covers_all_passes() -> None:
    action = {"name": "mail", "params": {"item": "{{ attempt }}"}}
    run = play().reply(loop("attempt < 3", action=action))
    (ask,) = run.state.asks
    assert ask.title == "Run mail, up to 100 times?"
    assert ask.subject["condition"] == "attempt < 3"
    assert ask.subject["first"] == [{"item": 1}]
    run.answer("approve")
    through(run, 1, 2)
    assert report(run)["result"]["done"] == 2


def test_the_pause_that_is_too_long_is_named_as_it_was_given() -> None:
    run = play().reply(loop("true", delayBetweenIterationsMs=3_600_001, backoff=10))
    (problem,) = run.last("reply.rejected")["problems"]
    assert (problem["message"], problem["got"]) == ("at most 3600000", "3600001")


def test_results_and_errors_are_those_of_the_passes_before() -> None:
    params = {"item": 1, "seen": "{{ results }}", "wrong": "{{ errors }}"}
    taken = {"type": "object", "additionalProperties": True}
    spec = agent(actions=(ActionSpec(name="work", effects="read", parameters=taken),))
    action = {"name": "work", "params": params}
    run = Play(spec).reply(loop("attempt <= 4", action=action, continueOnError=True))
    made = [calls(run)[0].params]
    for number, outcome in enumerate(["a", None, "c"]):
        error = None if outcome else "broken"
        run.settle(f"pass.{number}", outcome, error=error)
        made.append(calls(run)[0].params)
    assert [one["seen"] for one in made] == [[], ["a"], ["a", None], ["a", None, "c"]]
    assert [len(one["wrong"]) for one in made] == [0, 0, 1, 1]
