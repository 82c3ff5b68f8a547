"""Rules that clients of other agent loops rely on, each named after where it comes from, on real transitions."""

from __future__ import annotations

from typing import Any

import pytest

from loopagent import LoopFold, LoopState, loop_state
from loopagent.core.client_tool_spec import ClientToolSpec
from loopagent.core.events import Settled
from loopagent.core.facts import FACT_TYPES, public_event
from loopagent.core.outcome import Outcome
from tests.core.play import Play, act, agent


Event = dict[str, Any]
MAIL = act(("mail", {"item": 1}))
TOOL = ClientToolSpec(
    name="open-map", description="Opens.", parameters={"type": "object"}, effects="read"
)
MAP = {
    "taskComplete": False,
    "nextStep": {"type": "ClientTools", "clientTools": [{"name": "open-map", "params": {}}]},
}
CHAT = {"taskComplete": False, "message": "Where?", "nextStep": {"type": "Chat"}}
PLAN = {"taskComplete": False, "nextStep": {"type": "Plan", "plan": "1. Go."}}
DONE = {"taskComplete": True, "message": "Done."}


def told(play: Play) -> list[Event]:
    """The events of a played run."""
    return [
        public_event(fact, seq=seq, at=1.0, run_id="run_1", root_id="run_1")
        for seq, fact in enumerate(play.facts, 1)
    ]


def now(play: Play, *more: Event) -> LoopState:
    """What its events say, with ephemeral ones behind them."""
    return loop_state([*told(play), *more])


def delta(field: str = "message", text: str = "Hel", **data: Any) -> Event:
    """A piece of a reply."""
    body = {"callId": "1:model", "field": field, "text": text, "attempt": 1, **data}
    return {"runId": "run_1", "type": "reply.delta", "decidedBy": "model", "turn": 1, "data": body}


def buttons(state: LoopState) -> tuple[str, str]:
    """What the two buttons do."""
    assert state.primary is not None
    assert state.secondary is not None
    return state.primary.decision, state.secondary.decision


def model_fails(play: Play) -> Play:
    """The model call ends with an error."""
    assert play.state.calling is not None
    return play.give(Settled(play.state.calling.id, Outcome.failed("http", "500"), play.at))


# --- Roo Code: groups of asks ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "state", "pair"),
    [
        (MAIL, "interactive", ("approve", "reject")),
        (PLAN, "interactive", ("approve", "reject")),
        (CHAT, "followup", ("answer", "terminate")),
        (MAP, "client_tool", ("result", "error")),
    ],
)
def test_roo_code_interactive_asks_stop_the_loop_and_offer_two_buttons(
    reply: dict[str, Any], state: str, pair: tuple[str, str]
) -> None:
    play = Play(agent(client_tools=(TOOL,), plan_mode="optional")).reply(reply)
    shown = now(play)
    assert shown.state == state
    assert buttons(shown) == pair
    assert shown.ask is not None
    assert shown.ask.enabled


def test_roo_code_idle_ask_completion_result_offers_a_new_task() -> None:
    shown = now(Play().reply(DONE))
    assert (shown.state, shown.reason) == ("idle", "completed")
    assert buttons(shown) == ("new_run", "continue")


def test_roo_code_idle_ask_api_req_failed_offers_to_retry() -> None:
    shown = now(model_fails(Play()))
    assert (shown.state, shown.reason) == ("idle", "model")
    assert buttons(shown) == ("retry", "stop")


def test_roo_code_idle_ask_auto_approval_limit_offers_to_raise_it() -> None:
    shown = now(
        Play(agent(limits={"max_turns": 1}))
        .reply(act(("work", {"item": 1})))
        .settle("action.0", "ok")
    )
    assert (shown.state, shown.reason) == ("idle", "limit")
    assert buttons(shown) == ("raise", "stop")


def test_roo_code_mistake_limit_reached_asks_for_guidance_or_stops() -> None:
    play = Play(agent(limits={"max_mistakes": 1})).reply({"nonsense": 1})
    shown = now(play)
    assert shown.ask is not None
    assert (shown.state, shown.ask.kind) == ("interactive", "guard")
    assert buttons(shown) == ("approve", "terminate")


def test_roo_code_resumable_asks_offer_to_resume_or_to_end() -> None:
    shown = now(Play(), {"runId": "run_1", "type": "run.state", "data": {"state": "resumable"}})
    assert shown.state == "resumable"
    assert buttons(shown) == ("resume", "terminate")


