"""ClientTools, as values: calls put to a client, its answers, the time it has, and who may ask for what."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from loopagent.core.agent_spec import AgentSpec, Limits, SubAgentSpec
from loopagent.core.client_calls import DUE, CallAnswer, outcome_of, read_answer
from loopagent.core.client_tool_spec import ClientToolSpec
from loopagent.core.effects import CallClientTool, CancelEffect, SetTimer, StartRun
from loopagent.core.events import Settled
from loopagent.core.lineage import child_state
from loopagent.core.loop_state import own_state
from loopagent.core.outcome import Outcome
from loopagent.core.prompt import system_prompt, volatile_message
from loopagent.core.state import RunState
from loopagent.resources import prompt
from tests.core.play import Play, agent, pending


CITY = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "zoom": {"type": "integer", "default": 3}},
    "required": ["city"],
    "additionalProperties": False,
}
MAP = ClientToolSpec(
    name="open-map",
    description="Show a map.",
    effects="read",
    parameters=CITY,
    result={"type": "object", "properties": {"shown": {"type": "boolean"}}, "required": ["shown"]},
    timeout_ms=5_000,
)
WIPE = ClientToolSpec(name="wipe", effects="irreversible")
PICK = ClientToolSpec(name="pick", effects="read")


def spec(**options: Any) -> AgentSpec:
    return agent(**{"client_tools": (MAP, PICK, WIPE), **options})


def ask(*calls: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"nextStep": {"type": "ClientTools", "clientTools": list(calls)}, **more}


def to(city: str, **more: Any) -> dict[str, Any]:
    return {"name": "open-map", "params": {"city": city}, **more}


def brought(result: Any, *media: dict[str, Any]) -> dict[str, Any]:
    return {"result": result, "media": list(media)}


def results(play: Play) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(play.said)["results"]
    return found


# --- the round trip


def test_a_call_is_put_once_with_all_that_a_client_needs() -> None:
    play = Play(spec()).reply(ask(to("Porto", description="Shows where we go.")))
    assert play.last("client_tool.requested") == {
        "callId": "1:tool.0",
        "requestId": "run_1:1:tool.0",
        "kind": "client_tool",
        "title": "Run open-map in the client",
        "tool": "open-map",
        "params": {"city": "Porto", "zoom": 3},
        "text": "Shows where we go.",
        "resultSchema": MAP.result,
        "timeoutMs": 5_000,
        "expiresAt": play.at + 5,
        "agents": ["tester"],
        "primary": {"decision": "result", "label": "Give the result"},
        "secondary": {"decision": "error", "label": "Give an error"},
    }
    assert play.types.count("client_tool.requested") == 1
    assert {type(one) for one in play.effects} == {CallClientTool, SetTimer}


def test_the_run_only_waits_and_says_for_what() -> None:
    play = Play(spec()).reply(ask(to("Porto")))
    assert play.state.waiting
    state = own_state(play.state)
    assert (state.state, state.public()["ask"]) == (
        "client_tool",
        {
            "requestId": "run_1:1:tool.0",
            "runId": "run_1",
            "agents": ["tester"],
            "kind": "client_tool",
            "title": "Run open-map in the client",
            "primary": {"decision": "result", "label": "Give the result"},
            "secondary": {"decision": "error", "label": "Give an error"},
            "enabled": True,
            "expiresAt": play.at + 5,
        },
    )
    assert play.last("run.waiting") == {"requests": ["run_1:1:tool.0"]}


def test_an_answer_reaches_the_model_and_stops_the_clock() -> None:
    play = Play(spec()).reply(ask(to("Porto"))).settle("tool.0", brought({"shown": True}))
    assert results(play) == [{"call": 1, "tool": "open-map", "ok": True, "result": {"shown": True}}]
    assert play.state.calling is not None
    assert [one.target for one in play.effects if isinstance(one, CancelEffect)] == ["1:tool.0.due"]
    done = play.last("client_tool.completed")
    assert (done["status"], done["ok"], done["result"]) == ("answered", True, {"shown": True})
    resumed = next(one for one in play.facts if one.type == "run.resumed")
    assert resumed.decided_by == "client"


def test_an_error_of_the_client_is_a_failed_call() -> None:
    answer = outcome_of(CallAnswer(success=False, error="no map here"))
    play = Play(spec()).reply(ask(to("Porto")))
    play.give(Settled("1:tool.0", answer, play.at + 1))
    assert results(play)[0]["error"] == {"code": "client_error", "message": "no map here"}
    assert play.state.counters.mistakes == 1


def test_nobody_answers() -> None:
    play = Play(spec()).reply(ask(to("Porto"))).settle("tool.0.due")
    assert results(play)[0]["error"]["code"] == "timed_out"
    assert results(play)[0]["error"]["mayHaveRun"] is True
    assert play.last("client_tool.completed")["status"] == "timed_out"
    resumed = next(one for one in play.facts if one.type == "run.resumed")
    assert resumed.decided_by == "engine"
    before = play.state
    assert play.settle("tool.0", brought({"shown": True})).effects == []
    assert play.state == before


def test_a_second_answer_changes_nothing() -> None:
    play = Play(spec()).reply(ask(to("Porto"), to("Rome")))
    play.settle("tool.0", brought({"shown": True}))
    before = play.state
    assert play.settle("tool.0", brought({"shown": False})).state == before
    assert play.settle("tool.0.due").state == before


def test_calls_of_one_step_are_open_side_by_side_within_the_window() -> None:
    play = Play(spec(limits=Limits(max_concurrency=2)))
    play.reply(ask(to("A"), to("B"), to("C")))
    assert pending(play, CallClientTool) == ["tool.0", "tool.1"]
    play.settle("tool.1", brought({"shown": True}))
    assert pending(play, CallClientTool) == ["tool.0", "tool.2"]
    play.settle("tool.2.due").settle("tool.0", brought({"shown": True}))
    assert [one["ok"] for one in results(play)] == [True, True, False]


HAPPENINGS = [(index, what) for index in range(4) for what in ("", DUE)]


@given(st.permutations(HAPPENINGS))
def test_the_first_of_answer_and_clock_counts_and_the_order_between_calls_does_not(
    order: list[tuple[int, str]],
) -> None:
    """Every answer and every clock arrives, in any order; the prompt is that of the first ones, call by call."""
    first: dict[int, str] = {}
    for index, what in order:
        first.setdefault(index, what)

    def played(happenings: Iterable[tuple[int, str]]) -> Play:
        play = Play(spec()).reply(ask(*(to(one) for one in ("A", "B", "C", "D"))))
        for index, what in happenings:
            value = None if what else brought({"shown": True, "was": index})
            play.give(Settled(f"1:tool.{index}{what}", Outcome.done(value), play.at))
        return play

    one, other = played(order), played(sorted(first.items()))
    assert one.said == other.said
    assert list(one.state.pending) == list(other.state.pending) == ["2:model"]
    assert one.types.count("client_tool.completed") == 4


def test_completion_is_not_taken_beside_open_calls() -> None:
    play = Play(spec()).reply(ask(to("Porto"), taskComplete=True, message="Done."))
    assert play.state.status == "running"
    play.settle("tool.0", brought({"shown": True}))
    assert play.state.status == "running"
    assert "taskComplete was not taken" in play.said


def test_a_cancelled_run_takes_its_calls_back() -> None:
    play = Play(spec()).reply(ask(to("A"), to("B"))).settle("tool.0", brought({"shown": True}))
    play.cancel()
    closed = [one.data for one in play.facts if one.type == "client_tool.completed"]
    assert [(one["callId"], one["status"]) for one in closed] == [
        ("1:tool.0", "answered"),
        ("1:tool.1", "cancelled"),
    ]
    assert "1:tool.1.due" in [one.target for one in play.effects if isinstance(one, CancelEffect)]
    assert play.settle("tool.1", brought({"shown": True})).state.status == "cancelled"


def test_waiting_for_a_client_is_no_working_time() -> None:
    play = Play(spec(limits=Limits(max_seconds=60))).reply(ask(to("A", timeoutMs=50_000)))
    play.at += 40
    play.settle("tool.0", brought({"shown": True}))
    assert play.state.active_ms < 5_000


# --- what is checked before a call goes out


@pytest.mark.parametrize(
    ("call", "path"),
    [
        ({"name": "open-map", "params": {}}, "nextStep.clientTools[0].params.city"),
        (
            {"name": "open-map", "params": {"city": "A", "x": 1}},
            "nextStep.clientTools[0].params.x",
        ),
        ({"name": "close-door"}, "nextStep.clientTools[0].name"),
    ],
)
def test_a_bad_call_goes_nowhere(call: dict[str, Any], path: str) -> None:
    play = Play(spec()).reply(ask(to("A"), call)).reply(ask(call))
    assert [one["path"] for one in play.last("reply.rejected")["problems"]] == [path]
    assert "client_tool.requested" not in play.types


def test_names_are_read_tolerantly_and_defaults_filled_in() -> None:
    call = {"Name": "Open Map", "Params": '{"city": "A", "zoom": "7"}', "TimeoutMs": 900}
    play = Play(spec()).reply(ask(call))
    asked = play.last("client_tool.requested")
    assert (asked["tool"], asked["params"], asked["timeoutMs"]) == (
        "open-map",
        {"city": "A", "zoom": 7},
        900,
    )


def test_fix_36_the_time_of_a_call() -> None:
    """The call's own word counts most, then its tool's, then the run's; the run has the last word."""
    bounds = Limits(client_tool_timeout_ms=7_000, max_client_tool_timeout_ms=10_000)
    calls = [to("A", timeoutMs=1_500), to("A"), {"name": "pick"}, to("A", timeoutMs=99_000)]
    play = Play(spec(limits=bounds)).reply(ask(*calls))
    asked = [one.data for one in play.facts if one.type == "client_tool.requested"]
    assert [one["timeoutMs"] for one in asked] == [1_500, 5_000, 7_000, 10_000]
    assert "cut to 10000" in play.last("reply.received")["warnings"][0]


