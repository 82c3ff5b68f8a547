"""Approvals: conditions, what a card shows, deadlines, and what is remembered, which never widens."""

from __future__ import annotations

from typing import Any

import pytest

from loopagent.core.action_spec import ActionSpec
from loopagent.core.agent_spec import AgentSpec, ApprovalPolicy
from loopagent.core.asking import Asking
from loopagent.core.events import Answer, ApprovalRevoked, Settled
from loopagent.core.lineage import child_spec
from loopagent.core.outcome import Outcome
from loopagent.core.people import read_answer
from tests.core.play import AskHuman, Play, RunAction, act, agent, pending


PAY = {
    "type": "object",
    "properties": {"amount": {"type": "number"}, "to": {"type": "string"}},
    "required": ["amount"],
    "additionalProperties": False,
}


def pay(**asking: Any) -> ActionSpec:
    return ActionSpec(
        name="pay", effects="external", parameters=PAY, approval="ask", asking=Asking(**asking)
    )


def paying(spec: ActionSpec, *amounts: float, **options: Any) -> Play:
    play = Play(agent(actions=(spec,), **options))
    return play.reply(act(*(("pay", {"amount": one}) for one in amounts)))


def again(play: Play, amount: float, **more: Any) -> Play:
    """Ask for the next payment, once the last one was made."""
    return play.reply(act(("pay", {"amount": amount, **more})))


def subject(play: Play) -> dict[str, Any]:
    return play.state.asks[0].subject


# --- conditions ------------------------------------------------------------------------------------


def test_only_calls_for_which_the_condition_holds_are_asked_about() -> None:
    play = paying(pay(when="params.amount > `100`"), 5, 500)
    assert pending(play, AskHuman) == ["action.1.ask"]
    assert pending(play, RunAction) == []  # a batch runs as one
    assert subject(play)["why"] == {"rule": "when", "text": "params.amount > `100` holds."}
    play.answer("approve")
    assert pending(play, RunAction) == ["action.0", "action.1"]
    waived = play.last("approval.waived")
    assert (waived["callId"], waived["rule"]) == ("1:action.0", "when")
    assert play.types.count("approval.waived") == 1


def test_null_is_false_and_what_cannot_be_worked_out_asks() -> None:
    assert pending(paying(pay(when="params.to"), 5), RunAction) == ["action.0"]
    play = paying(pay(when="starts_with(params.to, 'DE')"), 5)  # there is no `to`
    assert subject(play)["why"]["rule"] == "unclear"
    assert "starts_with" in subject(play)["why"]["text"]
    for missing in (
        "params.limit < `100`",
        "!(params.limit >= `100`)",
        "params.limit > params.amount",
    ):
        assert subject(paying(pay(when=missing), 5))["why"]["rule"] == "unclear"
    said = "params.limit && params.limit < `100`"
    assert pending(paying(pay(when=said), 5), RunAction) == ["action.0"]


def test_an_agent_can_only_tighten() -> None:
    policy = ApprovalPolicy(actions={"pay": "ask"})
    assert pending(paying(pay(when="params.amount > `100`"), 5, approval=policy), AskHuman)
    auto = ActionSpec(name="pay", effects="external", parameters=PAY, approval="auto")
    assert pending(paying(auto, 5, approval=policy), AskHuman)
    never = AgentSpec(name="a", actions=(auto,), approval=ApprovalPolicy(actions={"pay": "never"}))
    assert never.approval_of(auto) == "never"


def test_a_sub_agent_asks_no_less_than_its_parent() -> None:
    below = agent(name="below", actions=(pay(when="params.amount > `100`"),))
    above = AgentSpec.model_validate({"name": "above", "subAgents": [{"spec": below}]})
    asked = child_spec(Play(above).state, above.agents[0], {}).action("pay")
    assert asked is not None
    assert asked.asking is not None
    assert asked.asking.when is None  # the parent asks about everything external
    same = AgentSpec.model_validate(
        {"name": "above", "actions": below.actions, "subAgents": [{"spec": below}]}
    )
    kept = child_spec(Play(same).state, same.agents[0], {}).action("pay")
    assert kept == below.actions[0]
    strict = above.model_copy(update={"approval": ApprovalPolicy(actions={"pay": "never"})})
    child = child_spec(Play(strict).state, strict.agents[0], {})
    assert child.approval_of(child.actions[0]) == "never"


