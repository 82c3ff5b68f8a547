"""What events say that a run is doing: `tests/vectors/loop_state.jsonl`, which the TypeScript client runs as well."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopagent import LoopFold, loop_state
from loopagent.core.facts import FACT_TYPES
from loopagent.core.loop_heard import HANDLERS
from loopagent.core.loop_view import OFFERS, STATE_OF_ASK, State
from loopagent.schemas import event_schema


VECTORS = Path(__file__).parent.parent / "vectors" / "loop_state.jsonl"
ROWS: list[dict[str, Any]] = [json.loads(line) for line in VECTORS.read_text().splitlines()]


def fold_of(row: dict[str, Any]) -> LoopFold:
    """The fold that a row begins with."""
    return LoopFold.of_run(row["run"]) if "run" in row else LoopFold(row.get("runId"))


@pytest.mark.parametrize("row", ROWS, ids=[one["name"] for one in ROWS])
def test_vector(row: dict[str, Any]) -> None:
    fold = fold_of(row)
    for event in row["events"]:
        fold.add(event)
    assert fold.state.public() == row["state"]
    if "run" not in row:
        assert loop_state(row["events"], row.get("runId")) == fold.state


def test_looking_at_the_state_changes_nothing() -> None:
    for row in ROWS:
        looked, plain = fold_of(row), fold_of(row)
        for event in row["events"]:
            looked.add(event)
            assert looked.state.public() == looked.state.public()
            plain.add(event)
        assert looked.state == plain.state


def test_the_vectors_cover_every_state_every_request_and_every_event_that_counts() -> None:
    assert {one["state"]["state"] for one in ROWS} == {
        *STATE_OF_ASK.values(),
        *("queued", "running", "streaming", "idle", "resumable"),
    }
    asks = [one["state"]["ask"] for one in ROWS if one["state"]["ask"]]
    assert {one["kind"] for one in asks} == STATE_OF_ASK.keys() | {
        one[0] for one in OFFERS.values()
    }
    assert {one["enabled"] for one in asks} == {True, False}
    assert {event.get("type") for one in ROWS for event in one["events"]} > HANDLERS.keys()


def test_the_events_of_the_vectors_are_events() -> None:
    schema = jsonschema_rs.validator_for(event_schema())
    for row in ROWS:
        for event in row["events"]:
            if event.get("type") in FACT_TYPES and not row.get("odd"):
                schema.validate(event)


KEYS = sorted(
    {"runId", "rootRunId", "parentRunId", "seq", "turn", "callId", "requestId", "attempt", "field"}
    | {"state", "ask", "agents", "fields", "requests", "children", "id", "status", "kind", "reason"}
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-1, 3)
    | st.sampled_from(["", "r", "r.1.sub.0", "idle"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5)
    ),
    max_leaves=12,
)
ODD = st.fixed_dictionaries(
    {"type": st.sampled_from([*HANDLERS, "run.created", "stream.reset"])},
    optional={"data": VALUES, "run": VALUES, "after": VALUES, "runId": VALUES, "seq": VALUES},
)


@settings(max_examples=200, deadline=None)
@given(st.lists(ODD, max_size=8), VALUES)
def test_whatever_events_hold_nothing_is_raised(events: list[dict[str, Any]], run: Any) -> None:
    fold = LoopFold.of_run(run) if isinstance(run, dict) else LoopFold()
    for event in events:
        fold.add(event)
    assert fold.state.public()["state"] in set(get_args(State))
    assert isinstance(fold.asks, list)
