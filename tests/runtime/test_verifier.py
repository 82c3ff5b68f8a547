"""Is it done? The policy's word counts, then the verifier's, who is never the author."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from loopagent import Agent, App, action
from loopagent.core.agent_spec import AgentSpec, Limits
from loopagent.core.claims import verdict
from loopagent.core.completion_spec import Completion, VerifierSpec
from loopagent.core.effects import Verify
from loopagent.core.events import MessagePosted
from loopagent.models.scripted import ScriptedModel
from tests.core.play import WORK, Play, agent


pytestmark = pytest.mark.anyio
DONE = {"taskComplete": True, "message": "All done."}


def by(**options: Any) -> Completion:
    return Completion(verifier=VerifierSpec(**options))


def claiming() -> Play:
    return Play(agent(completion=by(action="work"))).reply(DONE)


def judge(play: Play, verdict: Any) -> Play:
    return play.settle("verify", {"verdict": verdict})


def test_a_claim_waits_for_the_verifier() -> None:
    play = claiming()
    assert [type(one) for one in play.effects] == [Verify]
    assert play.state.status == "running"
    assert judge(play, {"accepted": True}).state.status == "completed"
    assert play.state.turn == 1


def test_an_objection_goes_back_to_the_model_a_bounded_number_of_times() -> None:
    play = claiming()
    for turn in (1, 2):
        judge(play, {"accepted": False, "problems": ["no sum", "no date"]})
        assert play.state.turn == turn + 1
        assert "the verifier does not agree: no date" in play.messages[-1].text
        assert play.last("guard.nudged") == {"reason": "completion"}
        play.reply(DONE)
    judge(play, False)
    assert play.state.status == "failed"
    assert play.state.result is not None
    assert play.state.result.reason == "completion"


def test_what_a_person_says_meanwhile_goes_first() -> None:
    play = claiming()
    play.give(MessagePosted("One more thing.", 5.0))
    judge(play, True)
    assert play.state.status == "running"
    assert play.messages[-1].text == "One more thing."
    assert play.state.claim is None


@pytest.mark.parametrize("value", [None, "yes", 1, [], {}, {"accepted": "true"}, {"ok": True}])
def test_whoever_does_not_clearly_agree_has_not_agreed(value: Any) -> None:
    assert verdict(value) == ["the verifier gave no verdict"]


@pytest.mark.parametrize(
    ("options", "verifier"),
    [
        ({"model": "x:author"}, {"model": "x:author"}),
        ({"model": "x:a", "fallback_models": ("x:b",)}, {"model": "x:b"}),
        ({}, {"action": "nobody"}),
        ({"actions": (WORK.model_copy(update={"effects": "write"}),)}, {"action": "work"}),
        ({}, {}),
        ({"actions": (WORK,)}, {"action": "work", "model": "x:y"}),
    ],
)
def test_a_verifier_that_cannot_be_one_is_refused(
    options: dict[str, Any], verifier: dict[str, Any]
) -> None:
    with pytest.raises(ValidationError):
        AgentSpec.model_validate({"name": "a", **options, "completion": {"verifier": verifier}})


def test_a_model_chosen_for_the_run_does_not_verify_itself() -> None:
    play = Play(agent(completion=by(model="scripted"))).reply(DONE)
    assert play.state.status == "running"
    assert "it is the model that did the work" in play.messages[-1].text


async def test_an_action_verifies_with_what_it_asks_for() -> None:
    given: list[Any] = []

    @action(effects="read")
    async def check(task: str, payload: dict[str, Any]) -> Any:
        given.append((task, payload))
        return {"accepted": len(given) == 2, "problems": ["look again"]}

    model = ScriptedModel([DONE, DONE])
    tester = Agent("tester", model=model, actions=[check], completion=by(action="check"))
    async with App(agents=[tester]) as host:
        run = await host.start("tester", "Count.", payload={"n": 1})
        view = await host.wait(run.id, timeout_seconds=60)
        events = [one["type"] for one in await host.store.events(run.id)]
    assert view.state.status == "completed"
    assert given == [("Count.", {"n": 1})] * 2
    assert events.count("action.completed") == 2
    assert events.count("turn.started") == events.count("turn.ended") == 2


@pytest.mark.parametrize(
    ("word", "status"),
    [
        ({"raw": '{"accepted": true}'}, "completed"),
        ({"raw": "Looks fine!"}, "failed"),
        ({"raw": '{"accepted": true', "finishReason": "length"}, "failed"),
    ],
)
async def test_another_model_verifies_and_its_call_is_counted(
    tmp_path: Any, word: dict[str, str], status: str
) -> None:
    script = tmp_path / "judge.jsonl"
    script.write_text((json.dumps(word) + "\n") * 3)
    tester = Agent(
        "tester",
        model=ScriptedModel([DONE] * 3),
        completion=by(model=f"scripted:{script}"),
        limits=Limits(max_claims=1),
    )
    async with App(agents=[tester]) as host:
        run = await host.start("tester", "Count.")
        view = await host.wait(run.id, timeout_seconds=60)
        events = await host.store.events(run.id)
    assert view.state.status == status
    (call,) = [one["data"] for one in events if one["type"] == "model.call"]
    assert call["purpose"] == "verifier"
    assert view.state.usage.model_calls == 2
