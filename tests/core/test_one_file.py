"""A new step type is one class: declared here, it runs a whole turn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from loopagent.core.effects import CancelEffect, ReadMessage, SetTimer
from loopagent.core.events import Settled
from loopagent.core.outcome import Outcome
from loopagent.core.state import RunState
from loopagent.core.steps import STEP_TYPES, Done, NextStep, Wait
from tests.core.play import Play


def test_a_type_declared_in_a_test_runs_a_turn() -> None:
    class Recall(NextStep):
        """Read a message again."""

        type: Literal["Recall"]
        number: int
        body: ClassVar = ("number",)
        example: ClassVar[dict[str, Any]] = {}

        def resume(self, run: RunState, results: Mapping[str, Outcome]) -> Wait | Done:
            if "recall" not in results:
                return Wait((ReadMessage(f"{run.turn}:recall", self.number),))
            return Done(said=(("person", f"again: {results['recall'].value['text']}"),))

    try:
        play = Play().reply({"taskComplete": False, "nextStep": {"type": "Recall", "number": 1}})
        play.settle("recall", {"text": "Do it."})
        assert play.said == "again: Do it."
        assert play.state.turn == 2
    finally:
        del STEP_TYPES["Recall"]


def test_what_a_finished_step_no_longer_waits_for_is_stopped() -> None:
    class Await(NextStep):
        """Read a message, but not for longer than a minute."""

        type: Literal["Await"]
        number: int
        body: ClassVar = ("number",)
        example: ClassVar[dict[str, Any]] = {}

        def resume(self, run: RunState, results: Mapping[str, Outcome]) -> Wait | Done:
            if results:
                return Done(said=tuple(("person", f"first: {key}") for key in results))
            timer = SetTimer(f"{run.turn}:timer", 61.0)
            return Wait((ReadMessage(f"{run.turn}:read", self.number), timer))

    try:
        asked = {"taskComplete": False, "nextStep": {"type": "Await", "number": 1}}
        play = Play().reply(asked)
        play.settle("timer")
        assert play.said == "first: timer"
        assert CancelEffect("1:read.cancel", "1:read") in play.effects
        late = play.state
        assert play.give(Settled("1:read", Outcome.done("too late"), 70.0)).state == late
    finally:
        del STEP_TYPES["Await"]