def test_roo_code_non_blocking_asks_leave_the_loop_running() -> None:
    play = Play().reply(act(("work", {"item": 1})))
    progress = {
        "runId": "run_1",
        "type": "action.progress",
        "data": {"callId": "1:action.0", "text": "…"},
    }
    shown = now(play, progress)
    assert (shown.state, shown.ask) == ("running", None)
    assert buttons(shown) == ("message", "cancel")


def test_roo_code_a_partial_message_is_streaming_never_waiting() -> None:
    for piece in (delta(), delta("nextStep.type", "Plan", done=True), delta("reasoning")):
        shown = now(Play(), piece)
        assert shown.state == "streaming"
        assert shown.ask is None or not shown.ask.enabled


def test_roo_code_no_task_is_idle_without_a_reason() -> None:
    shown = loop_state([])
    assert (shown.state, shown.reason, shown.ask) == ("idle", None, None)
    assert buttons(shown)[0] == "new_run"


# --- Copilot SDK: idle and task complete -----------------------------------------------------------


def idle(status: str = "running") -> Event:
    """The loop has stopped."""
    return {"runId": "run_1", "type": "run.idle", "decidedBy": "engine", "data": {"status": status}}


def test_copilot_idle_is_ephemeral_and_task_complete_is_persisted() -> None:
    assert FACT_TYPES["run.idle"].ephemeral
    assert not FACT_TYPES["run.task_complete"].ephemeral


def test_copilot_idle_says_that_the_loop_stopped_not_that_the_task_is_done() -> None:
    play = Play().reply(CHAT)
    shown = now(play, idle())
    assert (shown.state, shown.reason) == ("followup", None)
    assert "run.task_complete" not in play.types


@pytest.mark.parametrize("end", ["cancelled", "failed", "limit"])
def test_copilot_task_complete_comes_only_with_an_accepted_claim(end: str) -> None:
    play = Play(agent(limits={"max_turns": 1}))
    if end == "cancelled":
        play.cancel()
    elif end == "failed":
        model_fails(play)
    else:
        play.reply(act(("work", {"item": 1}))).settle("action.0", "ok")
    assert now(play).state == "idle"
    assert "run.task_complete" not in play.types


def test_copilot_task_complete_carries_the_summary_and_comes_once() -> None:
    play = Play().reply(DONE)
    assert play.types.count("run.task_complete") == 1
    assert play.last("run.task_complete")["message"] == "Done."
    assert now(play, idle("completed")) == now(play)


def test_copilot_ephemeral_events_are_not_needed_to_rebuild_the_state() -> None:
    play = Play().reply(act(("work", {"item": 1}))).settle("action.0", "ok").reply(MAIL)
    events = told(play)
    noisy = [one for event in events for one in (event, idle(), delta(), delta(turn=2))]
    assert loop_state(noisy) == loop_state(events)


# --- Cline: presenting a reply ---------------------------------------------------------------------


def test_cline_nothing_of_a_rejected_reply_is_presented_any_more() -> None:
    play = Play()
    play.reply({"taskComplete": False, "nextStep": {"type": "Dance"}})
    assert now(play, delta()).state == "running"


def test_cline_abort_is_looked_at_first() -> None:
    play = Play().cancel()
    assert now(play, delta(), delta("nextStep.type", "Plan", done=True)).state == "idle"


def test_cline_what_was_handed_out_is_never_changed_later() -> None:
    play = Play().reply(MAIL)
    fold = LoopFold()
    for event in told(play):
        fold.add(event)
    handed, copy = fold.state, fold.state.model_copy(deep=True)
    asks = list(fold.asks)
    play.answer("approve")
    for event in told(play):
        fold.add(event)
    assert fold.state != handed
    assert (handed, asks[0]) == (copy, copy.ask)


def test_cline_a_block_that_is_partial_shows_its_buttons_disabled() -> None:
    shown = now(Play(), delta(), delta("nextStep.type", "Chat", done=True))
    assert shown.ask is not None
    assert (shown.ask.kind, shown.ask.enabled, shown.ask.request_id) == ("question", False, None)
    whole = now(Play().reply(CHAT))
    assert whole.ask is not None
    assert (whole.ask.kind, whole.ask.enabled) == ("question", True)
