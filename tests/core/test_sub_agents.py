"""Work given to sub-agents, in the core: what is asked for, what comes back, what it costs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopagent.core.action_spec import ActionSpec
from loopagent.core.agent_spec import AgentSpec, ApprovalPolicy, Limits, SubAgentSpec
from loopagent.core.child_messages import parent_context, task, with_parameters
from loopagent.core.effects import StartRun
from loopagent.core.events import Reported, Settled
from loopagent.core.lineage import child_id, child_spec, child_state, outcome_of
from loopagent.core.outcome import Outcome
from loopagent.core.prompt import volatile_message
from loopagent.core.spending import Spent
from loopagent.core.state import Message, RunState
from tests.core.play import Play, agent


def kid(name: str = "kid", *, terms: dict[str, Any] | None = None, **spec: Any) -> SubAgentSpec:
    """A sub-agent."""
    return SubAgentSpec(spec=AgentSpec(name=name, **spec), **(terms or {}))


def boss(*kids: SubAgentSpec, **more: Any) -> AgentSpec:
    """An agent with sub-agents."""
    return agent(agents=kids or (kid(), kid("other")), **more)


def give(*work: Any, **more: Any) -> dict[str, Any]:
    """A reply that gives work: names, or whole entries."""
    entries = [
        {"name": one, "message": f"Do it, {one}."} if isinstance(one, str) else one for one in work
    ]
    return {"taskComplete": False, "nextStep": {"type": "Sub-Agent", "subAgents": entries}, **more}


def ended(payload: Any = None, message: str = "Done.", **more: Any) -> dict[str, Any]:
    """What a child that has completed brings."""
    usage = {"modelCalls": 2, "inputTokens": 50, "outputTokens": 5, "costUsd": 0.5}
    body = {"runId": "run_1.1.sub.0", "status": "completed", "message": message, "usage": usage}
    return {
        **body,
        "turns": 2,
        "activeMs": 10.0,
        "payload": {} if payload is None else payload,
        **more,
    }


def fail(play: Play, key: str, reason: str = "limit") -> Play:
    """Settle work that failed."""
    value = {**ended(), "status": "failed"}
    del value["payload"]
    failed = Outcome.failed(reason, "It could not.").with_value(value)
    return play.give(Settled(f"{play.state.turn}:{key}", failed, play.at))


def work(play: Play) -> list[StartRun]:
    """Work under way."""
    return [one for one in play.state.pending.values() if isinstance(one, StartRun)]


def results(play: Play) -> list[dict[str, Any]]:
    """The last results message."""
    text = next(one.text for one in reversed(play.messages) if one.kind == "results")
    return list(json.loads(text)["results"])


def test_work_goes_out_with_its_part_of_the_payload() -> None:
    terms = {"downstream": ("case.id",), "scope": "/case"}
    play = Play(boss(kid(terms=terms)), payload={"case": {"id": 7, "secret": 1}})
    play.reply(give("Kid"))
    (effect,) = work(play)
    assert (effect.id, effect.agent, effect.payload) == ("1:sub.0", "kid", {"id": 7})
    assert play.last("subagent.started")["runId"] == child_id("run_1", "1:sub.0") == "run_1.1.sub.0"


def test_fix_30_message_status_usage_and_changes_reach_the_model() -> None:
    play = Play(boss(), payload={"a": 1}).reply(give("kid", "other"))
    play.settle("sub.1", ended({"a": 2}, "Second."))
    assert play.state.payload == {"a": 1}
    play.settle("sub.0", ended({"a": 3, "b": 1}, "First."))
    first, second = results(play)
    assert (first["message"], first["status"], first["ok"]) == ("First.", "completed", True)
    assert first["usage"] == {"turns": 2, "tokens": 55, "usd": 0.5}
    assert first["payload"] == {"changed": ["a", "b"]}
    assert second["payload"] == {"conflicts": ["a (changed by call 1, kid as well)"]}
    assert play.state.payload == {"a": 3, "b": 1}
    changed = play.last("payload.changed")
    assert changed["patch"][0]["op"] == "replace"
    assert changed["refused"] == ["call 2, other: a (changed by call 1, kid as well)"]


def test_fix_16_refused_writes_reach_the_model() -> None:
    play = Play(boss(kid(terms={"upstream": ("b",)})), payload={"a": 1}).reply(give("kid"))
    play.settle("sub.0", ended({"a": 2, "b": 1}))
    assert results(play)[0]["payload"]["refused"] == ["a (update is not permitted)"]
    assert play.state.payload == {"a": 1, "b": 1}


def test_a_failed_child_merges_nothing_and_is_no_success() -> None:
    play = Play(boss(), payload={"a": 1}).reply(give("kid"))
    fail(play, "sub.0")
    (entry,) = results(play)
    assert (entry["ok"], entry["status"], entry["error"]["code"]) == (False, "failed", "limit")
    assert play.state.payload == {"a": 1}
    assert play.state.counters.mistakes == 1


def test_fix_11_what_children_cost_is_counted() -> None:
    play = Play(boss()).reply(give("kid", "other"))
    play.settle("sub.0", ended())
    fail(play, "sub.1")
    assert play.state.usage.input_tokens == 100 + 50 + 50
    assert play.state.usage.cost_usd == 1.0
    assert play.state.below == Spent(4, 110, 1.0)


@pytest.mark.parametrize("limits", [{"max_turns": 5}, {"max_tokens": 200}, {"max_cost_usd": 0.9}])
def test_fix_10_children_draw_from_the_same_budget(limits: dict[str, Any]) -> None:
    play = Play(boss(limits=Limits(**limits))).reply(give("kid", "other"))
    play.settle("sub.0", ended()).settle("sub.1", ended())
    assert play.state.status == "failed"
    assert play.last("run.failed")["reason"] == "limit"


def test_a_child_counts_what_the_runs_above_it_spend() -> None:
    parent = Play(boss(limits=Limits(max_turns=4))).reply(give("kid"))
    child = child_state(parent.state, work(parent)[0], "scripted")
    assert child is not None
    assert child.ancestors[0].spent == Spent(1, 110, 0.0)
    play = Play(child.spec)
    play.state.ancestors = child.ancestors
    assert json.loads(volatile_message(play.state).removeprefix("State: "))["left"]["turns"] == 2
    play.give(Reported("spent", {"spent": [[3, 400, 0.0]]}, play.at))
    play.reply({"taskComplete": False, "nextStep": {"type": "Retry"}})
    assert play.last("guard.limit") == {"limit": "maxTurns", "value": 4.0, "maximum": 4.0}


def test_fix_33_depth_ends_and_the_deadline_is_inherited() -> None:
    tree = boss(kid(agents=(kid("grandchild"),)), limits=Limits(max_depth=1, max_seconds=100.0))
    play = Play(tree).reply(give("kid"))
    play.state.active_ms = 40_000.0
    child = child_state(play.state, work(play)[0], "scripted")
    assert child is not None
    assert child.ancestors[0].seconds == 60.0
    assert child.spec.limits.max_depth == 0
    deep = Play(child.spec).reply(give("grandchild"))
    assert "reply.rejected" in deep.types


def test_circles_are_refused_with_the_path() -> None:
    play = Play(boss()).reply(give("tester"))
    (problem,) = play.last("reply.rejected")["problems"]
    assert "in a circle (tester \u203a tester)" in problem["message"]
    tree = boss(kid(agents=(kid("tester"),)))
    parent = Play(tree).reply(give("kid"))
    child = child_state(parent.state, work(parent)[0], "scripted")
    assert child is not None
    assert child.spec.agents == ()


def test_unknown_names_list_what_there_is() -> None:
    play = Play(boss()).reply(give("nobody", "kidd"))
    said = [one["message"] for one in play.last("reply.rejected")["problems"]]
    assert "available: kid, other" in said[0]
    assert "did you mean kid?" in said[1]


def test_fix_5_a_batch_is_counted_as_a_whole() -> None:
    play = Play(boss(kid(terms={"max_calls": 2})))
    play.reply(give("kid", "kid", "kid"))
    assert "may be given work 2 more time(s)" in str(play.last("reply.rejected")["problems"])
    play.reply(give("kid", "kid"))
    assert len(work(play)) == 2


def test_a_window_keeps_to_the_concurrency() -> None:
    play = Play(boss(limits=Limits(max_concurrency=2))).reply(give("kid", "other", "kid"))
    assert [one.id for one in work(play)] == ["1:sub.0", "1:sub.1"]
    play.settle("sub.1", ended())
    assert [one.id for one in work(play)] == ["1:sub.0", "1:sub.2"]


def test_fix_32_terminate_after_ends_on_success_only() -> None:
    last = {"name": "kid", "message": "Finish.", "terminateAfter": True}
    play = Play(boss()).reply(give(last))
    play.settle("sub.0", ended({"a": 1}, "All is said."))
    assert (play.state.status, play.last("run.task_complete")["message"]) == (
        "completed",
        "All is said.",
    )
    assert play.state.payload == {"a": 1}
    failing = Play(boss()).reply(give(last))
    fail(failing, "sub.0")
    assert failing.state.status == "running"
    assert failing.state.calling is not None


def test_terminate_after_does_not_get_round_the_completion_policy() -> None:
    schema = {"schema": {"type": "object", "required": ["total"]}}
    play = Play(boss(payload=schema)).reply(
        give({"name": "kid", "message": "x", "terminateAfter": True})
    )
    play.settle("sub.0", ended({"a": 1}))
    assert play.state.status == "running"
    assert "total" in play.said


def test_a_missing_scope_fails_that_work_only() -> None:
    play = Play(boss(kid(terms={"scope": "/case"}), kid("other")), payload={"a": 1})
    play.reply(give("kid", "other"))
    play.settle("sub.1", ended({"a": 2}))
    first, second = results(play)
    assert first["error"]["code"] == "no_payload"
    assert (second["ok"], play.state.payload) == (True, {"a": 2})


def test_a_child_without_a_part_starts_with_its_own_payload() -> None:
    terms = {"downstream": (), "upstream": ("answer:add,update",)}
    play = Play(
        boss(kid(terms=terms, payload={"initial": {"answer": None}})), payload={"answer": 1}
    )
    play.reply(give("kid"))
    assert work(play)[0].payload == {"answer": None}
    play.settle("sub.0", ended({"answer": 42}))
    assert play.state.payload == {"answer": 42}


PARAMETERS = {
    "type": "object",
    "properties": {"topic": {"type": "string"}, "depth": {"type": "integer", "default": 2}},
    "required": ["topic"],
}


def test_template_parameters_are_checked_and_filled_in() -> None:
    tree = boss(kid(parameters=PARAMETERS, instructions="Write about {{ topic }}, {{ other }}."))
    play = Play(tree).reply(give("kid"))
    assert "topic" in str(play.last("reply.rejected")["problems"])
    call = {"name": "kid", "message": "Go.", "templateParameters": {"topic": "{{ depth }}"}}
    play.reply(give(call))
    (effect,) = work(play)
    assert effect.template_parameters == {"topic": "{{ depth }}", "depth": 2}
    assert effect.message == 'Go.\n\nParameters: {"depth":2}'
    child = child_state(play.state, effect, "scripted")
    assert child is not None
    assert child.spec.instructions == "Write about {{ depth }}, {{ other }}."


@pytest.mark.parametrize("given_", [{"topic": "x", "more": 1}, {"topic": 1, "depth": "many"}])
def test_parameters_that_are_not_declared_or_do_not_fit(given_: dict[str, Any]) -> None:
    call = {"name": "kid", "message": "Go.", "templateParameters": given_}
    assert "reply.rejected" in Play(boss(kid(parameters=PARAMETERS))).reply(give(call)).types
    assert "reply.rejected" in Play(boss()).reply(give(call)).types


def test_a_child_is_never_looser_than_its_parent() -> None:
    own = ActionSpec(name="send", effects="external", approval="auto")
    same = ActionSpec(name="mail", effects="external", approval="auto")
    free = ApprovalPolicy(read="auto", write="auto", external="auto", irreversible="never")
    bound = ApprovalPolicy(read="ask", write="never", external="ask", irreversible="auto")
    tree = boss(
        kid(approval=free, actions=(own, same)),
        approval=bound,
        autonomy="autonomous",
        actions=(same,),
    )
    run = RunState(id="run_1", spec=tree, model="m")
    spec = child_spec(run, tree.agents[0], {})
    assert spec.approval == ApprovalPolicy(
        read="ask", write="never", external="ask", irreversible="never"
    )
    assert [spec.approval_of(one) for one in spec.actions] == ["ask", "auto"]
    assert not spec.interactive


ASKED = {"status": "asked", "message": "Which one?", "runId": "run_1.1.sub.0"}


def test_fix_31_a_child_that_asked_is_gone_on_with() -> None:
    play = Play(boss(kid(terms={"questions": "parent"})), payload={"a": 1}).reply(give("kid"))
    value = {**ended(**ASKED)}
    del value["payload"]
    play.settle("sub.0", value)
    (entry,) = results(play)
    assert (entry["status"], entry["message"], entry["runId"]) == (
        "asked",
        "Which one?",
        "run_1.1.sub.0",
    )
    assert "run_1.1.sub.0" in volatile_message(play.state)
    play.reply(give({"name": "kid", "message": "That.", "resumeRunId": "nope"}))
    assert "run_1.1.sub.0" in str(play.last("reply.rejected")["problems"])
    play.reply(give({"name": "kid", "message": "That one.", "resumeRunId": "run_1.1.sub.0"}))
    (effect,) = work(play)
    assert (effect.resume_run_id, effect.payload) == ("run_1.1.sub.0", {"a": 1})
    assert play.last("subagent.started")["resumed"] is True
    more = {"modelCalls": 3, "inputTokens": 80, "outputTokens": 8, "costUsd": 0.75}
    play.settle("sub.0", ended({"a": 2}, usage=more, turns=3))
    assert play.state.payload == {"a": 2}
    assert play.state.below == Spent(3, 88, 0.75)
    assert play.state.asked == {}


def test_a_child_owes_its_end_and_its_question_to_its_parent() -> None:
    def child(*, asks: bool) -> Play:
        play = Play()
        play.state.parent_id, play.state.serves, play.state.asks_parent = "run_0", "1:sub.0", asks
        return play

    asking = child(asks=True).reply(
        {"taskComplete": False, "message": "Which?", "nextStep": {"type": "Chat"}}
    )
    assert asking.state.unheard == ("run_0",)
    assert outcome_of(asking.state).value["status"] == "asked"
    asking.give(Reported("told", {"runs": ["run_0"]}, asking.at))
    assert not asking.state.unheard
    asking.post("That.").reply({"taskComplete": True, "message": "Done."})
    assert asking.state.unheard == ("run_0",)
    assert outcome_of(asking.state).ok
    asking.give(Reported("told", {"runs": ["run_0"]}, asking.at))
    assert not asking.state.unheard
    to_a_person = child(asks=False).reply({"message": "Which?", "nextStep": {"type": "Chat"}})
    assert to_a_person.state.unheard == ()


def test_a_run_that_ends_owes_its_children_a_stop() -> None:
    play = Play(boss(), payload={"a": 1}).reply(give("kid", "other"))
    play.settle("sub.0", ended({"a": 2}))
    play.cancel()
    assert play.state.unheard == ("run_1.1.sub.1",)
    assert play.state.payload == {"a": 2}, "what the other child brought is kept"
    assert [one["status"] for one in _data(play, "subagent.completed")] == [
        "completed",
        "cancelled",
    ]


def _data(play: Play, kind: str) -> list[dict[str, Any]]:
    return [one.data for one in play.facts if one.type == kind]


def test_waiting_for_children_is_no_working_time_but_theirs_is() -> None:
    play = Play(boss()).reply(give("kid", "other"))
    play.give(Reported("started", {"effects": ["1:sub.0", "1:sub.1"]}, play.at))
    before, play.at = play.state.active_ms, play.at + 1_000
    play.settle("sub.0", ended(activeMs=300.0))
    play.settle("sub.1", ended(activeMs=200.0))
    assert play.state.active_ms == before + 300.0


# --- messages --------------------------------------------------------------------------------------

CHAT = [
    Message(1, "user", "task", "Task", 0),
    Message(2, "assistant", "reply", "r1", 1),
    Message(3, "user", "results", "x1", 1),
    Message(4, "user", "feedback", "engine", 2),
    Message(5, "assistant", "reply", "r2", 2),
    Message(6, "user", "results", "x2", 2),
    Message(7, "assistant", "reply", "r3", 3),
]


@pytest.mark.parametrize(
    ("mode", "most", "shown"),
    [
        ("none", 3, []),
        ("all", 3, ["Task", "r1", "x1", "r2", "x2", "r3"]),
        ("latest", 3, [3, "r2", "x2", "r3"]),
        ("latest", 4, [1, "r1", "x1", "r2", "x2", "r3"]),
        ("bookend", 3, ["Task", "r1", 3, "r3"]),
        ("bookend", 4, ["Task", "r1", 1, "r2", "x2", "r3"]),
        ("bookend", 9, ["Task", "r1", "x1", "r2", "x2", "r3"]),
    ],
)
def test_what_a_child_sees_of_the_conversation(mode: Any, most: int, shown: list[Any]) -> None:
    text = parent_context(CHAT, mode, most)
    entries = json.loads(text[text.index("{") :])["conversation"] if text else []
    assert [one.get("text", one.get("omitted")) for one in entries] == shown


def test_what_is_put_into_instructions_is_not_read_again() -> None:
    text, rest = with_parameters("{{a}} {{ b }}", {"a": "{{ b }}", "b": [1], "c": None})
    assert (text, rest) == ("{{ b }} [1]", {"c": None})
    assert task("Go.", {}) == "Go."


# --- any order -------------------------------------------------------------------------------------


@given(st.permutations(range(4)), st.integers(1, 4), st.data())
def test_any_order_of_endings_gives_the_same_next_prompt(
    order: list[int], width: int, data: st.DataObject
) -> None:
    def played(wanted: list[int]) -> Play:
        play = Play(boss(limits=Limits(max_concurrency=width)), payload={"a": 1, "list": []})
        play.reply(give("kid", "other", "kid", "other"))
        while play.state.turn == 1:
            open_ = {int(one.id.rpartition(".")[2]) for one in work(play)}
            index = next(one for one in wanted if one in open_)
            final = {"a": index % 3, "list": [index], f"k{index}": True}
            if index == failing:
                fail(play, f"sub.{index}")
            else:
                play.settle(f"sub.{index}", ended(final, f"m{index}"))
        return play

    failing = data.draw(st.integers(0, 5))
    one, other = played([0, 1, 2, 3]), played(order)
    assert [(m.kind, m.text) for m in one.messages] == [(m.kind, m.text) for m in other.messages]
    assert volatile_message(one.state) == volatile_message(other.state)
