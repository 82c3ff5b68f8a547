"""Public events are made without the validator's serializer: their JSON is the same to the byte."""

from __future__ import annotations

import json
from typing import Any, get_args, get_origin

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopagent.core import limits
from loopagent.core.agent_spec import AgentSpec
from loopagent.core.facts import FACT_TYPES, ActionStarted, FactData
from loopagent.core.spending import Ancestor, Spent, Usage
from loopagent.core.state import RunState
from loopagent.core.steps.actions import Actions
from loopagent.core.told import json_of
from tests.core.test_reply_properties import DATA


OBJECT = st.dictionaries(st.text(max_size=3), DATA, max_size=3)
PLAIN: dict[Any, st.SearchStrategy[Any]] = {
    bool: st.booleans(),
    int: st.integers(),
    float: st.integers(-9, 9) | st.floats(allow_nan=False, allow_infinity=False),
    str: st.text(max_size=5),
    type(None): st.none(),
    Any: DATA,
}


def value_of(annotation: Any) -> st.SearchStrategy[Any]:
    if annotation in PLAIN:
        return PLAIN[annotation]
    if get_origin(annotation) is list:
        return st.lists(value_of(get_args(annotation)[0]), max_size=3)
    if get_origin(annotation) is dict:
        return st.dictionaries(st.text(max_size=3), value_of(get_args(annotation)[1]), max_size=3)
    members = get_args(annotation)
    if all(isinstance(one, str) for one in members):
        return st.sampled_from(members)
    return st.one_of(*(value_of(one) for one in members))


def fields_of(model: type[FactData]) -> st.SearchStrategy[dict[str, Any]]:
    fields = {name: value_of(one.annotation) for name, one in model.model_fields.items()}
    optional = {name for name, one in model.model_fields.items() if not one.is_required()}
    required = {name: one for name, one in fields.items() if name not in optional}
    return st.fixed_dictionaries(required, optional={name: fields[name] for name in optional})


@pytest.mark.parametrize("name", [name for name in FACT_TYPES if name])
def test_the_body_of_an_event_is_what_its_model_dumps(name: str) -> None:
    model = FACT_TYPES[name]

    @given(fields_of(model))
    def check(fields: dict[str, Any]) -> None:
        data = model(**fields)
        dumped = data.model_dump(by_alias=True, exclude_none=True)
        assert json.dumps(json_of(model.table, data.__dict__)) == json.dumps(dumped)
        given_ones = {one: getattr(data, one) for one in fields}
        assert json.dumps(json_of(model.table, given_ones)) == json.dumps(dumped)

    check()


def test_the_body_of_an_event_is_nobody_elses() -> None:
    params: dict[str, Any] = {"rows": [{"id": 1}]}
    body = json_of(ActionStarted.table, {"call_id": "1:a", "action": "a", "params": params})
    body["params"]["rows"][0]["id"] = 2
    assert params == {"rows": [{"id": 1}]}


def test_the_stored_request_of_a_step_is_nobody_elses() -> None:
    step = Actions.model_validate(
        {"type": "Actions", "actions": [{"name": "a", "params": {"rows": [{"id": 1}]}}]}
    )
    step.request()["actions"][0]["params"]["rows"][0]["id"] = 2
    assert step.actions[0].params == {"rows": [{"id": 1}]}


SECONDS = st.none() | st.floats(0.001, 100)


@given(
    SECONDS,
    st.lists(SECONDS, max_size=2),
    st.floats(0, 200_000),
    st.none() | st.integers(1, 99_000),
)
def test_an_effect_may_take_the_least_time_that_is_left(
    own: float | None, above: list[float | None], active_ms: float, wanted_ms: int | None
) -> None:
    state = RunState(
        id="r",
        spec=AgentSpec.model_validate({"name": "a", "limits": {"max_seconds": own}}),
        model="x",
        ancestors=tuple(Ancestor("p", "p", 50, seconds=one) for one in above),
        active_ms=active_ms,
    )
    known = [one for one in (own, *above) if one is not None]
    got = limits.timeout_ms(state, wanted_ms)
    if not known:
        assert got == wanted_ms
        return
    left_ms = max(0.0, min(known) * 1000.0 - active_ms)
    assert got is not None
    assert got == wanted_ms or left_ms < got <= left_ms + 1.001, "never before the limit is reached"
    assert wanted_ms is None or got <= wanted_ms


@given(st.integers(0, 60), st.integers(0, 60), st.booleans(), st.none() | st.integers(1, 200))
def test_the_quick_look_at_limits_finds_what_the_whole_one_finds(
    turn: int, below: int, planner: bool, max_tokens: int | None
) -> None:
    state = RunState(
        id="r",
        spec=AgentSpec.model_validate({"name": "a", "limits": {"max_tokens": max_tokens}}),
        model="x",
        turn=turn,
        below=Spent(turns=below),
        usage=Usage(input_tokens=turn),
    )
    found = limits.reached(state, turn=planner)
    if planner and turn + below >= 50:
        assert found == limits.Reached("maxTurns", turn + below, 50)
    elif max_tokens is not None and turn >= max_tokens:
        assert found == limits.Reached("maxTokens", turn, max_tokens)
    else:
        assert found is None


def test_what_is_told_without_a_model_is_what_its_model_dumps() -> None:
    told = {"callId": "1:a", "action": "a", "params": {"rows": [1]}, "skill": None}
    made = json_of(ActionStarted.table, {"call_id": "1:a", **told})
    assert list(made.items()) == list(
        ActionStarted(call_id="1:a", action="a", params={"rows": [1]})
        .model_dump(by_alias=True, exclude_none=True)
        .items()
    )
    made["params"]["rows"].append(2)
    assert told["params"] == {"rows": [1]}
