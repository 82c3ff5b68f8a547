"""Hooks: what functions of the host may do around runs, turns and actions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from loopagent import (
    ActionError,
    Agent,
    App,
    HookAnswer,
    HookCall,
    action,
    add_context,
    after_action,
    after_run,
    before_action,
    before_run,
    before_turn,
    change_params,
    deny,
    replace_result,
    stop,
)
from loopagent.explain import explain
from tests.runtime.hooked import SENT, Listening, act, decided, mail, run, send


pytestmark = pytest.mark.anyio


async def test_each_hook_is_told_where_the_run_is_and_silence_leaves_no_trace() -> None:
    heard: list[HookCall] = []
    hooks = [
        point(name="all")(heard.append)  # a sync function that returns None
        for point in (before_run, before_turn, before_action, after_action, after_run)
    ]
    model = Listening(act(("send", {"to": "ann"})))
    _, view, events = await run(model, *hooks)
    assert [(one.point, one.turn) for one in heard] == [
        ("before_run", 0),
        ("before_turn", 0),
        ("before_action", 1),
        ("after_action", 1),
        ("before_turn", 1),
        ("after_run", 2),
    ]
    assert (heard[0].message, heard[0].user, heard[0].agent) == ("Write.", "ann", "clerk")
    assert (heard[2].action, heard[2].params) == ("send", {"to": "ann"})
    assert (heard[3].ok, heard[3].result) == (True, "sent to ann, key sk-live-123")
    assert (heard[5].status, heard[5].message) == ("completed", "Done.")
    assert view.state.status == "completed"
    assert decided(events) == []


async def test_context_reaches_the_model_with_the_next_prompt_and_not_the_stable_part() -> None:
    @before_run
    async def house(call: HookCall) -> HookAnswer:
        return add_context(f"The house rules of {call.user}.")

    @before_turn
    def clock(call: HookCall) -> HookAnswer:
        return add_context(f"Clock after turn {call.turn}.")

    @after_action
    async def check(call: HookCall) -> HookAnswer:
        return add_context(f"{call.action} was looked at.")

    model = Listening(act(("send", {"to": "ann"})))
    _, _, events = await run(model, house, clock, check)
    assert "The house rules of ann." in model.text(0)
    assert "Clock after turn 0." in model.text(0)
    assert "Clock after turn 1." in model.text(1)
    assert "send was looked at." in model.text(1)
    assert model.asked[0].system == model.asked[1].system
    first, second = model.asked
    assert list(second.messages[: len(first.messages) - 1]) == list(first.messages[:-1])
    assert decided(events)[0] == ("house", "before_run", "context")


async def test_a_call_is_refused_before_it_is_made_and_the_model_is_told_why() -> None:
    SENT.clear()

    @before_action(actions=["send"])
    async def only_ann(call: HookCall) -> HookAnswer | None:
        return None if call.params["to"] == "ann" else deny("Letters go to ann only.")

    model = Listening(act(("send", {"to": "bob"}), ("send", {"to": "ann"})))
    _, view, events = await run(model, only_ann)
    assert SENT == ["ann"]
    assert "Letters go to ann only." in model.text()
    assert decided(events) == [("only_ann", "before_action", "deny")]
    [refused] = [one for one in events if one["type"] == "action.rejected"]
    assert (refused["data"]["code"], refused["decidedBy"]) == ("denied", "policy")
    assert view.state.calls == {"send": 1}, "a refused call is none"
    made = [one for chapter in explain(events).chapters for one in chapter.decisions]
    assert [one.decision for one in made if one.seat == "B10"] == [
        "hook only_ann (before_action): it refused the call"
    ]


async def test_changed_parameters_are_checked_and_are_what_a_person_is_shown() -> None:
    @before_action(actions=["mail"])
    async def home(call: HookCall) -> HookAnswer:
        return change_params({"to": f"{call.params['to']}@example.org"})

    @before_action(actions=["send"])
    async def wrong(call: HookCall) -> HookAnswer:
        del call
        return change_params({"to": 5, "more": 1})

    model = Listening(act(("mail", {"to": "ann"}), ("send", {"to": "x"})))
    agent = Agent("clerk", model=model, actions=[send, mail])
    async with App(agents=[agent], hooks=[home, wrong]) as app:
        view = await app.wait((await app.start("clerk", "Write.")).id)
        [asked] = (await app.requests())[0]
        assert asked.body["subject"]["params"] == {"to": "ann@example.org"}
        await app.answer(asked.id, decision="approve")
        view = await app.wait(view.id)
        assert "mailed ann@example.org" in model.text()
        assert "they do not fit" in model.text()


async def test_a_result_is_replaced_before_it_is_stored_anywhere(tmp_path: Path) -> None:
    @after_action(actions=["fetch"])
    def mask(call: HookCall) -> HookAnswer:
        return replace_result(call.result.replace("secret", "******"))

    model = Listening(act(("fetch", {})))
    db = tmp_path / "runs.db"
    _, view, events = await run(model, mask, store=f"sqlite:///{db}")
    assert decided(events) == [("mask", "after_action", "result")]
    assert "top ******" in model.text()
    assert view.state.artifacts, "it was long enough to be stored apart"
    raw = b"".join(one.read_bytes() for one in tmp_path.iterdir())
    assert b"top secret" not in raw


async def test_a_failed_call_may_be_given_a_result() -> None:
    @action(effects="read")
    async def look() -> str:
        """Look."""
        raise ActionError("closed")

    @after_action
    async def calm(call: HookCall) -> HookAnswer | None:
        return replace_result({"closed": True}) if not call.ok else None

    model = Listening(act(("look", {})))
    async with App(agents=[Agent("a", model=model, actions=[look])], hooks=[calm]) as app:
        await app.wait((await app.start("a", "Go.")).id)
    assert '"ok":true,"result":{"closed":true}' in model.text()


@pytest.mark.parametrize("point", [before_run, before_turn, before_action, after_action])
async def test_a_run_is_stopped_with_the_reason(point: Any) -> None:
    told: list[HookCall] = []

    @point
    async def no(call: HookCall) -> HookAnswer:
        del call
        return stop("Closed on Sundays.")

    @after_run
    async def end(call: HookCall) -> None:
        told.append(call)

    _, view, events = await run(Listening(act(("send", {"to": "ann"}))), no, end)
    assert (view.state.status, view.state.result.reason) == ("failed", "hook")
    assert view.state.result.message == "Closed on Sundays."
    assert [(one.status, one.reason) for one in told] == [("failed", "hook")]
    assert events[-2]["type"] == "run.failed" or events[-1]["type"] == "run.failed"


async def test_hooks_stand_around_every_call_of_a_loop_and_a_pipeline_and_in_sub_agents() -> None:
    SENT.clear()
    seen: list[tuple[str, Any]] = []

    @before_action
    async def twos(call: HookCall) -> HookAnswer | None:
        seen.append((call.agent, call.params.get("to")))
        return deny("No twos.") if call.params.get("to") == "2" else None

    each = {
        "collectionPath": "rows",
        "continueOnError": True,
        "action": {"name": "send", "params": {"to": "{{ item }}"}},
    }
    pipe = {"steps": [{"tool": "send", "with": {"to": "2"}}]}
    child = Agent("child", model=Listening(act(("send", {"to": "2"}))), actions=[send])
    model = Listening(
        {"taskComplete": False, "nextStep": {"type": "ForEach", "forEach": each}},
        {"taskComplete": False, "nextStep": {"type": "Pipeline", "pipeline": pipe}},
        {
            "taskComplete": False,
            "nextStep": {"type": "Sub-Agent", "subAgents": [{"name": "child", "message": "Go."}]},
        },
    )
    agent = Agent("clerk", model=model, actions=[send], agents=[child])
    async with App(agents=[agent], hooks=[twos]) as app:
        payload = {"rows": ["1", "2", "3"]}
        view = await app.wait((await app.start("clerk", "Go.", payload=payload)).id)
        assert view.state.status == "completed", view.state.result
    assert sorted(SENT) == ["1", "3"]
    assert [one for one in seen if one[0] == "child"] == [("child", "2")]
    assert model.text().count("No twos.") >= 2


async def test_several_hooks_are_asked_in_order_and_a_refusal_is_the_last_word() -> None:
    asked: list[str] = []

    def named(name: str, says: HookAnswer | None) -> Any:
        def function(call: HookCall) -> HookAnswer | None:
            asked.append(f"{name}:{call.params['to']}")
            return says

        return before_action(name=name)(function)

    first = named("first", change_params({"to": "b"}) & add_context("Changed."))
    model = Listening(act(("send", {"to": "a"})))
    agent = Agent("clerk", model=model, actions=[send], hooks=[named("own", None)])
    async with App(agents=[agent], hooks=[first, named("second", deny("No."))]) as app:
        await app.wait((await app.start("clerk", "Go.")).id)
    assert asked == ["first:a", "second:b"]
    assert "Changed." in model.text()
