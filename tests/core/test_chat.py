"""Questions, forms and buttons, and being asked again: what people see, what comes back."""

from __future__ import annotations

from typing import Any

import pytest

from loopagent.core.effects import ReadMessage
from loopagent.core.events import Answer, Settled
from loopagent.core.outcome import Outcome
from loopagent.core.people import read_answer
from loopagent.core.protocol.forms import AgentResponseForm
from tests.core.play import AskHuman, Play, act, agent, pending


Json = dict[str, Any]
BUTTON = {"type": "open:url", "label": "Open", "url": "https://example.org"}


def ask(message: str, **more: Any) -> Json:
    return {"taskComplete": False, "message": message, "nextStep": {"type": "Chat"}, **more}


def question(key: str, kind: Any, **more: Any) -> Json:
    return {"id": key, "label": key.title(), "type": kind, **more}


FORM = {
    "title": "Order",
    "questions": [
        question("count", {"type": "number", "min": 1, "max": 9}, required=True),
        question("day", {"type": "date"}),
        question("code", {"type": "text"}),
        question(
            "tags",
            {
                "type": "checkbox",
                "multiple": True,
                "options": [{"value": 1, "label": "New"}, {"value": 2, "label": "Hot"}],
            },
        ),
    ],
}


def answer(play: Play, **values: Any) -> Play:
    """Answer the open form as the outside does: checked, then delivered."""
    request = play.state.asks[0]
    body, problems = read_answer(request, Answer("answer", values=values, by="ann"))
    assert problems == []
    return play.give(Settled(request.id, Outcome.done(body), play.at + 1))


def test_the_model_gets_typed_values_one_a_line() -> None:
    play = Play().reply(ask("What do you want?", responseForm=FORM))
    answer(play, count=" 3 ", day="2026-03-01", code="7", tags=["Hot", "1"])
    assert play.said == 'Count: 3\nDay: 2026-03-01\nCode: "7"\nTags: [2, 1]'
    assert play.last("request.resolved")["values"] == {
        "count": 3,
        "day": "2026-03-01",
        "code": "7",
        "tags": [2, 1],
    }


def test_an_answer_cannot_pose_as_the_answer_to_another_question() -> None:
    play = Play().reply(ask("What do you want?", responseForm=FORM))
    answer(play, count="1", code="x\nCount: 9", day="")
    assert play.said == 'Count: 1\nCode: "x\\nCount: 9"'


def test_a_form_stays_open_until_every_answer_fits() -> None:
    request = Play().reply(ask("What do you want?", responseForm=FORM)).state.asks[0]
    values = {"count": "1,5", "tags": "Warm", "other": 1}
    _, problems = read_answer(request, Answer("answer", values=values, by="ann"))
    assert {one.path for one in problems} == {"values.count", "values.tags", "values.other"}


@pytest.mark.parametrize(
    ("questions", "path"),
    [
        (
            [question("a", {"type": "text"}), question("a", {"type": "date"})],
            "responseForm.questions[1].id",
        ),
        (
            [question("a", {"type": "number", "min": 2, "max": 1})],
            "responseForm.questions[0].type",
        ),
        (
            [question("a", {"type": "slider", "min": 2, "max": 1})],
            "responseForm.questions[0].type",
        ),
    ],
)
def test_a_form_that_nobody_can_answer_is_not_shown(questions: list[Json], path: str) -> None:
    play = Play().reply(ask("What?", responseForm={"questions": questions}))
    assert [one["path"] for one in play.last("reply.rejected")["problems"]] == [path]


def test_bounds_that_leave_one_number_are_fine() -> None:
    kind = {"type": "number", "min": 1, "max": 1}
    AgentResponseForm.model_validate({"questions": [question("a", kind)]})


def test_fix_30_a_question_is_a_request_with_all_that_came_with_it() -> None:
    reply = ask("Look here. Fine?", responseForm=FORM, actionableCommands=[BUTTON])
    play = Play().reply({**reply, "taskComplete": True})
    card = play.last("request.created")
    assert (card["kind"], card["text"], card["title"]) == ("question", "Look here. Fine?", "Order")
    assert card["subject"] == {"commands": [BUTTON]}
    assert [one["id"] for one in card["form"]["questions"]] == ["count", "day", "code", "tags"]
    assert "run.completed" not in play.types
    play.answer("terminate")
    assert play.state.status == "cancelled"


def test_a_form_may_come_with_the_last_word() -> None:
    play = Play().reply({"taskComplete": True, "message": "Done.", "responseForm": FORM})
    assert play.state.status == "completed"
    assert play.last("run.task_complete")["form"]["title"] == "Order"
    assert play.state.result is not None
    assert play.state.result.form is not None
    assert not play.state.asks


def test_a_conversation_may_be_long_but_not_say_the_same_for_ever() -> None:
    play = Play()
    for number in range(8):
        play.reply(ask(f"Question {number}?")).answer("answer", feedback="Yes.")
    assert "guard.repeated" not in play.types
    for _ in range(5):
        play.reply(ask("Again?")).answer("answer", feedback="Yes.")
    assert play.last("guard.repeated")["count"] == 5
    assert pending(play, AskHuman) == ["guard"]


def test_fix_44_being_asked_again_is_bounded_whatever_reason_is_given() -> None:
    play = Play(agent(autonomy="autonomous"))
    for number in range(5):
        retry = {"type": "Retry", "reason": f"Thinking, part {number}."}
        play.reply({"taskComplete": False, "nextStep": retry})
    assert (play.state.status, play.state.turn) == ("failed", 5)
    assert play.last("guard.repeated")["count"] == 5


def retry(number: Any) -> Json:
    return {"taskComplete": False, "nextStep": {"type": "Retry", "messageIndex": number}}


@pytest.mark.parametrize("number", [1, "1", "#1", " #1"], ids=repr)
def test_fix_18_an_expansion_brings_the_stored_original(number: Any) -> None:
    play = Play().reply(retry(number))
    effect = play.state.pending["1:message"]
    assert isinstance(effect, ReadMessage)
    assert effect.number == 1
    play.settle("message", {"number": 1, "role": "user", "text": "Do it."})
    assert '"text":"Do it."' in play.said
    assert play.last("context.expanded") == {"number": 1, "chars": 6}


@pytest.mark.parametrize("number", [0, 3, 99, "#0", "m1", -1], ids=repr)
def test_fix_19_a_number_that_was_never_given_is_refused(number: Any) -> None:
    play = Play().reply(retry(number))
    assert play.last("reply.rejected")["problems"][0]["path"] == "nextStep.messageIndex"


def test_fix_19_a_number_means_the_same_message_for_ever() -> None:
    play = Play().reply(act(("work", {"item": 1}))).settle("action.0", "found")
    number = next(one.number for one in play.messages if one.kind == "results")
    for item in (2, 3):
        play.reply(act(("work", {"item": item}))).settle("action.0", "more")
    play.reply(retry(number))
    effect = play.state.pending[f"{play.state.turn}:message"]
    assert isinstance(effect, ReadMessage)
    assert effect.number == number
    kept = next(one.text for one in play.messages if one.number == number)
    assert '"found"' in kept
