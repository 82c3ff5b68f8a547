"""Pipelines in a run: through the one gate, in any order, with one entry for the model at the end."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopagent.core.advance import advance
from loopagent.core.agent_spec import AgentSpec, ApprovalPolicy, Limits
from loopagent.core.effects import AskHuman, KeepValue, RunAction
from loopagent.core.events import Settled
from loopagent.core.outcome import Outcome
from loopagent.core.protocol.stages import VERBS
from loopagent.core.results import STORED
from loopagent.core.steps import STEP_TYPES, offered
from tests.core.play import MAIL, WORK, Play, agent, pending


LIST = {"tool": "work", "with": {"item": 0}}
EACH = {"map": {"do": [{"tool": "work", "with": {"item": "{{item.id}}"}}]}}


def pipe(*steps: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "taskComplete": False,
        "nextStep": {"type": "Pipeline", "pipeline": {"steps": list(steps)}},
        **more,
    }


def entry(play: Play) -> dict[str, Any]:
    """The entry of the pipeline in the last results message."""
    text = next(one.text for one in reversed(play.messages) if one.kind == "results")
    found: dict[str, Any] = json.loads(text)["results"][0]
    return found


def rows(count: int) -> list[dict[str, int]]:
    return [{"id": number} for number in range(count)]


def test_only_the_last_value_comes_back() -> None:
    play = Play().reply(pipe(LIST, EACH, {"where": "n > 1"}, {"count": True}))
    play.settle("pipe.0", rows(3))
    assert pending(play, RunAction) == [f"pipe.1.{n}.0" for n in range(3)]
    for number in (2, 0, 1):
        play.settle(f"pipe.1.{number}.0", {"n": number})
    assert entry(play) == {
        "call": 1,
        "action": "work > map > where > count",
        "ok": True,
        "result": 1,
    }
    assert play.state.calls == {"work": 4}
    assert play.state.turn == 2


def test_everything_is_told_in_events() -> None:
    play = Play().reply(pipe(LIST, EACH, {"first": 1}))
    play.settle("pipe.0", rows(2)).settle("pipe.1.0.0", {"n": 1}).settle(
        "pipe.1.1.0", error="fails"
    )
    told = [one for one in play.facts if one.type.startswith("pipeline.")]
    assert [one.type for one in told] == [
        "pipeline.started",
        *["pipeline.step"] * 3,
        "pipeline.completed",
    ]
    assert told[0].data == {"label": "work > map > first", "stages": 3}
    assert [one.path for one in told[1:]] == [
        *(f"turn/1/pipe/{n}" for n in range(3)),
        "turn/1/pipe",
    ]
    assert told[2].data == {
        "index": 1, "stage": "map", "ok": True, "before": "2 entries", "after": "2 entries",
        "preview": '[{"n":1},null]', "missed": 1,
    }  # fmt: skip
    assert told[4].data == {"ok": True, "calls": 3, "preview": '[{"n":1}]'}
    assert (
        entry(play)["note"]
        == "1 of 2 entries of steps[1] (map) failed and are null: entry 1: do[0] (work): it fails"
    )


def test_a_failure_names_the_stage_and_counts_as_a_mistake() -> None:
    play = Play().reply(pipe(LIST, {"count": True})).settle("pipe.0", error="down")
    assert entry(play)["error"] == {"code": "down", "message": "steps[0] (work): it down"}
    assert play.state.counters.mistakes == 1
    play.reply(pipe(LIST, {"where": "a == 1"})).settle("pipe.0", {"rows": {}, "a": 1})
    assert entry(play)["error"]["code"] == "stage"
    assert play.last("pipeline.completed")["error"].startswith(
        "steps[1] (where): where needs a list"
    )
    assert play.state.counters.mistakes == 2
    play.reply(pipe(LIST)).settle("pipe.0", 1)
    assert play.state.counters.mistakes == 0


def test_a_pipeline_that_fails_at_once_is_told_from_its_beginning() -> None:
    bad = {"tool": "work", "with": {"item": "{{payload.name}}"}}
    play = Play(payload={"name": "x"}).reply(pipe(bad))
    assert "must be an integer" in entry(play)["error"]["message"]
    assert [one for one in play.types if one.startswith("pipeline")] == [
        "pipeline.started", "pipeline.step", "pipeline.completed",
    ]  # fmt: skip


def test_templates_see_the_payload_that_the_model_may_read() -> None:
    spec = agent(payload={"read": ["item"]})
    play = Play(spec, payload={"item": 3, "secret": 4})
    play.reply(pipe({"tool": "work", "with": {"item": "{{payload.item}}"}}))
    assert play.last("action.started")["params"] == {"item": 3}
    play.settle("pipe.0", 1).reply(pipe({"tool": "work", "with": {"item": "{{payload.secret}}"}}))
    assert "payload.secret is missing" in entry(play)["error"]["message"]


def test_nothing_runs_when_anything_is_wrong() -> None:
    play = Play().reply(pipe(LIST, {"where": "a >"}, {"tool": "nope"}))
    assert pending(play, RunAction) == []
    assert "steps[1].where" in play.said
    assert "steps[2].tool" in play.said


def test_fix_2_and_6_calls_of_a_pipeline_go_through_the_one_gate() -> None:
    mail = {"map": {"do": [{"tool": "mail", "with": {"item": "{{item.id}}"}}]}}
    play = Play().reply(pipe(LIST, mail)).settle("pipe.0", rows(2))
    assert pending(play, RunAction) == []
    assert pending(play, AskHuman) == ["pipe.all.1.0.ask"]
    assert play.last("request.created")["title"] == "Run mail, 2 times?"
    assert play.last("request.created")["subject"] == {
        "action": "mail", "effects": "external", "params": {"item": "{{item.id}}"},
        "first": [{"item": 0}, {"item": 1}], "passes": 2,
        "why": {"rule": "agent", "text": "The agent asks about actions with external effects."},
    }  # fmt: skip
    play.answer("approve")
    assert pending(play, RunAction) == ["pipe.1.0.0", "pipe.1.1.0"]
    play.settle("pipe.1.1.0", "sent").settle("pipe.1.0.0", "sent")
    assert entry(play)["result"] == ["sent", "sent"]
    refused = Play().reply(pipe(LIST, mail)).settle("pipe.0", rows(2))
    refused.answer("reject", feedback="not those")
    assert entry(refused)["error"]["code"] == "rejected"
    assert "not those" in entry(refused)["error"]["message"]
    assert refused.state.counters.mistakes == 0
    never = agent(approval=ApprovalPolicy(external="never"))
    assert "there is no action" in Play(never).reply(pipe(LIST, mail)).said
    alone = Play(agent(autonomy="autonomous")).reply(pipe(LIST, mail)).settle("pipe.0", rows(1))
    assert entry(alone)["result"] == [None]


def test_a_call_in_doubt_is_decided_by_itself_although_all_were_approved() -> None:
    doubtful = MAIL.model_copy(update={"on_unknown": "ask"})
    mail = {"map": {"do": [{"tool": "mail", "with": {"item": "{{item.id}}"}}]}}
    play = Play(agent(actions=(WORK, doubtful))).reply(pipe(LIST, mail)).settle("pipe.0", rows(2))
    play.answer("approve").settle("pipe.1.1.0", "sent").settle("pipe.1.0.0", error="interrupted")
    assert pending(play, AskHuman) == ["pipe.1.0.0.ask"]
    play.answer("reject")
    assert pending(play, RunAction) == []
    assert entry(play)["result"] == [None, "sent"]


def test_calls_inside_a_map_inside_a_map_are_approved_one_by_one() -> None:
    mail = {"tool": "mail", "with": {"item": "{{x}}"}}
    inner = {"map": {"as": "x", "do": [mail]}}
    play = Play().reply(pipe(LIST, {"map": {"do": [inner]}})).settle("pipe.0", [[1, 2], [3]])
    assert pending(play, AskHuman) == [
        "pipe.1.0.0.0.0.ask",
        "pipe.1.0.0.1.0.ask",
        "pipe.1.1.0.0.0.ask",
    ]


def test_fix_6_the_breaker_learns_from_pipelines_and_stops_them() -> None:
    play = Play()
    for _ in range(2):
        play.reply(pipe(LIST)).settle("pipe.0", error="down")
    play.reply(pipe(LIST))
    assert entry(play)["error"]["code"] == "blocked"
    assert pending(play, RunAction) == []


def test_fix_5_a_map_that_would_exceed_the_calls_left_starts_none() -> None:
    few = WORK.model_copy(update={"max_calls": 3})
    play = Play(agent(actions=(few, MAIL))).reply(pipe(LIST, EACH)).settle("pipe.0", rows(3))
    assert entry(play)["error"]["code"] == "max_calls"
    assert play.state.calls == {"work": 1}
    fits = Play(agent(actions=(few, MAIL))).reply(pipe(LIST, EACH)).settle("pipe.0", rows(2))
    fits.settle("pipe.1.0.0", 1).settle("pipe.1.1.0", 2)
    assert entry(fits)["result"] == [1, 2]


def test_fix_27_a_long_value_is_kept_and_named_by_a_handle() -> None:
    play = Play().reply(pipe(LIST)).settle("pipe.0", "x" * 9_000)
    kept = play.state.pending["1:pipe.keep"]
    assert isinstance(kept, KeepValue)
    assert kept.value == "x" * 9_000
    stored = {"artifactId": "f0", "chars": 9_000, "head": "x", "tail": "x"}
    play.settle("pipe.keep", {STORED: stored})
    assert entry(play)["result"]["artifact"] == "A"
    assert play.last("pipeline.completed")["preview"] == "x" * 500 + "…"


def test_calls_bring_their_results_whole_and_events_show_their_beginning() -> None:
    play = Play().reply(pipe(LIST, {"lines": True}, {"count": True}))
    call = play.state.pending["1:pipe.0"]
    assert isinstance(call, RunAction)
    assert call.whole
    play.settle("pipe.0", "line\n" * 2_000)
    assert entry(play)["result"] == 2_000
    assert play.last("action.completed")["result"] == {"chars": 10_000, "head": "line\n" * 400}
    play.reply(pipe(LIST)).settle("pipe.0", {STORED: {"artifactId": "forged"}})
    assert isinstance(play.state.pending["2:pipe.keep"], KeepValue)


def test_limits_stop_a_pipeline_when_nothing_of_it_is_under_way() -> None:
    play = Play(agent(limits=Limits(max_pipeline_bytes=1_000, max_concurrency=2)))
    play.reply(pipe(LIST, EACH)).settle("pipe.0", rows(5)).settle("pipe.1.0.0", "x" * 2_000)
    assert pending(play, RunAction) == ["pipe.1.1.0"]
    play.settle("pipe.1.1.0", "y")
    assert entry(play)["error"]["code"] == "max_pipeline_bytes"
    slow = Play(agent(limits=Limits(max_pipeline_seconds=5, max_concurrency=2)))
    slow.reply(pipe(LIST, EACH))
    slow.at += 10
    slow.settle("pipe.0", rows(5))
    assert entry(slow)["error"]["message"] == "took longer than 5 s; ask for less at a time"
    wide = Play(agent(limits=Limits(max_pipeline_entries=2))).reply(pipe(LIST, EACH))
    assert "at most 2 are allowed" in entry(wide.settle("pipe.0", rows(3)))["error"]["message"]


def test_waiting_for_a_person_is_no_working_time() -> None:
    spec = agent(limits=Limits(max_pipeline_seconds=60))
    play = Play(spec).reply(pipe({"tool": "mail", "with": {"item": 1}}, {"count": True}))
    play.at += 100_000
    play.answer("approve").settle("pipe.0", [1, 2])
    assert entry(play)["result"] == 2


def test_today_is_the_day_the_pipeline_began() -> None:
    play = Play()
    play.at = 1_709_251_199 - 1
    play.reply(pipe(LIST, {"where": "due == today"}, {"count": True}))
    play.at += 86_400
    play.settle("pipe.0", [{"due": "2024-02-29"}, {"due": "2024-03-01"}])
    assert entry(play)["result"] == 1


def test_maps_inside_maps_stay_within_the_calls_that_may_run_side_by_side() -> None:
    each = {"map": {"as": "x", "do": [{"tool": "work", "with": {"item": "{{x}}"}}]}}
    body = {"do": [{"tool": "work", "with": {"item": "{{item}}"}}, each]}
    play = Play(agent(limits=Limits(max_concurrency=3))).reply(pipe(LIST, {"map": body}))
    play.settle("pipe.0", [0, 1, 2, 3])
    most = 0
    while calls := pending(play, RunAction):
        most = max(most, len(calls))
        play.settle(calls[0], 1 if calls[0].count(".") > 3 else [1, 2, 3, 4])
    assert most == 3
    assert entry(play)["result"] == [[1] * 4] * 4


def test_a_cancelled_pipeline_starts_nothing_more() -> None:
    play = Play().reply(pipe(LIST, EACH)).settle("pipe.0", rows(20))
    play.settle("pipe.1.3.0", 1).cancel()
    assert play.state.status == "cancelled"
    assert play.state.pending == {}
    assert play.last("pipeline.completed") == {
        "ok": False,
        "calls": 1,
        "preview": "",
        "error": "the run ended",
    }
    assert play.last("pipeline.step")["after"] == "20 entries"


def test_only_agents_with_actions_are_offered_pipelines() -> None:
    assert "Pipeline" in offered(agent())
    assert "Pipeline" not in offered(AgentSpec(name="bare"))


@settings(max_examples=40)
@given(st.lists(st.integers(0, 7), max_size=30), st.booleans())
def test_any_order_of_settlement_gives_the_same_next_prompt(order: list[int], strict: bool) -> None:
    body = {**EACH["map"], "continueOnError": not strict}
    request = pipe(LIST, {"map": body}, {"where": "$ != 3"})

    def prompt(picks: list[int]) -> list[str]:
        play = (
            Play(agent(limits=Limits(max_concurrency=3))).reply(request).settle("pipe.0", rows(9))
        )
        todo = list(picks)
        while under_way := pending(play, RunAction):
            key = under_way[todo.pop() % len(under_way) if todo else 0]
            number = int(key.split(".")[2])
            play.settle(key, number, error="breaks" if number % 4 == 2 else None)
        return [one.text for one in play.messages]

    assert prompt(order) == prompt([])


@pytest.mark.parametrize("together", [1, 3])
def test_a_run_that_stays_in_memory_goes_the_same_way(together: int) -> None:
    """`Play` stores the state after every event; here the step keeps what it found, and states are forked."""
    play = Play().reply(pipe(LIST, EACH, {"where": "$ > 2"}))
    state = play.state
    state = advance(state, Settled("1:pipe.0", Outcome.done(rows(20)), 9.0)).state
    said: list[str] = []
    while calls := [one for one in state.pending.values() if isinstance(one, RunAction)]:
        events = [
            Settled(one.id, Outcome.done(one.params["item"]), 9.0) for one in calls[:together]
        ]
        other = [Settled(one.id, Outcome.failed("x", "y"), 9.0) for one in calls[:together]]
        advance(state, *other)  # another future of the same state leaves no trace
        transition = advance(state, *events)
        state = transition.state
        said += [one.text for one in transition.messages]
    assert json.loads(said[-1])["results"][0]["result"] == list(range(3, 20))


def test_the_prompt_names_every_verb() -> None:
    doc = STEP_TYPES["Pipeline"].__doc__ or ""
    assert [verb for verb in VERBS if re.search(rf"\b{verb}\b", doc) is None] == []
