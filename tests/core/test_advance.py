"""The loop: given a state, when something happens, then this follows."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopagent.core.action_spec import ActionSpec
from loopagent.core.agent_spec import Limits, PayloadSpec
from loopagent.core.completion_spec import Completion
from loopagent.core.effects import CancelEffect
from loopagent.core.events import Reported, Settled
from loopagent.core.outcome import Outcome
from loopagent.core.prompt import volatile_message
from loopagent.core.results import STORED
from tests.core.play import AskHuman, CallModel, Play, RunAction, act, agent, pending


DONE = {"taskComplete": True, "message": "done"}
ASK = {"taskComplete": False, "message": "Which?", "nextStep": {"type": "Chat"}}


def test_a_run_starts_with_one_planner_call() -> None:
    play = Play()
    assert play.types == ["run.created", "run.started", "turn.started", "run.state"]
    assert pending(play, CallModel) == ["model"]
    assert [one.kind for one in play.messages] == ["task"]


def test_a_text_that_was_repaired_says_so_and_a_plain_one_does_not() -> None:
    mended = Play().reply('```json\n{"taskComplete": true, "message": "Done.",}\n```')
    received = mended.types.index("reply.received")
    assert mended.types[received + 1] == "reply.repaired"
    repairs = mended.last("reply.repaired")["repairs"]
    assert repairs == ["trailing commas left out", "a code fence left out"]
    assert set(repairs) <= set(mended.last("reply.received")["warnings"])
    plain = Play().reply({"taskComplete": True, "message": "Done.", "nextStep": {"type": "Retry"}})
    assert plain.last("reply.received")["warnings"]
    assert "reply.repaired" not in plain.types


def test_actions_run_side_by_side_and_report_in_the_order_asked() -> None:
    play = Play().reply(act(("work", {"item": 1}), ("work", {"item": 2})))
    assert pending(play, RunAction) == ["action.0", "action.1"]
    play.settle("action.1", "two")
    assert play.state.turn == 1
    play.settle("action.0", "one")
    assert play.state.turn == 2
    results = json.loads(play.said)["results"]
    assert [(one["call"], one["result"]) for one in results] == [(1, "one"), (2, "two")]


@given(st.permutations(range(3)), st.lists(st.booleans(), min_size=3, max_size=3), st.booleans())
def test_any_order_of_settlement_gives_the_same_next_prompt(
    order: list[int], ok: list[bool], together: bool
) -> None:
    def played(indexes: list[int]) -> Play:
        play = Play().reply(act(*(("work", {"item": one}) for one in range(3))))
        outcomes = {
            one: Outcome.done(one) if ok[one] else Outcome.failed("broke", "it broke")
            for one in indexes
        }
        events = [Settled(f"1:action.{one}", outcomes[one], 5.0) for one in indexes]
        if together:
            return play.give(*events)
        for event in events:
            play.give(event)
        return play

    shuffled, straight = played(order), played([0, 1, 2])
    assert [one.text for one in shuffled.messages] == [one.text for one in straight.messages]
    assert volatile_message(shuffled.state) == volatile_message(straight.state)


def test_outcomes_given_together_are_the_same_as_one_by_one() -> None:
    calls = act(("work", {"item": 1}), ("work", {"item": 2}))
    one_by_one = Play().reply(calls).settle("action.0", 1).settle("action.1", 2)
    together = Play().reply(calls)
    together.give(
        Settled("1:action.0", Outcome.done(1), 3.0), Settled("1:action.1", Outcome.done(2), 4.0)
    )
    assert [one.text for one in together.messages] == [one.text for one in one_by_one.messages]
    assert together.state.turn == one_by_one.state.turn == 2


def test_duplicates_and_unknown_effects_change_nothing() -> None:
    play = Play().reply(act(("work", {"item": 1})))
    settled = Settled("1:action.0", Outcome.done("x"), 9.0)
    play.give(settled)
    before = play.state
    for event in (
        settled,
        Settled("1:model", Outcome.done({"text": "{}"}), 9.0),
        Settled("7:nope", Outcome.done(), 9.0),
    ):
        count = len(play.facts)
        play.give(event)
        assert len(play.facts) == count
        assert play.state.turn == before.turn


def test_a_batch_larger_than_the_cap_slides() -> None:
    play = Play(agent(limits=Limits(max_concurrency=2))).reply(
        act(*(("work", {"item": one}) for one in range(5)))
    )
    assert pending(play, RunAction) == ["action.0", "action.1"]
    play.settle("action.0", 0)
    assert pending(play, RunAction) == ["action.1", "action.2"]


def test_a_refused_reply_changes_nothing_at_all() -> None:
    bad = act(
        ("wrok", {"item": 1}),
        ("work", {"item": "x"}),
        payloadChangeRequest={"newElements": {"a": 1}},
        scratchpad={"notes": "n"},
    )
    play = Play().reply(bad)
    assert play.state.payload == {}
    assert play.state.scratchpad.notes == ""
    assert not pending(play, RunAction)
    problems = play.last("reply.rejected")["problems"]
    assert [one["path"] for one in problems] == [
        "nextStep.actions[0].name",
        "nextStep.actions[1].params.item",
    ]
    assert "did you mean work" in play.said
    assert play.state.turn == 2


def test_an_accepted_reply_applies_payload_and_scratchpad_first() -> None:
    change = {"newElements": {"a": 1}}
    play = Play().reply(
        act(("work", {"item": 1}), payloadChangeRequest=change, scratchpad={"notes": "n"})
    )
    assert play.state.payload == {"a": 1}
    assert play.state.scratchpad.notes == "n"
    assert play.last("payload.changed")["patch"] == [{"op": "add", "path": "/a", "value": 1}]


def test_writes_that_are_not_allowed_are_reported_and_the_rest_is_done() -> None:
    spec = agent(payload=PayloadSpec(write=("a",)))
    play = Play(spec).reply(
        {
            **DONE,
            "taskComplete": False,
            "payloadChangeRequest": {"newElements": {"a": 1, "b": 2}},
            "nextStep": {"type": "Retry"},
        }
    )
    assert play.state.payload == {"a": 1}
    assert "b (add" in play.said
    only = {"payloadChangeRequest": {"newElements": {"c": 3}}, "nextStep": {"type": "Retry"}}
    play.reply({"taskComplete": False, **only})
    told = play.last("payload.changed")
    assert (told["patch"], told["refused"]) == ([], ["c (add is not permitted)"])


def test_completion_ends_the_run_with_the_terminal_event_last() -> None:
    play = Play().reply({**DONE, "payloadChangeRequest": {"newElements": {"a": 1}}})
    assert play.state.status == "completed"
    assert play.state.payload == {"a": 1}
    assert play.types[-3:] == ["run.task_complete", "run.state", "run.completed"]
    assert play.types.count("turn.started") == play.types.count("turn.ended") == 1
    assert not play.effects


def test_a_claim_that_comes_with_a_step_is_not_taken() -> None:
    play = (
        Play()
        .reply(act(("work", {"item": 1}), taskComplete=True, message="done"))
        .settle("action.0", "x")
    )
    assert play.state.status == "running"
    assert "was not taken" in play.said


def test_completion_policy_names_what_is_missing_and_gives_up_in_the_end() -> None:
    spec = agent(
        payload=PayloadSpec.model_validate({"schema": {"type": "object", "required": ["total"]}}),
        completion=Completion(min_calls={"work": 1}),
    )
    play = Play(spec).reply(DONE)
    assert "work" in play.said
    assert "total" in play.said
    play.reply(act(("work", {"item": 1}))).settle("action.0", "x")
    ready = {**DONE, "payloadChangeRequest": {"newElements": {"total": 1}}}
    assert play.reply(ready).state.status == "completed"
    stubborn = Play(spec).reply(DONE).reply(DONE).reply(DONE)
    assert (stubborn.state.status, stubborn.last("run.failed")["reason"]) == (
        "failed",
        "completion",
    )


def test_chat_waits_and_the_answer_becomes_the_persons_message() -> None:
    play = Play().reply(ASK)
    assert play.state.waiting
    assert play.last("run.state")["state"] == "followup"
    play.answer("answer", feedback="the second")
    assert play.said == "the second"
    assert (
        play.types[-3:] == ["turn.ended", "turn.started", "run.state"]
        or "run.resumed" in play.types
    )


def test_a_form_is_answered_with_its_labels() -> None:
    form = {"questions": [{"id": "q", "label": "Quarter", "type": {"type": "text"}}]}
    play = Play().reply({**ASK, "responseForm": form}).answer("answer", values={"q": "Q1"})
    assert play.said == "Quarter: Q1"


def test_a_posted_message_answers_an_open_question() -> None:
    play = Play().reply(ASK).post("the first")
    assert play.said == "the first"
    assert play.state.turn == 2


def test_an_approval_shows_the_exact_parameters_and_holds_the_batch() -> None:
    play = Play().reply(act(("mail", {"item": 1}), ("work", {"item": 2})))
    assert pending(play, AskHuman) == ["action.0.ask"]
    assert not pending(play, RunAction)
    assert play.last("request.created")["subject"]["params"] == {"item": 1}
    play.answer("approve")
    assert pending(play, RunAction) == ["action.0", "action.1"]


def test_what_was_edited_is_what_runs() -> None:
    play = Play().reply(act(("mail", {"item": 1}))).answer("approve", edited={"item": 5})
    effect = play.state.pending["1:action.0"]
    assert isinstance(effect, RunAction)
    assert effect.params == {"item": 5}


def test_a_refusal_reaches_the_model_word_for_word_and_the_rest_runs() -> None:
    play = Play().reply(act(("mail", {"item": 1}), ("work", {"item": 2})))
    play.answer("reject", feedback="Use the test account").settle("action.1", "x")
    results = json.loads(play.said)["results"]
    assert results[0]["error"]["code"] == "rejected"
    assert "Use the test account" in results[0]["error"]["message"]
    assert results[1]["ok"]
    assert play.state.counters.mistakes == 0


def test_nobody_to_ask_means_refused_never_left_hanging() -> None:
    play = Play(agent(autonomy="autonomous")).reply(act(("mail", {"item": 1})))
    assert json.loads(play.messages[-1].text)["results"][0]["error"]["code"] == "no_approver"


def test_counts_are_reserved_for_the_whole_batch() -> None:
    limited = ActionSpec(name="work", effects="read", max_calls=2, parameters={"type": "object"})
    play = Play(agent(actions=(limited,))).reply(act(*(("work", {}) for _ in range(3))))
    assert "2 more time(s)" in play.said
    assert not pending(play, RunAction)


def test_the_breaker_blocks_the_same_failing_call_and_says_so() -> None:
    play = Play(agent(limits=Limits(max_mistakes=0)))
    for _ in range(2):
        play.reply(act(("work", {"item": 1}))).settle("action.0", error="broke")
    play.reply(act(("work", {"item": 1})))
    assert play.last("action.rejected")["code"] == "blocked"
    assert play.state.turn == 4


def test_three_bad_replies_ask_the_person_and_guidance_goes_on() -> None:
    play = Play()
    for _ in range(3):
        play.reply("no json here")
    assert pending(play, AskHuman) == ["guard"]
    assert play.last("guard.mistake")["count"] == 3
    play.answer("answer", feedback="Answer in JSON, please.")
    assert play.said == "Answer in JSON, please."
    assert play.state.counters.mistakes == 0


def test_three_bad_replies_fail_an_autonomous_run() -> None:
    play = Play(agent(autonomy="autonomous"))
    for _ in range(3):
        play.reply("")
    failed = play.last("run.failed")
    assert failed["reason"] == "mistakes"
    assert failed["message"].partition("The last one: ")[2].startswith("there is no JSON object")


def test_a_good_turn_resets_the_row_but_ten_refusals_end_the_run() -> None:
    play = Play(agent(autonomy="autonomous"))
    for index in range(10):
        play.reply("bad")
        if play.state.ended:
            break
        if index % 2:
            play.reply(act(("work", {"item": index}))).settle("action.0", "x")
    assert play.last("run.failed")["reason"] == "mistakes"
    assert play.state.counters.refusals == 10


def test_a_cut_off_reply_runs_nothing_and_three_end_the_run() -> None:
    whole = json.dumps(act(("work", {"item": 1})))
    play = Play().reply(whole, finish="length")
    assert not pending(play, RunAction)
    assert "cut off" in play.said
    play.reply(whole[:-20]).reply(whole, finish="length")
    assert play.last("run.failed")["reason"] == "truncated"


def test_the_same_step_again_and_again_is_noticed_then_stopped() -> None:
    play = Play()
    for _ in range(5):
        play.reply(act(("work", {"item": 1}))).settle("action.0", "same")
    assert play.last("guard.repeated")["count"] == 5
    assert pending(play, AskHuman) == ["guard"]


def test_bare_retries_are_no_progress() -> None:
    play = Play(agent(autonomy="autonomous"))
    for _ in range(5):
        play.reply({"taskComplete": False, "nextStep": {"type": "Retry"}})
    assert play.state.status == "failed"


def test_nudges_are_bounded() -> None:
    play = Play(agent(autonomy="autonomous"))
    for _ in range(4):
        play.reply({"taskComplete": False, "message": "All done."})
    failed = play.last("run.failed")
    assert failed["reason"] == "stalled"
    assert failed["message"].endswith("It said: All done.")
    assert play.types.count("guard.nudged") == 3


@pytest.mark.parametrize(("turns", "status"), [(3, "completed"), (2, "failed")])
def test_max_turns_counts_every_call_and_takes_a_last_completion(turns: int, status: str) -> None:
    play = Play(agent(limits=Limits(max_turns=turns))).reply("bad").reply("bad")
    if not play.state.ended:
        play.reply(DONE)
    assert play.state.status == status
    assert play.types.count("turn.started") == turns


def test_token_and_time_limits_end_the_run_and_keep_what_was_done() -> None:
    spec = agent(limits=Limits(max_tokens=200))
    play = Play(spec).reply(
        act(("work", {"item": 1}), payloadChangeRequest={"newElements": {"a": 1}})
    )
    play.settle("action.0", "x").reply(act(("work", {"item": 2})))
    assert play.last("run.failed")["reason"] == "limit"
    assert play.state.payload == {"a": 1}
    slow = Play(agent(limits=Limits(max_seconds=2)))
    slow.at = 10.0
    slow.reply(act(("work", {"item": 1})))
    assert slow.last("guard.limit")["limit"] == "maxSeconds"


def test_waiting_for_people_costs_no_time() -> None:
    play = Play(agent(limits=Limits(max_seconds=30))).reply(ASK)
    play.at = 10_000.0
    play.answer("answer", feedback="late")
    assert play.state.status == "running"


def test_a_queued_message_waits_for_the_turn_boundary() -> None:
    play = Play().reply(act(("work", {"item": 1}))).post("also a museum").post("also a museum")
    assert play.last("run.message_queued")["merged"]
    play.settle("action.0", "x")
    assert play.said == "also a museum"
    assert play.state.mail == ()


def test_steering_aborts_only_the_model_call() -> None:
    play = Play().post("stop that", "steer", partial="I will")
    assert any(isinstance(one, CancelEffect) and one.target == "1:model" for one in play.effects)
    assert play.said == "stop that"
    assert "I will" in play.messages[-2].text
    assert play.state.turn == 2
    play.give(Settled("1:model", Outcome.done({"text": json.dumps(DONE)}), 9.0))
    assert play.state.status == "running"


def test_a_message_at_the_last_moment_is_not_lost() -> None:
    play = Play().post("one more thing").reply(DONE)
    assert play.state.status == "running"
    assert play.said == "one more thing"


def test_cancel_closes_everything_that_is_open() -> None:
    play = (
        Play()
        .reply(act(("work", {"item": 1}), ("work", {"item": 2})))
        .settle("action.0", "x")
        .cancel()
    )
    assert play.state.status == "cancelled"
    assert [one.target for one in play.effects if isinstance(one, CancelEffect)] == ["1:action.1"]
    assert play.types.count("action.started") == play.types.count("action.completed")
    assert play.types[-1] == "run.cancelled"
    count = len(play.facts)
    play.settle("action.1", "late").post("hello")
    assert len(play.facts) == count


def test_cancel_closes_open_requests() -> None:
    play = Play().reply(act(("mail", {"item": 1}))).cancel()
    assert "request.cancelled" in play.types
    assert not play.state.pending


def test_stopping_from_a_request_cancels() -> None:
    assert Play().reply(ASK).answer("terminate").state.status == "cancelled"


def test_a_call_in_doubt_is_reported_and_a_person_decides_where_the_action_says_so() -> None:
    doubtful = ActionSpec(
        name="work",
        effects="write",
        approval="auto",
        on_unknown="ask",
        parameters={"type": "object"},
    )
    play = (
        Play(agent(actions=(doubtful,)))
        .reply(act(("work", {})))
        .settle("action.0", error="interrupted")
    )
    assert pending(play, AskHuman) == ["action.0.ask"]
    again = play.answer("approve")
    assert pending(again, RunAction) == ["action.0"]


def test_started_calls_are_marked() -> None:
    play = Play().reply(act(("work", {"item": 1})))
    play.give(Reported("started", {"effects": ["1:action.0"]}, 5.0))
    effect = play.state.pending["1:action.0"]
    assert isinstance(effect, RunAction)
    assert effect.started


def test_a_failed_model_call_ends_the_run_with_the_reason() -> None:
    play = Play().settle("model", error="auth")
    assert (play.state.status, play.last("run.failed")["reason"]) == ("failed", "model")


def test_failed_attempts_are_paid_for() -> None:
    play = Play().reply(DONE, attempts=[{"kind": "server", "usage": {"input_tokens": 50}}])
    assert play.state.usage.input_tokens == 150
    assert play.state.usage.model_calls == 2


def test_long_results_get_letters_in_the_order_asked() -> None:
    def stored(name: str) -> dict[str, Any]:
        return {STORED: {"artifactId": name, "callId": "", "chars": 9, "head": "h", "tail": "t"}}

    play = Play().reply(act(("work", {"item": 1}), ("work", {"item": 2})))
    play.settle("action.1", stored("second")).settle("action.0", stored("first"))
    assert [(one.handle, one.artifact_id) for one in play.state.artifacts] == [
        ("A", "first"),
        ("B", "second"),
    ]


def test_commands_are_issued() -> None:
    button = {"type": "open:url", "label": "Open", "url": "https://example.org"}
    play = Play().reply(
        {
            **DONE,
            "automaticCommands": [{"type": "refresh:data", "scope": "cache"}],
            "actionableCommands": [button],
        }
    )
    assert play.types.count("command.issued") == 2
    assert play.last("run.task_complete")["commands"] == [button]


def test_tools_that_are_not_there_are_refused_not_ignored() -> None:
    call = {"tool": "getMessageBySequence", "input": {"sequence": 1}}
    play = Play().reply({**DONE, "conversationToolCalls": [call]})
    assert play.last("reply.rejected")["problems"][0]["path"] == "conversationToolCalls"


def test_notes_that_nobody_keeps_are_told_and_refuse_no_reply() -> None:
    play = Play().reply({**DONE, "memoryWrites": [{"note": "x", "type": "Context"}]})
    assert play.last("memory.written")["disposition"] == "disabled"
    assert play.state.status == "completed"


OPERATIONS = st.lists(
    st.sampled_from(
        [
            "work",
            "mail",
            "bad",
            "chat",
            "retry",
            "settle",
            "fail",
            "approve",
            "reject",
            "answer",
            "post",
            "steer",
            "done",
            "dup",
        ]
    ),
    max_size=25,
)


@given(OPERATIONS)
def test_whatever_happens_the_books_balance(operations: list[str]) -> None:
    """Ids are unique, every start has one end, nothing is pending at the end, the terminal event is last."""
    play = Play()
    for one in operations:
        _perform(play, one)
        if play.state.ended:
            break
    if not play.state.ended:
        play.cancel()
    assert not play.state.pending
    assert play.types.count("turn.started") == play.types.count("turn.ended") == play.state.turn
    started = [one.data["callId"] for one in play.facts if one.type == "action.started"]
    ended = [one.data["callId"] for one in play.facts if one.type == "action.completed"]
    assert sorted(started) == sorted(ended)
    assert len(set(started)) == len(started)
    opened = [one.data["requestId"] for one in play.facts if one.type == "request.created"]
    closed = [
        one.data["requestId"]
        for one in play.facts
        if one.type in ("request.resolved", "request.cancelled")
    ]
    assert sorted(opened) == sorted(closed)
    assert play.types[-1] in ("run.completed", "run.failed", "run.cancelled")
    assert [one.number for one in play.messages] == list(range(1, len(play.messages) + 1))


def _perform(play: Play, operation: str) -> None:
    replies: dict[str, Any] = {
        "work": act(("work", {"item": len(play.facts)}), ("work", {"item": 2})),
        "mail": act(("mail", {"item": len(play.facts)})),
        "bad": "nothing",
        "chat": ASK,
        "retry": {"taskComplete": False, "nextStep": {"type": "Retry", "messageIndex": 1}},
        "done": DONE,
    }
    if operation in replies:
        if play.state.calling is not None:
            play.reply(replies[operation])
        return
    if operation in ("post", "steer"):
        play.post(f"m{len(play.facts)}", "steer" if operation == "steer" else "queue")
        return
    if operation == "dup":
        play.give(Settled("1:action.0", Outcome.done("dup"), play.at))
        return
    for key, effect in list(play.state.pending.items()):
        if operation in ("settle", "fail") and effect.kind in ("run_action", "read_message"):
            outcome = (
                Outcome.done({"text": "x"})
                if operation == "settle"
                else Outcome.failed("broke", "it broke")
            )
            play.give(Settled(key, outcome, play.at))
            return
    if play.state.asks and operation in play.state.asks[0].decisions:
        play.answer(operation, feedback="f")


def test_the_length_of_a_task_is_a_limit() -> None:
    task = {"id": "1", "title": "t" * 30, "status": "pending"}
    reply = {**ASK, "scratchpad": {"taskList": {"upsert": [task]}}}
    assert Play().reply(reply).state.scratchpad.tasks[0].title == "t" * 30
    strict = Play(agent(limits=Limits(max_task_chars=20))).reply(reply)
    assert strict.state.scratchpad.tasks == ()
    assert "31 characters, 20 are allowed" in strict.said


def test_when_a_loss_is_remarkable_is_a_limit() -> None:
    change = {"updateElements": {"text": "x" * 40}}
    step = act(("work", {"item": 1}), payloadChangeRequest=change)
    told = "shrank from 60 to 40 characters"

    def warnings(**limits: Any) -> str:
        play = Play(agent(limits=Limits.model_validate(limits)), payload={"text": "x" * 60})
        return str(play.reply(step).last("payload.changed")["warnings"])

    assert told not in warnings()
    assert told not in warnings(shrink={"textChars": 50})
    assert told in warnings(shrink={"textChars": 50, "textShare": 0.3})
    with pytest.raises(ValueError, match="less than or equal to 1"):
        Limits.model_validate({"shrink": {"listShare": 50}})