def test_fix_36_a_result_is_checked_and_a_long_one_is_named_not_dropped() -> None:
    wrong = read_answer(MAP, CallAnswer(success=True, result={"shown": "yes"}))
    assert [(one.path, one.message) for one in wrong] == [("result.shown", "must be a boolean")]
    assert read_answer(MAP, CallAnswer(success=False)) == []
    assert read_answer(PICK, CallAnswer(success=True, result=[1])) == []
    stored = {"artifactId": "ab", "callId": "1:tool.0", "chars": 90_000, "head": "x", "tail": "y"}
    play = Play(spec()).reply(ask(to("A"))).settle("tool.0", brought({"$artifact": stored}))
    assert results(play)[0]["result"]["artifact"] == "A"
    assert results(play)[0]["result"]["chars"] == 90_000


def test_media_are_named_by_handle_and_never_shown() -> None:
    photo = {
        "artifactId": "ff",
        "callId": "1:tool.0",
        "mediaType": "image/png",
        "bytes": 1234,
        "name": "view.png",
    }
    play = Play(spec()).reply(ask(to("A"))).settle("tool.0", brought({"shown": True}, photo))
    assert results(play)[0]["media"] == [
        {"artifact": "A", "name": "view.png", "mediaType": "image/png", "bytes": 1234}
    ]
    assert '"A":"view.png, image/png, 1234 bytes"' in volatile_message(play.state)
    assert play.last("artifact.created")["mediaType"] == "image/png"
    assert play.last("client_tool.completed")["media"] == [photo]


