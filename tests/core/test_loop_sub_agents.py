"""Loops whose passes give work to a sub-agent; sub-agents that come with a skill."""

from __future__ import annotations

from typing import Any

import pytest

from loopagent.core.effects import KeepValue
from loopagent.core.plan_state import PlanState
from loopagent.core.skill_spec import SkillSet, SkillSpec
from tests.core.play import Play, agent
from tests.core.test_sub_agents import boss, ended, fail, give, kid, results, work


ROWS = [{"id": 1, "name": "ann"}, {"id": 2, "name": "bob"}, {"id": 3, "name": "cid"}]


def each(**fields: Any) -> dict[str, Any]:
    child = {"name": "kid", "message": "Greet {{ item.name }}.", **fields.pop("subAgent", {})}
    body = {"collectionPath": "rows", "executionMode": "parallel", "subAgent": child, **fields}
    return {"taskComplete": False, "nextStep": {"type": "ForEach", "forEach": body}}


def play(*kids: Any, **more: Any) -> Play:
    return Play(boss(*kids, **more), payload={"rows": ROWS})


def report(run: Play) -> dict[str, Any]:
    return dict(results(run)[0])


def finish(run: Play) -> dict[str, Any]:
    """Let the full results be stored, if they are to be."""
    for one in list(run.state.pending.values()):
        if isinstance(one, KeepValue):
            stored = {"artifactId": "x", "chars": 9, "head": "[", "tail": "]"}
            run.settle(one.id.partition(":")[2], {"$artifact": stored})
    return report(run)


def test_fix_29_messages_and_parameters_are_filled_in_for_each_item() -> None:
    schema = {"type": "object", "properties": {"tone": {"type": "string"}}}
    one = kid(instructions="Be {{ tone }}.", parameters=schema)
    run = play(one).reply(each(subAgent={"templateParameters": {"tone": "{{ item.name }}-like"}}))
    assert [call.id for call in work(run)] == ["1:each.0", "1:each.1", "1:each.2"]
    assert [call.template_parameters for call in work(run)] == [
        {"tone": "ann-like"},
        {"tone": "bob-like"},
        {"tone": "cid-like"},
    ]
    assert "Greet bob." in work(run)[1].message


def test_a_message_without_places_is_given_the_item_and_the_context() -> None:
    run = play().reply(each(subAgent={"message": "Greet.", "context": "Be short."}))
    text = work(run)[0].message
    assert '{"id":1,"name":"ann"}' in text
    assert "Be short." in text


def test_fix_26_changes_of_all_children_merge_in_item_order_and_conflicts_are_told() -> None:
    run = play().reply(each())
    for number in (2, 0, 1):
        payload = {"rows": ROWS, f"n{number}": number, "best": number}
        run.settle(f"each.{number}", ended(payload, f"said {number}"))
    told = finish(run)
    assert run.state.payload == {"rows": ROWS, "n0": 0, "n1": 1, "n2": 2, "best": 0}
    assert [one["result"]["message"] for one in told["result"]["results"]] == [
        "said 0",
        "said 1",
        "said 2",
    ]
    refused = next(one for one in run.facts if one.type == "payload.changed").data["refused"]
    assert refused == [f"pass {one}: best (changed by pass 0 as well)" for one in (1, 2)]


@pytest.mark.parametrize("pause_ms", [0, 1500])
def test_one_after_the_other_each_sees_what_the_one_before_changed(pause_ms: int) -> None:
    run = play().reply(each(executionMode="sequential", delayBetweenIterationsMs=pause_ms))
    for number in range(3):
        if pause_ms and number:
            run.settle(f"pause.{number}")
        (call,) = work(run)
        seen = call.payload.get("count", 0)
        run.settle(f"each.{number}", ended({**call.payload, "count": seen + 1}))
    finish(run)
    assert run.state.payload["count"] == 3


def test_a_child_that_fails_or_asks_is_a_failed_pass() -> None:
    run = play().reply(each(continueOnError=True))
    fail(run, "each.0")
    run.settle("each.1", ended(status="asked", message="Which one?"))
    run.settle("each.2", ended())
    told = finish(run)
    codes = [one["error"]["code"] for one in told["result"]["failures"]]
    assert codes == ["limit", "unfinished"]
    assert "Which one?" in told["result"]["failures"][1]["error"]["message"]


def test_a_while_may_give_work() -> None:
    child = {"name": "kid", "message": "Try {{ attempt }}."}
    body = {"condition": "!has(payload.found)", "subAgent": child}
    run = play().reply({"taskComplete": False, "nextStep": {"type": "While", "while": body}})
    assert "Try 1." in work(run)[0].message
    run.settle("pass.0", ended({"rows": ROWS}))
    assert "Try 2." in work(run)[0].message
    run.settle("pass.1", ended({"rows": ROWS, "found": 1}))
    assert report(run)["result"]["done"] == 2
    assert run.state.payload["found"] == 1


def test_what_is_wrong_is_said_before_anything_runs() -> None:
    for wrong, words in (
        ({"name": "nobody"}, "nobody"),
        ({"message": "Greet {{ itm.name }}."}, "itm"),
        ({"templateParameters": {"x": 1}}, "declares no parameters"),
    ):
        run = play().reply(each(subAgent=wrong))
        assert not work(run)
        assert words in run.said
    alone = Play(agent(), payload={"rows": ROWS}).reply(each())
    assert "cannot do that in a loop" in alone.said


def skilled(**more: Any) -> Play:
    skill = SkillSpec.model_validate(
        {
            "name": "greeting",
            "description": "How to greet.",
            "instructions": "Greet kindly.",
            "hash": "0" * 64,
            "agents": ["kid"],
            "activation": "auto",
        }
    )
    skills = SkillSet(activation="auto", available=(skill,))
    mail = agent().actions[1]
    return play(kid(terms={"with_skill": True}, actions=(mail,)), skills=skills, **more)


ACTIVATE = {"taskComplete": False, "nextStep": {"type": "Skill", "skills": [{"name": "greeting"}]}}


def test_a_sub_agent_of_a_skill_is_there_once_the_skill_is_active() -> None:
    run = skilled().reply(give("kid"))
    assert not work(run)
    run.reply(ACTIVATE).reply(give("kid"))
    assert [one.agent for one in work(run)] == ["kid"]


def test_a_skill_that_comes_after_an_approval_needs_a_new_plan_for_its_sub_agents() -> None:
    run = skilled(plan_mode="required")
    run.state.plan = PlanState(mode="plan", status="approved", revision=1, text="Do it.")
    run.reply(ACTIVATE).reply(give("kid"))
    assert not work(run)
    assert "revision 1 was approved" in run.said


def test_the_card_of_a_later_plan_lists_them() -> None:
    run = skilled(plan_mode="required").reply(ACTIVATE)
    run.reply({"taskComplete": False, "nextStep": {"type": "Plan", "plan": "Greet all."}})
    (ask,) = run.state.asks
    listed = [one["action"] for one in ask.subject["unlocks"]]
    assert "kid" in listed
    run.answer("approve").reply(give("kid"))
    assert [one.agent for one in work(run)] == ["kid"]
