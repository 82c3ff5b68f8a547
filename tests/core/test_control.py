"""Pausing, resuming, raising limits and trying again, as the core sees them."""

from __future__ import annotations

from typing import Any

import pytest

from loopagent.core.advance import advance
from loopagent.core.agent_spec import Limits
from loopagent.core.effects import CallModel, SetTimer
from loopagent.core.events import (
    Answer,
    Event,
    LimitsRaised,
    PauseRequested,
    Reported,
    ResumeRequested,
    Settled,
)
from loopagent.core.lineage import news
from loopagent.core.loop_state import own_state
from loopagent.core.outcome import Outcome
from loopagent.core.people import read_answer
from loopagent.core.state_bytes import dump_state, load_state
from tests.core.play import AskHuman, Play, RunAction, act, agent, pending


DONE = {"taskComplete": True, "message": "Done."}


def give(play: Play, kind: Any, *args: Any) -> Play:
    """Feed an event that people cause, a second later."""
    play.at += 1
    event: Event = kind(*args, play.at, by="ann") if args else kind(at=play.at, by="ann")
    return play.give(event)


def test_a_paused_run_takes_a_reply_in_and_begins_nothing() -> None:
    play = give(Play(), PauseRequested)
    assert play.types[-2:] == ["run.paused", "run.state"]
    assert own_state(play.state).public()["state"] == "resumable"
    play.reply(act(("work", {"item": 1}), payloadChangeRequest={"newElements": {"n": 1}}))
    assert play.state.payload == {"n": 1}
    assert not play.state.pending
    assert not play.effects
    give(play, ResumeRequested)
    assert pending(play, RunAction) == ["action.0"]
    resumed = [one for one in play.facts if one.type == "run.resumed"]
    assert [(one.data, one.decided_by) for one in resumed] == [({"reason": "paused"}, "human")]
    play.settle("action.0", "ok").reply(DONE)
    assert play.state.status == "completed"


def test_an_answer_to_a_paused_run_is_kept() -> None:
    play = Play().reply(act(("mail", {"item": 1})))
    give(play, PauseRequested)
    assert own_state(play.state).state == "resumable"
    play.answer("approve")
    assert play.last("request.resolved")["decision"] == "approve"
    assert not play.state.pending
    give(play, ResumeRequested)
    assert pending(play, RunAction) == ["action.0"]


def test_a_waiting_run_waits_again_when_it_is_resumed() -> None:
    play = Play().reply(act(("mail", {"item": 1})))
    give(give(play, PauseRequested), ResumeRequested)
    assert play.last("run.state")["state"] == "interactive"
    assert pending(play, AskHuman) == ["action.0.ask"]
    assert play.types.count("request.created") == 1


def test_a_pause_is_no_working_time() -> None:
    play = give(Play(), PauseRequested)
    before = play.state.active_ms
    play.at += 1000
    give(play, ResumeRequested)
    assert play.state.active_ms == before


def test_a_paused_run_can_be_cancelled() -> None:
    play = give(Play(), PauseRequested).cancel()
    assert (play.state.status, play.state.paused) == ("cancelled", None)
    assert play.last("run.state")["reason"] == "cancelled"


def test_clocks_stand_still_in_a_paused_loop() -> None:
    step = {
        "type": "While",
        "while": {
            "condition": "attempt < 3",
            "delayBetweenIterationsMs": 5000,
            "action": {"name": "work", "params": {"item": 1}},
        },
    }
    play = Play().reply({"taskComplete": False, "nextStep": step}).settle("pass.0", "x")
    (timer,) = [one for one in play.state.pending.values() if isinstance(one, SetTimer)]
    give(play, PauseRequested)
    assert [one.id for one in play.effects] == [f"{timer.id}.cancel"]
    assert timer.id in play.state.pending


def test_pausing_twice_and_resuming_what_goes_on_change_nothing() -> None:
    play = give(Play(), PauseRequested)
    assert not advance(play.state, PauseRequested(99.0)).changed
    give(play, ResumeRequested)
    assert not advance(play.state, ResumeRequested(99.0)).changed
    assert not advance(play.reply(DONE).state, PauseRequested(99.0), ResumeRequested(99.0)).changed