@pytest.mark.parametrize(
    ("more", "fault"),
    [
        ({"asking": Asking(when="params.x"), "approval": None}, "needs approval `ask`"),
        ({"asking": Asking(remember="run"), "effects": "irreversible"}, "every time"),
        ({"asking": Asking(show=("nope",))}, "'nope'"),
    ],
)
def test_what_says_nothing_or_too_much_is_refused(more: dict[str, Any], fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        ActionSpec.model_validate({"name": "x", "approval": "ask", "parameters": PAY, **more})


@pytest.mark.parametrize("asking", [{"when": "params.x >"}, {"approvers": ["team:x"]}])
def test_what_cannot_be_meant_is_refused(asking: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"no JMESPath|no approver"):
        Asking.model_validate(asking)


# --- the card --------------------------------------------------------------------------------------


def test_the_card_tells_all_and_is_bound_by_its_hash() -> None:
    terms = {"show": ("to",), "approvers": ("ann", "role:cfo"), "expires_seconds": 60}
    play = Play(agent(actions=(pay(**terms),)))
    play.reply(act(("pay", {"amount": 1, "to": "DE1"})))
    asked = play.last("request.created")
    shown = asked["subject"]
    assert (shown["show"], shown["approvers"]) == (["to"], ["ann", "role:cfo"])
    assert (asked["expiresAt"], shown["onExpiry"]) == (play.at + 60, "reject")
    other = Play(agent(actions=(pay(**{**terms, "approvers": ("bob",)}),)))
    other.reply(act(("pay", {"amount": 1, "to": "DE1"})))
    assert other.last("request.created")["contentHash"] != asked["contentHash"]


def test_an_edited_answer_is_refused_where_nothing_may_be_edited() -> None:
    play = paying(pay(allow_edit=False), 1)
    assert "schema" not in subject(play)
    _, problems = read_answer(play.state.asks[0], Answer("approve", edited={"amount": 2}))
    assert "allowEdit" in problems[0].message
    assert not read_answer(play.state.asks[0], Answer("approve"))[1]


def test_a_call_that_was_sent_back_comes_with_what_is_different() -> None:
    play = paying(pay(), 500).answer("reject", feedback="too much")
    assert "before" not in play.last("request.created")["subject"]
    again(play, 50, to="DE1")
    before = subject(play)["before"]
    assert (before["decision"], before["feedback"]) == ("reject", "too much")
    assert [(one["path"], one.get("old"), one.get("new")) for one in before["changes"]] == [
        (["amount"], 500, 50),
        (["to"], None, "DE1"),
    ]
    again(play.answer("approve").settle("action.0", "ok"), 7)
    assert "before" not in subject(play)


# --- deadlines -------------------------------------------------------------------------------------


def expire(play: Play) -> Play:
    timer = next(one for one in play.state.pending if one.endswith(".due"))
    play.at += 61
    return play.give(Settled(timer, Outcome.done(), play.at))


def test_a_call_that_nobody_approves_in_time_is_refused() -> None:
    play = expire(paying(pay(expires_seconds=60), 5))
    assert play.last("request.expired")["then"] == "reject"
    assert play.last("action.rejected")["code"] == "expired"
    assert play.state.turn == 2
    again(play, 5)
    assert subject(play)["before"]["decision"] == "expired"
    play.answer("approve")
    assert not [one for one in play.state.pending if one.endswith(".due")]
    assert pending(play, RunAction) == ["action.0"]


def test_or_the_run_fails() -> None:
    play = expire(paying(pay(expires_seconds=60, on_expiry="fail"), 5))
    assert play.state.status == "failed"
    assert play.state.result is not None
    assert play.state.result.reason == "expired"


# --- remembering -----------------------------------------------------------------------------------


def approved(spec: ActionSpec, scope: str = "run", **options: Any) -> Play:
    """A run in which one payment of 5 was approved and is not to be asked about again."""
    play = paying(spec, 5, **options).answer("approve", remember=scope)
    return play.settle("action.0", "paid")


def test_the_very_same_call_is_not_asked_about_again() -> None:
    play = again(approved(pay(remember="run")), 5)
    assert pending(play, RunAction) == ["action.0"]
    waived = play.last("approval.waived")
    assert (waived["rule"], waived["approvalId"]) == ("remembered", "run_1:1:action.0.ask")
    kept = play.last("approval.remembered")
    assert (kept["params"], kept["scope"], kept["by"]) == ({"amount": 5}, "run", "ann")
    decided = {one.type: one.decided_by for one in play.facts}
    assert (decided["approval.remembered"], decided["approval.waived"]) == ("human", "human")


@pytest.mark.parametrize("more", [{"amount": 5.0}, {"amount": 6}, {"amount": 5, "to": "DE1"}])
def test_any_other_call_is(more: dict[str, Any]) -> None:
    play = approved(pay(remember="run")).reply(act(("pay", more)))
    assert pending(play, AskHuman) == ["action.0.ask"]


def test_another_definition_or_agent_is_asked_about() -> None:
    play = approved(pay(remember="run"))
    kept = play.state.remembered[0]
    call = (kept.action, kept.params)
    assert kept.fits("tester", *call, kept.definition)
    assert not kept.fits("another", *call, kept.definition)
    changed = agent(actions=(pay(remember="run").model_copy(update={"fingerprint": "new"}),))
    play.state.spec = changed
    assert pending(again(play, 5), AskHuman) == ["action.0.ask"]


def test_what_is_remembered_can_be_taken_back_also_after_the_end() -> None:
    play = approved(pay(remember="run"))
    play.give(ApprovalRevoked("run_1:1:action.0.ask", play.at, "bob"))
    assert play.last("approval.forgotten")["by"] == "bob"
    assert pending(again(play, 5), AskHuman) == ["action.0.ask"]
    ended = approved(pay(remember="run")).cancel()
    ended.give(ApprovalRevoked("run_1:1:action.0.ask", ended.at))
    assert ended.state.remembered == ()
    assert ended.state.status == "cancelled"


def test_only_what_is_offered_is_remembered() -> None:
    request = paying(pay(remember="run"), 5).state.asks[0]
    assert request.subject["remember"] == ["run"]  # it continues no conversation
    session = Answer("approve", remember="session")
    assert read_answer(request, session)[1][0].path == "remember"
    edited = Answer("approve", edited={"amount": 6}, remember="run")
    assert read_answer(request, edited)[1][0].path == "remember"
    assert not read_answer(request, Answer("approve", remember="run"))[1]
    never = approved(
        pay()
    )  # says nothing of it, and whoever answers so all the same changes nothing
    assert never.state.remembered == ()


def test_the_oldest_is_forgotten() -> None:
    play = approved(pay(remember="run"), limits={"max_remembered_approvals": 1})
    again(play, 6).answer("approve", remember="run").settle("action.0", "paid")
    assert [one.params for one in play.state.remembered] == [{"amount": 6}]
