"""Where an agent wants it, a change that looks like a loss waits until the model sends it again."""

from __future__ import annotations

from typing import Any

from loopagent.core.agent_spec import PayloadSpec
from tests.core.play import Play, act, agent


BEFORE = {"doc": "All of it. " * 30, "n": 1}


def change(**update: Any) -> dict[str, Any]:
    return {
        **act(("work", {"item": 1})),
        "payloadChangeRequest": {"updateElements": update},
    }


def playing(on_loss: str = "confirm") -> Play:
    spec = agent(payload=PayloadSpec.model_validate({"onLoss": on_loss}))
    return Play(spec, payload=BEFORE)


def test_fix_41_a_change_that_looks_like_a_loss_is_held_and_made_when_it_comes_again() -> None:
    play = playing().reply(change(doc="All of …"))
    assert play.state.payload == BEFORE
    assert play.state.counters.refusals == 1
    assert play.state.step is None
    problem = play.last("reply.rejected")["problems"][0]
    assert problem["path"] == "payloadChangeRequest"
    assert "/doc" in problem["message"]
    assert "send the very same change once more" in problem["message"]
    play.reply(change(doc="All of …"))
    assert play.state.payload == {**BEFORE, "doc": "All of …"}
    assert play.state.held_change == ""
    assert play.state.step is not None


def test_only_the_very_same_change_confirms_it() -> None:
    play = playing().reply(change(doc="All of …")).reply(change(doc="Most …"))
    assert play.state.payload == BEFORE
    assert play.state.counters.refusals == 2
    play.reply(change(doc=BEFORE["doc"], n=2))
    assert play.state.payload == {**BEFORE, "n": 2}
    assert play.state.held_change == ""
    play.settle("action.0", "done").reply(change(doc="Most …"))
    assert play.state.payload["doc"] == BEFORE["doc"], "what was held once is no confirmation later"


def test_a_change_that_loses_nothing_is_made_at_once() -> None:
    play = playing().reply(change(n=2, doc=f"{BEFORE['doc']} And more."))
    assert play.state.counters.refusals == 0
    assert play.state.payload["n"] == 2


def test_as_a_rule_the_change_is_made_and_the_model_told() -> None:
    play = playing("warn").reply(change(doc="All of …"))
    assert play.state.payload["doc"] == "All of …"
    assert play.last("payload.changed")["warnings"] != []
