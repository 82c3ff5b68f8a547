"""Loops at their edges: names, mistakes, calls in doubt, approvals of the whole."""

from __future__ import annotations

from typing import Any

import pytest

from loopagent.core.events import Answer
from loopagent.core.people import read_answer
from tests.core.play import Play, agent
from tests.core.test_for_each import calls, loop, play, report


@pytest.mark.parametrize(
    ("path", "payload"),
    [
        ("payload.rows", {"rows": [{"id": 1}]}),
        ("data.rows", {"rows": [{"id": 1}]}),
        ("data.rows", {"data": {"rows": [{"id": 1}]}}),
        ("{{ payload.rows }}", {"rows": [{"id": 1}]}),
        ("payload['rows']", {"rows": [{"id": 1}]}),
        ("$.rows[*]", {"rows": [{"id": 1}]}),
        ("payload.rows[]", {"rows": [{"id": 1}]}),
        ("$.rows", {"$": {"rows": [{"id": 1}]}}),
        ("$.payload.rows", {"rows": [{"id": 1}]}),
        ("payload", [{"id": 1}]),
        ("$[*]", [{"id": 1}]),
        ("payload", {"payload": [{"id": 1}]}),
    ],
)
def test_a_collection_is_named_as_templates_name_it_too(path: str, payload: Any) -> None:
    run = Play(agent(), payload=payload).reply(loop(collectionPath=path))
    assert [one.params for one in calls(run)] == [{"item": 1}]


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"indexVariable": "item"}, "itemVariable: expected itemVariable and indexVariable to be"),
        ({"itemVariable": "index"}, "itemVariable: expected itemVariable and indexVariable to be"),
        ({"itemVariable": "my-item"}, "itemVariable: expected a name of letters"),
        ({"indexVariable": "null"}, "indexVariable: expected a name of letters"),
        ({"itemVariable": "a.b"}, "itemVariable: expected a name of letters"),
    ],
)
def test_names_of_a_loop_must_be_usable_and_different(fields: dict[str, str], problem: str) -> None:
    assert f"nextStep.forEach.{problem}" in play().reply(loop(**fields)).said


@pytest.mark.parametrize("error", ["down", "rejected"])
def test_a_loop_in_which_nothing_worked_is_a_mistake_pauses_or_not(error: str) -> None:
    run = play().reply(loop(delayBetweenIterationsMs=5, continueOnError=True))
    for number in range(5):
        if number:
            run.settle(f"pause.{number}")
        if run.state.step is not None:
            run.settle(f"each.{number}", error=error)
    assert run.state.turn == 2
    assert run.state.counters.mistakes == (error == "down")


def test_a_loop_whose_parameters_cannot_be_filled_in_is_a_mistake() -> None:
    call = {"name": "work", "params": {"item": "{{ item.nope }}"}}
    assert play().reply(loop(action=call)).state.counters.mistakes == 1


def test_calls_in_doubt_are_decided_one_by_one_whatever_the_order() -> None:
    doubtful = agent().actions[1].model_copy(update={"on_unknown": "ask", "approval": "auto"})
    call = {"name": "mail", "params": {"item": "{{ item.id }}"}}
    run = play(actions=(doubtful,)).reply(
        loop(action=call, executionMode="parallel", maxConcurrency=2)
    )
    run.settle("each.0", error="interrupted").settle("each.1", error="interrupted")
    run.answer("reject", feedback="It was sent.")
    assert run.last("action.completed")["error"]["mayHaveRun"] is True
    run.answer("approve")
    assert [one.id for one in calls(run)] == ["1:each.1"]
    run.settle("each.1", "sent")
    told = report(run)["result"]
    assert (told["done"], told["failed"], told["notStarted"]) == (1, 1, 4)
    assert "A person decided not to run it again and said: It was sent." in str(told["failures"])


def test_an_approval_of_a_whole_loop_says_why_it_cannot_be_edited() -> None:
    run = play().reply(loop(action={"name": "mail", "params": {"item": "{{ item.id }}"}}))
    _, problems = read_answer(run.state.asks[0], Answer("approve", edited={"item": 3}))
    assert [one.path for one in problems] == ["edited"]
    assert "decided together cannot be edited" in problems[0].message


def test_a_pass_that_waits_behind_a_call_in_doubt_is_not_started_once_the_loop_has_stopped() -> (
    None
):
    doubtful = agent().actions[1].model_copy(update={"on_unknown": "ask", "approval": "auto"})
    call = {"name": "mail", "params": {"item": "{{ item.id }}"}}
    run = play(actions=(doubtful,)).reply(
        loop(action=call, executionMode="parallel", maxConcurrency=2)
    )
    run.settle("each.0", error="interrupted").settle("each.1", "sent")
    assert calls(run) == []
    run.answer("reject")
    told = report(run)["result"]
    assert (told["done"], told["failed"], told["notStarted"]) == (1, 1, 4)


def test_a_loop_that_made_every_pass_was_not_stopped_whichever_failed() -> None:
    run = play([{"id": 0}, {"id": 1}]).reply(loop(executionMode="parallel"))
    run.settle("each.1", error="down").settle("each.0", "fine")
    told = report(run)["result"]
    assert (told["done"], told["failed"], told.get("stopped")) == (1, 1, None)


@pytest.mark.parametrize("mode", ["sequential", "parallel"])
def test_results_without_room_are_no_trouble_where_nothing_is_mapped(mode: str) -> None:
    stored = {"$artifact": {"artifactId": "x", "chars": 9_000, "head": "[", "tail": "]"}}
    run = play().reply(loop(executionMode=mode))
    for number in range(len(run.state.payload["rows"])):
        run.settle(f"each.{number}", stored)
    assert report(run)["result"]["done"] == 6
    assert not [one for one in run.facts if one.type == "payload.changed"]