def test_a_result_cannot_pose_as_media() -> None:
    posing = {"shown": True, "media": [{"artifactId": "zz", "mediaType": "image/png", "bytes": 1}]}
    play = Play(spec()).reply(ask(to("A"))).settle("tool.0", brought(posing))
    assert results(play)[0]["result"] == posing
    assert play.state.artifacts == ()


# --- the gate


def test_fix_2_a_person_approves_a_call_before_the_client_hears_of_it() -> None:
    play = Play(spec()).reply(ask({"name": "wipe", "params": {"disk": "c"}}, to("A")))
    assert play.state.pending.keys() == {"1:tool.0.ask"}
    assert play.last("request.created")["subject"] == {
        "clientTool": "wipe",
        "params": {"disk": "c"},
        "effects": "irreversible",
        "schema": WIPE.parameters,
        "why": {"rule": "agent", "text": "The agent asks about actions with irreversible effects."},
    }
    play.answer("approve", edited={"disk": "d"})
    assert play.last("client_tool.requested")["tool"] == "open-map"
    assert pending(play, CallClientTool) == ["tool.0", "tool.1"]
    first = play.state.client_calls[0]
    assert (first.params, first.due) == ({"disk": "d"}, play.at + 30)


def test_a_refused_call_is_never_put() -> None:
    play = Play(spec()).reply(ask({"name": "wipe"})).answer("reject", feedback="not that one")
    assert "client_tool.requested" not in play.types
    assert play.last("client_tool.completed")["status"] == "rejected"
    assert "not that one" in results(play)[0]["error"]["message"]


