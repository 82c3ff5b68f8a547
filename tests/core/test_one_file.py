"""A new step type is one class: declared here, it runs a whole turn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from loopagent.core.effects import ReadMessage
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
