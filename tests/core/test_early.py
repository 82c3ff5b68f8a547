"""Which calls may begin before the reply that asks for them is complete."""

from __future__ import annotations

import json
from typing import Any

import pytest

from loopagent.core.action_spec import ActionSpec
from loopagent.core.agent_spec import AgentSpec, ApprovalPolicy, Limits
from loopagent.core.early import early_call
from loopagent.core.effects import RunAction
from loopagent.core.events import MessagePosted, Reported
from loopagent.core.hook_spec import HookSpec
from tests.core.play import MAIL, WORK, Play, act, agent


CALL = {"name": "work", "params": {"item": 1}}


def play(**options: Any) -> Play:
    return Play(agent(**{"early_start": True, **options}))


def other(**options: Any) -> AgentSpec:
    spec = ActionSpec(**{**WORK.model_dump(), **options})
    return agent(early_start=True, actions=(spec, MAIL))


def test_it_is_the_very_effect_that_the_whole_reply_leads_to() -> None:
    run = play()
    early = [early_call(run.state, {**CALL, "params": {"item": at}}, at) for at in range(3)]
    run.reply(act(*[("work", {"item": at}) for at in range(3)]))
    assert early == [one for one in run.effects if isinstance(one, RunAction)]


def test_names_and_parameters_are_read_as_ever() -> None:
    found = early_call(play().state, {"name": "Work", "params": {"item": "1"}}, 0)
    assert found is not None
    assert found.action == "work"
    assert early_call(play().state, {"name": "work", "arguments": {"item": 1}}, 0) == found
    assert early_call(play().state, {"name": "work", "params": {"item": "x"}}, 0) is None
    assert early_call(play().state, {"name": "nobody", "params": {}}, 0) is None
    for entry in ("work", None, [], {"params": {}}, {"name": ""}):
        assert early_call(play().state, entry, 0) is None


@pytest.mark.parametrize(
    "spec",
    [
        agent(),
        other(effects="write"),
        other(effects="external"),
        other(effects="irreversible"),
        other(approval="ask"),
        other(approval="never"),
        other(max_calls=5),
        other(serial=True),
        agent(early_start=True, approval=ApprovalPolicy(read="ask")),
        agent(early_start=True, approval=ApprovalPolicy(read="never")),
        agent(early_start=True, hooks=(HookSpec(name="ask", point="before_action"),)),
        agent(early_start=True, steps=("Chat",)),
    ],
)
def test_whatever_is_more_than_reading_waits_for_the_whole_reply(spec: AgentSpec) -> None:
    assert early_call(Play(spec).state, CALL, 0) is None


def test_in_plan_mode_reading_is_allowed_and_nothing_else() -> None:
    run = play(plan_mode="required")
    assert early_call(run.state, CALL, 0) is not None
    assert early_call(run.state, {"name": "mail", "params": {"item": 1}}, 0) is None


def test_no_more_begin_than_may_run_side_by_side() -> None:
    run = play(limits=Limits(max_concurrency=2))
    assert [early_call(run.state, CALL, at) is None for at in range(3)] == [False, False, True]


def test_a_limit_that_is_reached_lets_nothing_begin() -> None:
    run = play(limits=Limits(max_seconds=10))
    assert early_call(run.state, CALL, 0) is not None
    run.at += 20
    run.give(MessagePosted("Hurry.", run.at))
    assert early_call(run.state, CALL, 0) is None


def test_what_the_breaker_blocks_does_not_begin() -> None:
    run = play()
    for _ in range(2):
        run.reply(act(("work", {"item": 1}))).settle("action.0", error="exception")
    assert early_call(run.state, CALL, 0) is None
    assert early_call(run.state, {"name": "work", "params": {"item": 2}}, 0) is not None


def test_hooks_around_other_actions_are_no_hindrance() -> None:
    other_hook = HookSpec(name="look", point="before_action", actions=("mail",))
    after = HookSpec(name="see", point="after_action")
    assert early_call(play(hooks=(other_hook, after)).state, CALL, 0) is not None


def test_a_call_in_vain_is_on_record() -> None:
    run = play()
    call = {"callId": "1:action.0", "action": "work", "params": {"item": 1}, "reason": "changed"}
    run.give(Reported("discarded", {"calls": [{**call, "runningMs": 3.5}]}, run.at))
    fact = run.facts[-1]
    assert (fact.type, fact.decided_by, fact.data["reason"]) == (
        "action.discarded",
        "engine",
        "changed",
    )
    assert json.loads(json.dumps(fact.data)) == fact.data
