"""What tests of stores and agents need."""

from __future__ import annotations

from loopagent.models.scripted import ScriptedModel
from loopagent.project.scenarios import Scenario, load_scenarios
from loopagent.testing.jumping import JumpingLoop
from loopagent.testing.scenarios import ScenarioResult, run_scenario


__all__ = [
    "JumpingLoop",
    "Scenario",
    "ScenarioResult",
    "ScriptedModel",
    "load_scenarios",
    "run_scenario",
]
