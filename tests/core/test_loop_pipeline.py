"""A pipeline as the body of a loop: its calls go on within each pass, its last value is the pass's result."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopagent.core.agent_spec import Limits
from loopagent.core.effects import AskHuman, RunAction
from tests.core.play import WORK, Play, agent, pending, report


LOOK = {"tool": "work", "with": {"item": "{{order.id}}"}}
EACH = {"map": {"do": [{"tool": "work", "with": {"item": "{{item}}"}}]}}


def loop(*steps: dict[str, Any], **fields: Any) -> dict[str, Any]:
    body = {
        "collectionPath": "orders",
        "itemVariable": "order",
        "pipeline": {"steps": list(steps)},
        **fields,
    }
    return {"taskComplete": False, "nextStep": {"type": "ForEach", "forEach": body}}


def play(count: int, **options: Any) -> Play:
    return Play(agent(**options), payload={"orders": [{"id": one} for one in range(count)]})


def results(run: Play) -> list[Any]:
    return [one["result"] for one in report(run)["result"]["results"]]


def test_each_pass_runs_the_whole_pipeline() -> None:
    run = play(2).reply(loop(LOOK, {"where": "$ > 1"}, {"count": True}))
    assert run.last("loop.started")["what"] == "pipeline work > where > count"
    assert pending(run, RunAction) == ["each.0.pipe.0"]
    run.settle("each.0.pipe.0", [1, 2, 3])
    assert pending(run, RunAction) == ["each.1.pipe.0"]
    run.settle("each.1.pipe.0", [1])
    assert report(run)["action"] == "forEach pipeline work > where > count"
    assert results(run) == [2, 0]


def test_passes_side_by_side_share_the_calls_that_may_run() -> None:
    run = play(9, limits=Limits(max_concurrency=4))
    run.reply(loop(LOOK, EACH, executionMode="parallel", maxConcurrency=2))
    assert pending(run, RunAction) == ["each.0.pipe.0", "each.1.pipe.0"]
    run.settle("each.0.pipe.0", [1, 2, 3]).settle("each.1.pipe.0", [4, 5, 6])
    assert sorted(pending(run, RunAction)) == [
        "each.0.pipe.1.0.0", "each.0.pipe.1.1.0", "each.1.pipe.1.0.0", "each.1.pipe.1.1.0",
    ]  # fmt: skip


def test_a_pipeline_that_fails_is_a_failed_pass() -> None:
    run = play(3).reply(loop(LOOK, {"first": 1}, continueOnError=True))
    for number, value in enumerate(([1], {"a": 1}, [3])):
        run.settle(f"each.{number}.pipe.0", value)
    assert results(run) == [[1], [3]]
    (failure,) = report(run)["result"]["failures"]
    assert failure["index"] == 1
    assert failure["error"]["message"].startswith("steps[1] (first): first needs a list")


def test_it_is_checked_before_the_first_pass() -> None:
    run = play(3).reply(
        loop({"tool": "wrk"}, {"where": "a >"}, {"tool": "work", "with": {"item": "{{nope}}"}})
    )
    for path in (
        "pipeline.steps[0].tool",
        "pipeline.steps[1].where",
        "pipeline.steps[2].with.item",
    ):
        assert f"nextStep.forEach.{path}" in run.said
    without = play(1, steps=("ForEach",)).reply(loop(LOOK))
    assert "nextStep.forEach.pipeline: this agent cannot do that in a loop" in without.said
    few = play(3, actions=(WORK.model_copy(update={"max_calls": 5}),))
    assert "may be called 5 more time(s)" in few.reply(loop(LOOK, LOOK)).said


def test_one_approval_covers_a_call_in_all_passes() -> None:
    mail = {"tool": "mail", "with": {"item": "{{order.id}}"}}
    run = play(3).reply(loop(mail))
    assert pending(run, AskHuman) == ["all.0.ask"]
    subject = run.last("request.created")["subject"]
    assert (subject["params"], subject["first"], subject["passes"]) == (
        {"item": "{{order.id}}"}, [{"item": 0}, {"item": 1}, {"item": 2}], 3,
    )  # fmt: skip
    run.answer("approve")
    for number in range(3):
        run.settle(f"each.{number}.pipe.0", number)
    assert results(run) == [0, 1, 2]


def test_while_can_have_one_too() -> None:
    body = {
        "condition": "attempt < 3",
        "pipeline": {"steps": [{"tool": "work", "with": {"item": "{{attempt}}"}}, {"count": True}]},
    }
    run = play(0).reply({"taskComplete": False, "nextStep": {"type": "While", "while": body}})
    run.settle("pass.0.pipe.0", "ab").settle("pass.1.pipe.0", "abc")
    assert results(run) == [2, 3]


def test_a_pass_that_holds_too_much_ends_when_its_calls_have() -> None:
    run = play(1, limits=Limits(max_pipeline_bytes=1_000, max_concurrency=2)).reply(
        loop(LOOK, EACH)
    )
    run.settle("each.0.pipe.0", [1, 2, 3, 4]).settle("each.0.pipe.1.1.0", "x" * 2_000)
    assert pending(run, RunAction) == ["each.0.pipe.1.0.0"]
    run.settle("each.0.pipe.1.0.0", 1)
    (failure,) = report(run)["result"]["failures"]
    assert failure["error"]["code"] == "max_pipeline_bytes"


@pytest.mark.parametrize("mode", ["sequential", "parallel"])
@settings(max_examples=25)
@given(order=st.lists(st.integers(0, 7), max_size=25))
def test_any_order_of_settlement_gives_the_same_next_prompt(mode: str, order: list[int]) -> None:
    request = loop(LOOK, EACH, {"where": "$ != 2"}, executionMode=mode, continueOnError=True)

    def prompt(picks: list[int]) -> list[str]:
        run = play(4, limits=Limits(max_concurrency=4)).reply(request)
        todo = list(picks)
        while calls := pending(run, RunAction):
            key = calls[todo.pop() % len(calls) if todo else 0]
            run.settle(key, [1, 2, 3] if key.count(".") == 3 else int(key.split(".")[4]))
        return [one.text for one in run.messages]

    assert prompt(order) == prompt([])
