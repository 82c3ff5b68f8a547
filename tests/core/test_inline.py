"""Operations beside the step: staged whole, issued with the step, told in the order of the request."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopagent.core.artifact_calls import find
from loopagent.core.artifact_handles import letters
from loopagent.core.effects import AskHuman, CancelEffect, ReadArtifact, RunAction
from loopagent.core.events import Settled
from loopagent.core.outcome import Outcome
from loopagent.core.prompt import reply_fields, volatile_message
from loopagent.core.state import Artifact
from tests.core.play import Play, act, agent, pending


NOTES = Artifact("A", "a" * 64, 900, kind="text", name="notes.txt")
DATA = Artifact("B", "b" * 64, 90, kind="json")
FULL = {"artifactId": "A", "tool": "get_full"}
LOOK = {"artifactToolCalls": [FULL]}


def looking(*artifacts: Artifact, **options: Any) -> Play:
    """A run that has artifacts."""
    play = Play(agent(**options))
    play.state.artifacts = artifacts or (NOTES, DATA)
    return play


def reads(*tools: str) -> dict[str, Any]:
    """Calls of tools."""
    return {"artifactToolCalls": [{"artifactId": "A", "tool": one} for one in tools]}


def told(play: Play) -> dict[str, Any]:
    """The last results of operations that the model was given."""
    texts = [one.text for one in play.messages if one.kind == "results"]
    found: dict[str, Any] = json.loads(
        next(one for one in reversed(texts) if "artifactToolCalls" in one)
    )
    return found


def test_reads_run_beside_the_step_and_survive_its_end() -> None:
    play = looking().reply(act(("work", {"item": 1}), **LOOK))
    assert pending(play, ReadArtifact) == ["inline.artifact.0"]
    assert pending(play, RunAction) == ["action.0"]
    play.settle("action.0", 7)
    assert play.state.step is None
    assert pending(play, ReadArtifact) == ["inline.artifact.0"]
    assert play.state.calling is None, "the next planner call waits for reads"
    play.settle("inline.artifact.0", {"text": "hi"})
    assert play.state.calling is not None
    entry = {"call": 1, "artifact": "A", "tool": "get_full", "ok": True, "result": {"text": "hi"}}
    assert told(play) == {"artifactToolCalls": [entry]}
    assert play.state.inline == ()


def test_a_refused_reply_reads_nothing() -> None:
    play = looking().reply(act(("nothing", {}), **LOOK))
    assert play.types.count("reply.rejected") == 1
    assert pending(play, ReadArtifact) == []


def test_an_agent_without_the_tools_does_not_hear_of_them_and_may_not_use_them() -> None:
    play = looking(artifact_tools=False)
    assert "artifactToolCalls" not in reply_fields(play.state.spec)
    assert "artifactTools" not in volatile_message(play.state)
    play.reply(LOOK)
    assert play.last("reply.rejected")["problems"][0]["path"] == "artifactToolCalls"


def test_the_prompt_says_which_tools_fit() -> None:
    play = looking()
    shown = json.loads(volatile_message(play.state).removeprefix("State: "))
    assert "artifactToolCalls" in reply_fields(play.state.spec)
    assert shown["artifacts"] == {"A": "notes.txt, text, 900 chars", "B": "json, 90 chars"}
    assert list(shown["artifactTools"]) == ["text", "json"]
    assert shown["artifactTools"]["text"].startswith("grep(pattern, ")


def test_a_reply_that_only_looks_something_up_is_no_reason_for_a_nudge() -> None:
    play = looking().reply(LOOK).settle("inline.artifact.0", "x")
    assert "guard.nudged" not in play.types
    assert play.state.turn == 2


def test_looking_up_the_same_again_and_again_is_repetition() -> None:
    play = looking(limits={"repeat_notice": 2, "repeat_limit": 3})
    for _ in range(2):
        play.reply(LOOK).settle("inline.artifact.0", "x")
    assert "guard.repeated" in play.types
    play.reply(LOOK).settle("inline.artifact.0", "x")
    assert play.state.asks[0].ask == "guard"


@pytest.mark.parametrize("claim", [{"taskComplete": True}, {"nextStep": {"type": "Chat"}}])
def test_fix_46_reads_come_before_a_claim_or_question(claim: dict[str, Any]) -> None:
    play = looking()
    for turn in (1, 2, 3):
        assert play.state.turn == turn
        play.reply({**claim, "message": "Done?", **reads("get_full")})
        assert not play.state.ended
        assert not play.state.asks
        play.settle("inline.artifact.0", "x")
    assert play.said.startswith("Your question or completion was not taken yet")
    play.reply({**claim, "message": "Done?", **LOOK})
    if "taskComplete" in claim:
        assert play.state.status == "completed"
    else:
        assert pending(play, AskHuman) == ["chat"]
        play.settle("inline.artifact.0", "late")
        play.answer("answer", feedback="Yes.")
        assert told(play)["artifactToolCalls"][0]["result"] == "late"


def test_a_claim_on_the_last_turn_is_taken_though_it_reads_beside() -> None:
    play = looking(limits={"max_turns": 1})
    play.reply({"taskComplete": True, "message": "Done.", **LOOK})
    assert play.state.status == "completed"


def test_a_step_starts_the_row_of_postponed_claims_anew() -> None:
    play = looking().reply({"taskComplete": True, "message": "Done.", **LOOK})
    play.settle("inline.artifact.0", "x")
    assert play.state.counters.reads_first == 1
    play.reply(act(("work", {"item": 1})))
    assert play.state.counters.reads_first == 0


def test_reads_postpone_nothing_on_the_last_turn() -> None:
    """There would be no turn left in which the claim or the question could come again."""
    play = looking(limits={"max_turns": 1}).reply(
        {"taskComplete": True, "message": "Done.", **LOOK}
    )
    assert play.state.status == "completed"
    play = looking(limits={"max_turns": 1}).reply(
        {"message": "Which?", "nextStep": {"type": "Chat"}, **LOOK}
    )
    assert pending(play, AskHuman) == ["chat"]


def test_reads_beside_a_refused_claim_are_reported_as_not_done() -> None:
    play = looking(limits={"max_reads_first": 0}, completion={"min_calls": {"work": 1}})
    play.reply({"taskComplete": True, "message": "Done.", **LOOK})
    assert pending(play, ReadArtifact) == []
    assert "`artifactToolCalls` was not carried out" in play.said


def test_words_that_come_in_between_are_heard_before_a_step_ends_the_run() -> None:
    play = looking()
    play.reply({"taskComplete": True, "message": "Done.", **LOOK}).post("Wait.")
    play.settle("inline.artifact.0", "x")
    assert play.said == "Wait."
    assert not play.state.ended


def test_cancelling_drops_what_is_being_read() -> None:
    play = looking().reply(LOOK).cancel()
    assert [one.target for one in play.effects if isinstance(one, CancelEffect)] == [
        "1:inline.artifact.0"
    ]
    assert play.state.inline == ()
    assert play.state.status == "cancelled"


def test_unknown_artifacts_and_tools_fail_alone() -> None:
    calls = [FULL, {"artifactId": "Z", "tool": "get_full"}, {"artifactId": "B", "tool": "sing"}]
    play = looking().reply({"artifactToolCalls": calls})
    assert pending(play, ReadArtifact) == ["inline.artifact.0"]
    play.settle("inline.artifact.0", error="timeout")
    entries = told(play)["artifactToolCalls"]
    assert [one.get("error", {}).get("code") for one in entries] == [
        "timeout",
        "no_artifact",
        "no_tool",
    ]
    assert "there are A, B" in entries[1]["error"]["message"]
    assert "json_path" in entries[2]["error"]["message"]
    assert play.types.count("artifact.read") == 3


def test_without_artifacts_the_model_is_told_so() -> None:
    play = Play().reply(LOOK)
    assert "there are none" in told(play)["artifactToolCalls"][0]["error"]["message"]


@pytest.mark.parametrize(
    ("wanted", "handle"), [("a", "A"), ("B", "B"), ("Notes.TXT", "A"), ("other", None)]
)
def test_artifacts_are_found_by_handle_and_by_name(wanted: str, handle: str | None) -> None:
    found = find((NOTES, DATA), wanted)
    assert (found and found.handle) == handle


def test_the_only_artifact_is_meant_by_any_name_and_a_name_means_its_newest_version() -> None:
    newer = replace(NOTES, handle="C", version=2)
    assert find((DATA,), "whatever") == DATA
    assert find((NOTES, newer), "notes.txt") == newer


def test_a_prompt_lists_files_and_the_latest_results() -> None:
    results = [Artifact(letters(one), f"{one:064}", 900) for one in range(1, 60)]
    play = looking(NOTES, *results, context={"listed_artifacts": 4})
    listed = json.loads(volatile_message(play.state).removeprefix("State: "))
    assert list(listed["artifacts"]) == ["A", *(one.handle for one in results[-3:])]
    assert listed["artifactsNotListed"] == "56 older ones, among A to BH"
    play.reply({"artifactToolCalls": [{"artifactId": "F", "tool": "get_full"}]})
    assert pending(play, ReadArtifact) == ["inline.artifact.0"], "it answers to its handle"


def test_a_reply_may_not_hold_more_calls_than_allowed() -> None:
    play = looking(limits={"max_artifact_calls": 2})
    play.reply(reads("get_full", "get_full"))
    assert len(pending(play, ReadArtifact)) == 2
    play.settle("inline.artifact.0").settle("inline.artifact.1")
    play.reply(reads("get_full", "get_full", "get_full"))
    assert "at most 2 calls" in play.last("reply.rejected")["problems"][0]["message"]


@settings(max_examples=100, deadline=None)
@given(st.data(), st.integers(1, 6), st.integers(0, 3))
def test_any_order_of_settlement_gives_the_same_next_prompt(
    data: st.DataObject, looks: int, calls: int
) -> None:
    wanted = _next_prompt(looks, calls, lambda keys: keys)
    assert _next_prompt(looks, calls, lambda keys: data.draw(st.permutations(keys))) == wanted


def _next_prompt(looks: int, calls: int, order: Any) -> list[str]:
    play = looking()
    body = reads(*["get_full"] * looks)
    body |= act(*[("work", {"item": one}) for one in range(calls)]) if calls else {}
    play.reply(body)
    for key in order(list(play.state.pending)):
        outcome = Outcome.failed("broken", key) if key.endswith("1") else Outcome.done(key)
        play.give(Settled(key, outcome, 5.0))
    assert play.state.turn == 2
    return [one.text for one in play.messages if one.role == "user"]
