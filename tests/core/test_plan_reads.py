"""Approving a plan without being asked about reading under it: for what was listed, as long as the plan holds."""

from __future__ import annotations

from typing import Any

import pytest

from loopagent.core.action_spec import ActionSpec
from loopagent.core.agent_spec import AgentSpec
from loopagent.core.asking import Asking
from loopagent.core.effects import AskHuman, RunAction
from loopagent.core.events import Answer, ApprovalRevoked, ModeChanged
from loopagent.core.people import read_answer
from loopagent.core.plan_reads import holding
from tests.core.play import ITEM, Play, act, agent, pending


Json = dict[str, Any]
LASTING = Asking(remember="run")
ACTIONS = (
    ActionSpec(name="files.read", parameters=ITEM, effects="read", approval="ask", asking=LASTING),
    ActionSpec(name="secret.read", parameters=ITEM, effects="read", approval="ask"),
    ActionSpec(
        name="others.read",
        parameters=ITEM,
        effects="read",
        approval="ask",
        asking=Asking(remember="run", approvers=("ann",)),
    ),
    ActionSpec(name="free.read", parameters=ITEM, effects="read", asking=LASTING),
    ActionSpec(name="mail", parameters=ITEM, effects="external", approval="ask", asking=LASTING),
)
READ = {"action": "files.read", "effects": "read"}


def planner(**options: Any) -> AgentSpec:
    return agent(**{"plan_mode": "required", "actions": ACTIONS, **options})


def plan(text: str = "Read, then mail.") -> Json:
    return {"taskComplete": False, "nextStep": {"type": "Plan", "plan": text}}


def call(name: str, item: int = 1) -> Json:
    return act((name, {"item": item}))


def proposed(spec: AgentSpec | None = None) -> tuple[Play, AskHuman]:
    play = Play(spec or planner(), payload={"rows": [1, 2]})
    play.reply(plan())
    return play, play.state.asks[0]


def approve(play: Play, card: AskHuman, **more: Any) -> None:
    body, problems = read_answer(card, Answer(decision="approve", by="human:ann", **more))
    assert problems == []
    play.answer(**body)


def asked(play: Play, reply: Json) -> bool:
    """Whether a person is asked about the call of a reply; what is asked or begun is settled."""
    play.reply(reply)
    asks = bool(play.state.asks)
    if asks:
        play.answer("reject", feedback="")
    for key in pending(play, RunAction):
        play.settle(key, "read")
    return asks


def test_the_card_lists_what_reads_asks_and_lets_that_be() -> None:
    _, card = proposed()
    assert (card.subject["reads"], card.subject["remember"]) == ([READ], ["run"])


@pytest.mark.parametrize(
    "options",
    [
        {"actions": ACTIONS[1:]},
        {"approval": {"actions": {"files.read": "ask"}}},
        {"approval": {"actions": {"files.read": "never"}}},
    ],
)
def test_where_nothing_may_be_waived_nothing_is_offered(options: Json) -> None:
    _, card = proposed(planner(**options))
    assert {"reads", "remember"} & card.subject.keys() == set()
    _, problems = read_answer(card, Answer(decision="approve", by="human:ann", remember="run"))
    assert [one.path for one in problems] == ["remember"]


def test_only_listed_reading_is_not_asked_about_and_all_else_is() -> None:
    play, card = proposed()
    approve(play, card, remember="run")
    fact = play.last("approval.remembered")
    assert (fact["action"], fact["plan"], fact["scope"]) == ("files.read", 1, "run")
    assert [asked(play, call("files.read", item)) for item in (1, 2)] == [False, False]
    assert "plan revision 1" in play.last("approval.waived")["text"]
    assert [asked(play, call(name)) for name in ("secret.read", "others.read", "mail")] == [
        True
    ] * 3
    assert play.state.plan.unlocked == ("mail",)


def test_an_approval_alone_waives_nothing() -> None:
    play, card = proposed()
    approve(play, card)
    assert asked(play, call("files.read"))


@pytest.mark.parametrize("remember", ["", "run"])
def test_a_loop_under_the_plan_is_not_asked_about_either(remember: str) -> None:
    play, card = proposed()
    approve(play, card, remember=remember)
    action = {"name": "files.read", "params": {"item": "{{ item }}"}}
    step = {"type": "ForEach", "forEach": {"collectionPath": "rows", "action": action}}
    play.reply({"taskComplete": False, "nextStep": step})
    assert (not play.state.asks, bool(pending(play, RunAction))) == (bool(remember),) * 2


def test_a_new_revision_asks_again_and_so_does_a_switch() -> None:
    play, card = proposed()
    approve(play, card, remember="run")
    play.reply(plan("Read something else."))
    second = play.state.asks[0]
    assert holding(play.state) == ()
    approve(play, second)
    assert asked(play, call("files.read"))
    play, card = proposed()
    approve(play, card, remember="run")
    assert len(holding(play.state)) == 1
    play.give(ModeChanged("plan", at=2.0, by="human"))
    assert play.state.remembered == ()
    assert asked(play, call("files.read"))


def test_it_is_taken_back_like_any_other() -> None:
    play, card = proposed()
    approve(play, card, remember="run")
    [kept] = holding(play.state)
    play.give(ApprovalRevoked(kept.id, 2.0, "human:ann"))
    assert asked(play, call("files.read"))


def test_it_comes_with_the_plan_as_shown_and_only_with_an_approval() -> None:
    _, card = proposed()
    for answer in (
        Answer(decision="approve", by="human:ann", edited="Another plan.", remember="run"),
        Answer(decision="reject", by="human:ann", feedback="No.", remember="run"),
        Answer(decision="approve", by="human:ann", remember="session"),
    ):
        assert [one.path for one in read_answer(card, answer)[1]] == ["remember"]


def test_nobody_but_a_person_waives_anything() -> None:
    play, card = proposed()
    assert card.subject["reads"] == [READ]
    play.answer("approve", by="model", remember="run")
    assert play.state.remembered == ()