def test_a_run_at_its_limit_goes_on_when_it_is_raised() -> None:
    play = Play(agent(limits=Limits(max_turns=1)))
    play.reply(act(("work", {"item": 1}))).post("And then?").settle("action.0", "seen")
    assert play.state.result is not None
    assert (play.state.status, play.state.result.reason) == ("failed", "limit")
    assert play.last("run.state")["ask"]["primary"]["decision"] == "raise"
    give(play, LimitsRaised, {"max_turns": 3})
    assert play.state.status == "running"
    assert play.state.calling == CallModel("2:model")
    assert play.last("run.limits_raised") == {
        "limits": {"maxTurns": 3},
        "before": {"maxTurns": 1},
        "by": "ann",
    }
    assert any("And then?" in one.text for one in play.messages)
    assert any("seen" in one.text for one in play.messages if one.kind == "results")
    assert play.reply(DONE).state.status == "completed"


def test_raised_limits_are_part_of_the_state_and_not_of_the_pinned_definition() -> None:
    play = Play(agent(limits=Limits(max_turns=5)))
    pinned = play.state.spec
    give(give(play, LimitsRaised, {"max_turns": 6}), LimitsRaised, {"max_turns": 7})
    loaded = load_state(dump_state(play.state), pinned)
    assert loaded.spec.limits.max_turns == 7
    assert loaded.unraised == {"max_turns": 5}


def test_no_call_is_without_a_result_after_a_limit_in_the_middle_of_a_step() -> None:
    play = Play(agent(limits=Limits(max_seconds=10, max_concurrency=2)))
    play.reply(act(*[("work", {"item": number}) for number in range(3)]))
    play.at += 100
    play.settle("action.0", "first")
    assert play.state.status == "failed"
    give(play, LimitsRaised, {"max_seconds": 500})
    (results,) = [one.text for one in play.messages if one.kind == "results"]
    assert "first" in results
    assert "may have taken effect" in results
    assert '"call":3' not in results
    assert "stopped in its middle" in play.said


def test_a_run_that_a_model_ended_tries_again() -> None:
    play = Play()
    play.settle("model", error="overloaded")
    assert play.last("run.state")["ask"]["kind"] == "retry"
    give(play, ResumeRequested)
    assert play.state.calling == CallModel("2:model")
    assert play.types.count("turn.started") == 2
    assert play.types.count("turn.ended") == 1
    assert play.reply(DONE).state.status == "completed"


@pytest.mark.parametrize("event", [ResumeRequested(50.0), LimitsRaised({"max_turns": 99}, 50.0)])
def test_what_ended_for_good_stays_ended(event: Event) -> None:
    completed = Play().reply(DONE).state
    cancelled = Play().cancel().state
    for state in (completed, cancelled):
        assert not advance(state, event).changed


def test_resuming_at_a_limit_without_raising_it_changes_nothing() -> None:
    play = Play(agent(limits=Limits(max_turns=1))).reply(act(("work", {"item": 1})))
    play.settle("action.0", "seen")
    assert play.state.status == "failed"
    assert not advance(play.state, ResumeRequested(50.0)).changed


def with_child(**limits: Any) -> tuple[Play, Any]:
    """A parent whose child has begun, and the child's state."""
    from loopagent.core.agent_spec import SubAgentSpec  # noqa: PLC0415
    from loopagent.core.events import Started  # noqa: PLC0415
    from loopagent.core.lineage import child_state  # noqa: PLC0415

    helper = SubAgentSpec(spec=agent(name="helper"))
    play = Play(agent(agents=(helper,), limits=Limits(**limits)))
    step = {"type": "Sub-Agent", "subAgents": [{"name": "helper", "message": "Help."}]}
    play.reply({"taskComplete": False, "nextStep": step})
    (work,) = play.effects
    child = child_state(play.state, work, "scripted")  # type: ignore[arg-type]
    assert child is not None
    play.give(Reported("started", {"effects": [work.id]}, play.at))
    return play, advance(child, Started("Help.", play.at, "model")).state


def test_children_are_told_of_a_pause_and_of_its_end() -> None:
    play, child = with_child()
    give(play, PauseRequested)
    (told,) = news(play.state)
    assert told.above is not None
    child = advance(child, Reported("above", told.above, play.at)).state
    assert child.paused is not None
    assert child.paused.above
    give(play, ResumeRequested)
    (told,) = news(play.state)
    assert told.above is not None
    child = advance(child, Reported("above", told.above, play.at)).state
    assert child.paused is None