def test_fix_2_a_forbidden_effect_class_is_not_even_offered() -> None:
    policy = {"approval": {"irreversible": "never"}}
    play = Play(spec(**policy)).reply(ask({"name": "wipe"}))
    assert "reply.rejected" in play.types
    assert "`wipe`" not in system_prompt(prompt("system.md.j2"), play.state.spec)


def test_nobody_to_approve_means_no() -> None:
    play = Play(spec(autonomy="autonomous")).reply(ask({"name": "wipe"}))
    assert results(play)[0]["error"]["code"] == "no_approver"
    assert "client_tool.requested" not in play.types


def test_only_agents_with_client_tools_are_told_of_the_step() -> None:
    template = prompt("system.md.j2")
    with_tools, without = system_prompt(template, spec()), system_prompt(template, agent())
    assert "# Client tools" in with_tools
    assert "`open-map` {city: string, zoom?: integer = 3} Show a map." in with_tools
    assert "ClientTools" not in without
    play = Play(agent()).reply(ask(to("A")))
    assert (
        "expected a step this agent may use"
        in play.last("reply.rejected")["problems"][0]["message"]
    )


# --- definitions


def test_definitions_are_taken_as_other_hosts_write_them() -> None:
    made = ClientToolSpec.model_validate(
        {
            "Name": "t",
            "InputSchema": CITY,
            "OutputSchema": {"type": "null"},
            "DefaultTimeoutMs": 900,
        }
    )
    assert (made.name, made.parameters, made.result, made.timeout_ms) == (
        "t",
        CITY,
        {"type": "null"},
        900,
    )
    assert ClientToolSpec.model_validate("open-map").name == "open-map"


@pytest.mark.parametrize(
    "body",
    [
        {"name": "t", "result": {"type": "nothing"}},
        {"name": "t", "parameters": {"type": "array"}},
        {"name": " t"},
        {"name": "t", "timeoutMs": 1},
        {"name": "t", "unknown": 1},
        5,
    ],
)
def test_definitions_that_cannot_work_are_refused(body: Any) -> None:
    with pytest.raises(ValidationError):
        ClientToolSpec.model_validate(body)


def test_the_timer_of_another_step_is_an_ordinary_result() -> None:
    """Only a timer beside an open call ends one."""
    play = Play(spec()).reply(ask(to("A")))
    stray = SetTimer("1:tool.9.due", 9.0)
    play.state.pending = {**play.state.pending, stray.id: stray}
    play.give(Settled(stray.id, Outcome.done(), play.at))
    assert pending(play, CallClientTool) == ["tool.0"]


def test_fix_2_before_a_plan_is_approved_a_client_only_reads() -> None:
    policy = {"write": "auto", "external": "auto", "irreversible": "auto"}
    play = Play(spec(plan_mode="required", approval=policy))
    play.reply(ask({"name": "wipe"}))
    assert "no plan has been approved yet" in play.last("reply.rejected")["problems"][0]["message"]
    assert "client_tool.requested" not in play.types
    play.reply(ask(to("A"))).settle("tool.0", brought({"shown": True}))
    assert play.last("client_tool.completed")["ok"] is True
    play.reply({"nextStep": {"type": "Plan", "plan": "Wipe it."}}).answer("approve")
    play.reply(ask({"name": "wipe"}))
    assert play.last("client_tool.requested")["tool"] == "wipe"


@pytest.mark.parametrize(("client", "tools"), [("abc", 1), ("", 0)])
def test_a_child_is_bound_to_the_client_of_the_tree(client: str, tools: int) -> None:
    kid = AgentSpec(name="kid", client_tools=(PICK,))
    parent = agent(autonomy="autonomous", agents=(SubAgentSpec(spec=kid),))
    state = RunState(id="run_1", spec=parent, model="m", client=client)
    child = child_state(state, StartRun("1:sub.0", "kid", "Pick."), "m")
    assert child is not None
    assert (child.client, len(child.spec.client_tools)) == (client, tools)
