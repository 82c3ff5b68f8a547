"""Known weaknesses of loop agents, by the numbers under which the project keeps them, each held off by a test."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import pytest

from loopagent import Agent, App, action
from loopagent.core.agent_spec import Limits
from loopagent.core.effects import CallModel, RunAction
from loopagent.core.events import CancelRequested, Settled
from loopagent.core.outcome import Outcome
from loopagent.errors import ActionError, RequestError
from loopagent.models.scripted import ScriptedModel
from tests.core.play import Play, act, agent, pending


pytestmark = pytest.mark.anyio


def app(script: list[Any], *actions: Any, **options: Any) -> App:
    return App(agents=[Agent("tester", model=ScriptedModel(script), actions=actions, **options)])


def test_fix_1_a_refused_reply_changes_nothing() -> None:
    reply = act(("nothing", {}))
    reply["payloadChangeRequest"] = {"newElements": {"a": 1}}
    reply["scratchpad"] = {"notes": "I was here."}
    play = Play().reply(reply)
    assert play.state.payload == {}
    assert play.state.scratchpad.notes == ""
    assert play.state.counters.refusals == 1


def test_fix_7_calls_beyond_the_limit_wait_for_room() -> None:
    play = Play(agent(limits=Limits(max_concurrency=3)))
    play.reply(act(*[("work", {"item": one}) for one in range(8)]))
    assert pending(play, RunAction) == ["action.0", "action.1", "action.2"]
    play.settle("action.1", "x")
    assert pending(play, RunAction) == ["action.0", "action.2", "action.3"]


def test_fix_9_after_a_cancel_no_model_is_asked() -> None:
    play = Play().reply(act(("work", {"item": 1}), ("work", {"item": 2})))
    play.settle("action.0", "done")
    play.give(CancelRequested(9.0, "stop", "human"))
    assert play.state.status == "cancelled"
    assert not any(isinstance(one, CallModel) for one in play.effects)
    late = play.give(Settled("1:action.1", Outcome.done("late"), 10.0))
    assert late.effects == []
    assert late.state.turn == 1


def bad(messages: Any) -> list[str]:
    """Which of the bad replies are among the messages."""
    own = [one.text for one in messages if one.role == "assistant"]
    return [name for text in own for name in re.findall(r"Bad\d", text)]


async def test_fix_20_only_the_latest_of_repeated_refusals_is_shown() -> None:
    wrong = [{"taskComplete": False, "nextStep": {"type": f"Bad{number}"}} for number in range(5)]
    script = [*wrong[:3], {"taskComplete": False}, *wrong[3:]]
    model = ScriptedModel([*script, {"taskComplete": True, "message": "Done."}])
    clerk = Agent("tester", model=model, limits=Limits(max_refusals_in_a_row=9, max_mistakes=0))
    async with App(agents=[clerk]) as running:
        run = await running.start("tester", "Go.")
        view = await running.wait(run.id, timeout_seconds=20)
        said = await running.store.transcript(run.id)
        fourth, last = (model.requests[at].messages for at in (3, 6))
    assert view.state.status == "completed"
    assert sum("took effect" in one.text for one in fourth) == 1
    assert bad(fourth) == ["Bad2"]
    assert sum("took effect" in one.text for one in last) == 2  # a row of three, and a row of two
    assert bad(last) == ["Bad2", "Bad4"]
    assert sum("took effect" in one.text for one in said) == 5  # nothing is lost


async def test_fix_20_cut_off_replies_are_told_of_once() -> None:
    cut = {"raw": '{"taskComplete": fal', "finishReason": "length"}
    model = ScriptedModel([cut, cut, {"taskComplete": True, "message": "Done."}])
    async with App(agents=[Agent("tester", model=model)]) as running:
        run = await running.start("tester", "Go.")
        view = await running.wait(run.id, timeout_seconds=20)
    assert view.state.status == "completed"
    assert sum("was cut off" in one.text for one in model.requests[2].messages) == 1


async def test_fix_21_neither_the_payload_nor_what_a_child_says_fills_the_prompt() -> None:
    rows = [{"id": at, "text": "x" * 20} for at in range(5_000)]
    wanted = {"path": "$.rows[4711].id"}
    look = {"artifactId": "payload", "tool": "json_path", "input": wanted}
    said = {"taskComplete": True, "message": "m" * 50_000}
    script: list[dict[str, Any]] = [
        {"nextStep": {"type": "Sub-Agent", "subAgent": {"name": "kid", "message": "Talk."}}},
        {"artifactToolCalls": [look]},
        {"taskComplete": True, "message": "Done."},
    ]
    model = ScriptedModel([{"taskComplete": False, **one} for one in script])
    kid = Agent("kid", model=ScriptedModel([said]))
    async with App(agents=[Agent("tester", model=model, agents=[kid])]) as host:
        run = await host.start("tester", "Go.", payload={"rows": rows})
        view = await host.wait(run.id, timeout_seconds=60)
    assert view.state.status == "completed"
    assert view.state.payload == {"rows": rows}
    assert max(len(one.text) for put in model.requests for one in put.messages) < 10_000
    entry = json.loads(model.requests[1].messages[-2].text)["results"][0]
    assert entry["result"]["chars"] == 50_000
    found = json.loads(model.requests[2].messages[-2].text)["artifactToolCalls"][0]
    assert found["ok"]
    assert 4711 in found["result"].values() or [4711] in found["result"].values()


async def test_fix_34_a_run_that_fails_at_once_leaves_a_trace() -> None:
    broken: list[Any] = [{"error": {"kind": "auth", "message": "no key"}}]
    async with app(broken) as host:
        run = await host.start("tester", "go")
        view = await host.wait(run.id, timeout_seconds=60)
        events = [one["type"] for one in await host.store.events(run.id)]
    assert view.state.status == "failed"
    assert events[0] == "run.created"
    assert events[-1] == "run.failed"


async def test_fix_35_nothing_a_caller_or_an_action_holds_is_shared() -> None:
    @action(effects="read")
    async def change(rows: list[int]) -> str:
        rows.append(99)
        return "changed"

    asked = {"type": "Actions", "actions": [{"name": "change", "params": {"rows": [1]}}]}
    script: list[Any] = [
        {
            "taskComplete": False,
            "nextStep": asked,
            "payloadChangeRequest": {"newElements": {"n": 1}},
        },
        {"taskComplete": True, "message": "done"},
    ]
    mine: dict[str, Any] = {"list": [1, 2]}
    async with app(script, change) as host:
        run = await host.start("tester", "go", payload=mine)
        view = await host.wait(run.id, timeout_seconds=60)
        events = await host.store.events(run.id)
    assert mine == {"list": [1, 2]}
    assert view.state.payload == {"list": [1, 2], "n": 1}
    (started,) = [one["data"] for one in events if one["type"] == "action.started"]
    assert started["params"] == {"rows": [1]}


def test_fix_39_a_scratchpad_over_its_limit_is_refused_with_the_reason() -> None:
    play = Play(agent(limits=Limits(max_scratchpad_chars=100)))
    play.reply({**act(("work", {"item": 1})), "scratchpad": {"notes": "x" * 101}})
    assert play.state.scratchpad.notes == ""
    assert "scratchpad" in play.said
    assert not pending(play, RunAction)


def test_fix_40_keys_of_data_are_left_as_they_are() -> None:
    data = {"price?": 1, "total*": 2, "note: string": 3, "list[1+]": 4}
    reply = {**act(("work", {"item": 1})), "payloadChangeRequest": {"newElements": data}}
    play = Play().reply(
        {f"{key}?" if key == "taskComplete" else key: one for key, one in reply.items()}
    )
    assert play.state.payload == data


async def test_fix_43_two_answers_resume_a_run_once() -> None:
    @action(effects="external")
    async def send() -> str:
        return "sent"

    script: list[Any] = [
        {"taskComplete": False, "nextStep": {"type": "Actions", "actions": [{"name": "send"}]}},
        {"taskComplete": True, "message": "done"},
    ]
    async with app(script, send) as host:
        run = await host.start("tester", "go")
        await host.wait(run.id, timeout_seconds=60)
        (request,), _ = await host.requests()
        answers = await asyncio.gather(
            *[host.answer(request.id, decision="approve", by=f"p{one}") for one in range(4)],
            return_exceptions=True,
        )
        await host.wait(run.id, timeout_seconds=60)
        events = [one["type"] for one in await host.store.events(run.id)]
    refused = [one for one in answers if isinstance(one, RequestError)]
    assert [one.code for one in refused] == ["already_resolved"] * 3
    assert events.count("action.started") == 1


async def test_fix_45_the_log_has_a_call_before_it_is_made() -> None:
    seen: list[str] = []

    @action(effects="write", approval="auto")
    async def charge() -> str:
        (row,), _ = await host.runs()
        seen.extend(one["type"] for one in await host.store.events(row.id))
        log = await host.store.log(row.id)
        seen.extend(event.kind for entry in log for event in entry.events)
        return "charged"

    script: list[Any] = [
        {"taskComplete": False, "nextStep": {"type": "Actions", "actions": [{"name": "charge"}]}},
        {"taskComplete": True, "message": "done"},
    ]
    async with app(script, charge) as host:
        run = await host.start("tester", "go")
        await host.wait(run.id, timeout_seconds=60)
    assert "action.started" in seen
    assert "reported" in seen, "it is journaled as started, so that it never silently runs twice"
    assert "action.completed" not in seen


async def test_fix_47_words_do_not_make_a_failure_fatal() -> None:
    @action(effects="read")
    async def wordy(item: int) -> str:
        raise ValueError(f"401 unauthorized: invalid api key {item}")

    @action(effects="read")
    async def typed(item: int) -> str:
        raise ActionError(f"closed {item}", code="no_key", fatal=True)

    def calls(name: str, item: int) -> dict[str, Any]:
        one = {"name": name, "params": {"item": item}}
        return {"taskComplete": False, "nextStep": {"type": "Actions", "actions": [one]}}

    script: list[Any] = [
        calls("wordy", 1),
        calls("wordy", 2),
        calls("typed", 1),
        calls("typed", 2),
        {"taskComplete": True, "message": "done"},
    ]
    async with app(script, wordy, typed, limits=Limits(max_mistakes=0)) as host:
        run = await host.start("tester", "go")
        await host.wait(run.id, timeout_seconds=60)
        events = await host.store.events(run.id)
    ends = [
        (one["type"], one["data"]["action"])
        for one in events
        if one["type"] in {"action.completed", "action.rejected"}
    ]
    assert ends == [
        ("action.completed", "wordy"),
        ("action.completed", "wordy"),
        ("action.completed", "typed"),
        ("action.rejected", "typed"),
    ]