def test_a_child_that_was_paused_by_itself_stays_so_when_the_parent_goes_on() -> None:
    play, child = with_child()
    child = advance(child, PauseRequested(play.at)).state
    give(give(play, PauseRequested), ResumeRequested)
    (told,) = news(play.state)
    assert not advance(child, Reported("above", told.above or {}, play.at)).changed


def test_a_raised_limit_reaches_the_children() -> None:
    play, child = with_child(max_turns=5, max_seconds=60)
    give(play, LimitsRaised, {"max_turns": 9, "max_seconds": 100.0})
    (told,) = news(play.state)
    before = child.ancestors[0]
    child = advance(child, Reported("above", told.above or {}, play.at)).state
    after = child.ancestors[0]
    assert after.max_turns == 9
    assert before.seconds is not None
    assert after.seconds == before.seconds + 40
    assert not advance(child, Reported("above", told.above or {}, play.at)).changed


def test_a_child_that_failed_is_its_parents_business() -> None:
    play, child = with_child()
    child = advance(child, Settled("1:model", Outcome.failed("overloaded", "no"), play.at)).state
    assert child.status == "failed"
    assert not advance(child, ResumeRequested(99.0)).changed
    assert own_state(child).ask is None


ASKS = {"limits": Limits(max_turns=1, when_reached="ask")}


def at_the_limit(**options: Any) -> Play:
    """A run that has reached its limit and asks a person to raise it."""
    play = Play(agent(**{**ASKS, **options})).reply(act(("work", {"item": 1})))
    return play.settle("action.0", "seen")


def test_a_person_is_asked_to_raise_a_limit_where_the_agent_says_so() -> None:
    play = at_the_limit()
    (ask,) = play.state.asks
    assert (ask.ask, ask.subject["params"]) == ("limit", {"maxTurns": 2})
    assert play.last("run.state")["ask"]["primary"]["decision"] == "approve"
    play.post("Hurry up.")
    assert play.state.asks  # words raise nothing
    play.answer("approve", edited={"maxTurns": 7})
    assert play.state.spec.limits.max_turns == 7
    assert (play.state.turn, play.types.count("guard.limit")) == (2, 1)
    assert "Hurry up." in play.said
    assert play.reply(DONE).state.status == "completed"


def test_a_raise_that_is_rejected_ends_the_run_at_its_limit() -> None:
    play = at_the_limit().answer("reject")
    assert play.state.result is not None
    assert (play.state.status, play.state.result.reason) == ("failed", "limit")
    assert give(play, LimitsRaised, {"max_turns": 2}).state.status == "running"


def test_a_limit_that_was_raised_otherwise_needs_no_answer() -> None:
    play = give(at_the_limit(), LimitsRaised, {"max_turns": 3})
    assert play.last("request.cancelled")["reason"] == "raised"
    assert play.state.calling == CallModel("2:model")


def test_nobody_is_asked_by_an_autonomous_run() -> None:
    assert at_the_limit(autonomy="autonomous").state.status == "failed"


def test_a_step_waits_in_its_middle_for_a_raise_and_goes_on_exactly() -> None:
    limits = Limits(max_seconds=10, max_concurrency=1, when_reached="ask")
    play = Play(agent(limits=limits)).reply(act(*[("work", {"item": one}) for one in range(3)]))
    play.at += 100
    play.settle("action.0", "first")
    assert [one.ask for one in play.state.asks] == ["limit"]
    assert play.types.count("request.created") == 1
    play.answer("approve", edited={"maxSeconds": 500})
    assert pending(play, RunAction) == ["action.1"]
    play.settle("action.1", "second").settle("action.2", "third").reply(DONE)
    assert play.state.status == "completed"
    (results,) = [one.text for one in play.messages if one.kind == "results"]
    assert all(word in results for word in ("first", "second", "third"))


def test_what_is_typed_instead_must_leave_room() -> None:
    (ask,) = at_the_limit().state.asks
    answer = Answer("approve", edited={"maxTurns": 1})
    _, problems = read_answer(ask, answer)
    assert [one.path for one in problems] == ["edited.params.maxTurns"]
    assert read_answer(ask, Answer("approve", edited={"maxTurns": 2}))[1] == []
