"""Calls that end with questions of a server: asked of a person, and made again with the answers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from loopagent.core.call_questions import ASKS
from loopagent.core.events import Reported, Settled
from loopagent.core.outcome import ErrorInfo, Outcome
from tests.core.play import AskHuman, Play, RunAction, act, agent, pending


FORM = {"questions": [{"id": "sure", "label": "Sure?", "type": {"type": "text"}}]}


def asks(*ids: str, **more: Any) -> Outcome:
    questions = [{"id": one, "hash": f"h-{one}", "message": f"{one}?", "form": FORM} for one in ids]
    value = {"server": "shop", "questions": questions, "state": "s1", "seconds": 60, "most": 2}
    return Outcome(ok=False, value={**value, **more}, error=ErrorInfo(ASKS, "it asks"))


def asking(*ids: str, **options: Any) -> Play:
    play = Play(agent(**options)).reply(act(("work", {"item": 1})))
    return settled(play, asks(*ids))


def settled(play: Play, outcome: Outcome) -> Play:
    play.at += 1
    return play.give(Settled(f"{play.state.turn}:action.0", outcome, play.at))


def resumed(play: Play) -> dict[str, Any]:
    call = play.state.pending["1:action.0"]
    assert isinstance(call, RunAction)
    assert call.resume is not None
    return call.resume


def test_a_question_waits_as_data_and_the_call_is_made_again_with_the_answer() -> None:
    play = asking("a")
    assert pending(play, RunAction) == []
    assert pending(play, AskHuman) == ["action.0.q1.0"]
    asked = play.last("request.created")
    assert (asked["kind"], asked["subject"]["server"], asked["form"]) == ("question", "shop", FORM)
    assert asked["expiresAt"] == play.at + 60
    assert play.state.shown == "followup"
    assert "action.completed" not in play.types
    play.answer("answer", values={"sure": "yes"})
    accepted = {"action": "accept", "content": {"sure": "yes"}}
    assert resumed(play) == {
        "rounds": 1,
        "state": "s1",
        "answers": {"a": accepted},
        "known": {"h-a": accepted},
    }
    play.settle("action.0", "done")
    assert play.types.count("action.started") == play.types.count("action.completed") == 1
    assert play.state.turn == 2


def test_all_questions_are_answered_first() -> None:
    play = asking("a", "b").answer("reject")
    assert pending(play, RunAction) == []
    play.answer("answer", values={})
    assert {key: one["action"] for key, one in resumed(play)["answers"].items()} == {
        "a": "decline",
        "b": "accept",
    }
    settled(play, asks("c")).answer("answer")
    assert set(resumed(play)["known"]) == {"h-a", "h-b", "h-c"}


def test_a_server_that_nobody_answers_is_told_so() -> None:
    play = asking("a")
    play.at += 61
    play.give(Settled("1:action.0.q1.0.due", Outcome.done(), play.at))
    assert play.last("request.expired")["then"] == "cancel"
    assert resumed(play)["answers"] == {"a": {"action": "cancel"}}


def test_a_server_that_asks_over_and_over_is_stopped() -> None:
    play = asking("a").answer("answer")
    settled(play, asks("a")).answer("answer")
    settled(play, asks("a"))
    assert play.last("action.completed")["error"]["code"] == "asks_too_often"
    assert play.state.asking == {}


def test_where_nobody_can_be_asked_the_call_failed() -> None:
    play = asking("a", autonomy="autonomous")
    assert play.last("action.completed")["error"]["code"] == "asks"
    assert play.last("action.completed").get("result") is None


def test_no_message_and_no_parent_answers_for_a_person() -> None:
    play = asking("a").post("yes, of course")
    assert pending(play, AskHuman) == ["action.0.q1.0"]
    assert [one.text for one in play.state.mail] == ["yes, of course"]
    child = asking("a")
    child.state = replace(child.state, asks_parent=True, parent_id="run_0")
    child.post("anything")
    assert child.state.told_ask == ""


def test_the_end_of_the_run_is_the_end_of_the_call() -> None:
    play = asking("a").cancel()
    assert play.state.asking == {}
    assert play.types.count("request.cancelled") == 1
    assert play.last("action.completed")["error"]["code"] == "cancelled"


def held(play: Play, name: str, most: int = 2) -> Play:
    question = {"id": name, "hash": f"h-{name}", "message": f"{name}?", "form": FORM}
    asks_ = {"server": "shop", "questions": [question], "seconds": 60, "most": most}
    play.at += 1
    return play.give(Reported("asks", {"effect": "1:action.0", "asks": asks_}, play.at))


def test_a_call_that_goes_on_finds_its_answer() -> None:
    play = held(Play(agent()).reply(act(("work", {"item": 1}))), "a")
    assert pending(play, RunAction) == ["action.0"]
    play.answer("answer", values={"sure": "yes"})
    assert pending(play, RunAction) == ["action.0"]  # it is not made again
    accepted = {"action": "accept", "content": {"sure": "yes"}}
    assert play.state.asking["1:action.0"].known == {"h-a": accepted}
    held(play, "b")
    play.settle("action.0", "done")
    assert play.state.asking == {}
    assert play.last("request.cancelled")["reason"] == "The call that asked has ended."
    assert play.state.turn == 2


def test_and_is_told_that_nobody_answers_when_it_asks_too_often() -> None:
    play = held(Play(agent()).reply(act(("work", {"item": 1}))), "a", most=0)
    assert pending(play, AskHuman) == []
    assert play.state.asking["1:action.0"].known == {"h-a": {"action": "cancel"}}
