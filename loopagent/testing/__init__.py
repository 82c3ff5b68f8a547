"""What tests of stores and agents need; a store of one's own is checked by `loopagent.testing.store_conformance`."""

from __future__ import annotations

from loopagent.models.scripted import ScriptedModel
from loopagent.project.scenarios import Scenario, load_scenarios
from loopagent.runtime.replay import Recording, Replayed, read_recording, record, recording_lines
from loopagent.testing.jumping import JumpingLoop
from loopagent.testing.replaying import replay
from loopagent.testing.scenarios import ScenarioResult, run_scenario


__all__ = [
    "JumpingLoop",
    "Recording",
    "Replayed",
    "Scenario",
    "ScenarioResult",
    "ScriptedModel",
    "load_scenarios",
    "read_recording",
    "record",
    "recording_lines",
    "replay",
    "run_scenario",
]
