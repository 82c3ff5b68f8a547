"""What is stored of a state: everything that says more than the defaults, and it comes back as it was."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pydantic import TypeAdapter
from pydantic_core import from_json

from loopagent.core.agent_spec import AgentSpec
from loopagent.core.breaker import ActionRecord, BreakerState
from loopagent.core.outcome import Outcome
from loopagent.core.outcomes import Outcomes
from loopagent.core.scratchpad import Scratchpad, Task
from loopagent.core.state import SCHEMA_VERSION, Artifact, Counters, RunState, StepInProgress, Usage
from loopagent.core.state_bytes import (
    APART_BYTES,
    dump_parts,
    dump_state,
    load_state,
)


SPEC = AgentSpec(name="tester")
FRESH = RunState(id="run_1", spec=SPEC, model="scripted:x")
FILLED = replace(
    FRESH,
    turn=3,
    payload={"none": None, "list": [1, 2.5, "é"]},
    scratchpad=Scratchpad(notes="a", tasks=(Task(id="1", title="t", status="pending"),)),
    breaker=BreakerState(actions={"work": ActionRecord(in_a_row=1, calls={"x": 1})}),
    step=StepInProgress(request={"type": "Chat"}, results=Outcomes({"a": Outcome.done(1)})),
    counters=Counters(mistakes=1, last_step="x"),
    usage=Usage(model_calls=1, cost_usd=0.5),
    notices=("look",),
)


def whole(state: RunState) -> dict[str, Any]:
    """The state as a pydantic adapter writes it, without any shortcut."""
    adapter = TypeAdapter(RunState)
    body = adapter.dump_json(state, exclude={"spec", "handler", "rendered"}, exclude_defaults=True)
    return {"schema_version": SCHEMA_VERSION, **from_json(body)}


@pytest.mark.parametrize("state", [FRESH, FILLED], ids=["fresh", "filled"])
def test_what_is_stored_is_what_the_adapter_writes_and_comes_back(state: RunState) -> None:
    body = dump_state(state)
    assert from_json(body) == whole(state)
    assert load_state(body, SPEC) == state


def test_a_large_payload_is_stored_apart_and_its_json_is_made_once() -> None:
    state = FILLED.fork()
    state.payload = {"text": "ä" * APART_BYTES}
    body, payload = dump_parts(state)
    assert payload is not None
    assert from_json(payload) == state.payload
    assert "payload" not in from_json(body)
    assert load_state(body, SPEC, payload=payload) == state
    following = state.fork()
    assert dump_parts(following)[1] is payload
    following.payload = {"text": "other"}
    assert dump_parts(following) == (dump_state(following), None)
    with pytest.raises(ValueError, match="part of it is missing"):
        load_state(body, SPEC)


def test_many_artifacts_are_not_in_what_is_stored() -> None:
    few, many = ([Artifact(f"X{one}", "0" * 64, one) for one in range(count)] for count in (15, 99))
    state = FILLED.fork()
    state.artifacts = tuple(few)
    assert dump_parts(state) == (dump_state(state), None)
    state.artifacts = tuple(many)
    body, payload = dump_parts(state)
    assert payload is None
    assert len(body) < len(dump_state(state)) / 4
    assert load_state(body, SPEC, artifacts=many) == state
    assert load_state(body, SPEC, artifacts=[*many, *few]) == state
    with pytest.raises(ValueError, match="part of it is missing"):
        load_state(body, SPEC, artifacts=few)


def test_states_share_what_is_empty() -> None:
    other = load_state(dump_state(FRESH), SPEC)
    for name in ("scratchpad", "plan", "view", "counters", "usage", "breaker", "below"):
        assert getattr(RunState(id="run_2", spec=SPEC, model="x"), name) is getattr(FRESH, name)
        assert getattr(other, name) is getattr(FRESH, name)


def test_a_copy_is_the_same_and_is_changed_alone() -> None:
    made = FILLED.fork()
    assert made == FILLED
    made.turn, made.pending = 9, {}
    assert FILLED.turn == 3
