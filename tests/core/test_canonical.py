"""A reply that needs no folding is taken as it is: the same, to the byte, as if it had been folded."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import SchemaValidator

from loopagent.core.canonical import canonical_reply
from loopagent.core.envelope import (
    LoopAgentResponse,
    envelope_at_a_glance,
    everyday,
    validate_envelope,
)
from loopagent.core.fold import Folder
from loopagent.core.fold_values import MAX_ENTRIES
from loopagent.core.protocol.base import Wire
from loopagent.core.steps import STEP_TYPES
from tests.core.test_reply_properties import DATA, REPLIES


Json = dict[str, Any]
WHOLE = st.sampled_from([step.example for step in STEP_TYPES.values() if step.example])
OTHER_KEYS = st.sampled_from(
    ["TaskComplete", "next_step", "type", "actions", "extra", "subAgent", "subAgents", "params", "confidence"]
)  # fmt: skip
OTHER_VALUES = DATA | st.sampled_from(
    [None, True, "true", "0.5", 1.5, -1, "{}", "[]", [], {}, "chat", "Chat"]
)


@st.composite
def near(draw: st.DrawFn) -> Any:
    """A good reply in which one place was changed: a key, a value, or something more."""
    reply = json.loads(json.dumps(draw(REPLIES | WHOLE)))
    objects = [one for one in walk(reply) if isinstance(one, dict)]
    place = draw(st.sampled_from(objects))
    key = draw(st.sampled_from(list(place)) | OTHER_KEYS) if place else draw(OTHER_KEYS)
    change = draw(st.sampled_from(["value", "rename", "drop", "nothing"]))
    if change == "value":
        place[key] = draw(OTHER_VALUES)
    elif change == "rename" and key in place:
        place[draw(OTHER_KEYS)] = place.pop(key)
    elif change == "drop":
        place.pop(key, None)
    return reply


def walk(value: Any) -> list[Any]:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [value, *(two for one in inner for two in walk(one))]


def folded(value: Any, max_entries: int) -> tuple[Any, list[str], list[Any]]:
    folder = Folder(max_entries)
    return folder.fold(value), folder.warnings, folder.problems


@given(near() | DATA, st.sampled_from([0, 1, 2, MAX_ENTRIES]))
def test_what_is_taken_as_it_is_would_be_folded_to_the_same_bytes(
    value: Any, max_entries: int
) -> None:
    before = json.dumps(value)
    found = canonical_reply(value, max_entries)
    assert json.dumps(value) == before, "what was given is changed"
    if found is not None:
        reply, warnings, problems = folded(value, max_entries)
        assert (json.dumps(found), [], []) == (json.dumps(reply), warnings, problems)


@given(near() | REPLIES | DATA, st.sampled_from([0, 1, 2, MAX_ENTRIES]))
def test_what_is_seen_at_a_glance_is_what_a_close_look_finds(value: Any, max_entries: int) -> None:
    before = json.dumps(value)
    seen = envelope_at_a_glance(value, max_entries)
    assert json.dumps(value) == before, "what was given is changed"
    if seen is not None:
        reply = canonical_reply(value, max_entries)
        valid = validate_envelope(reply)
        assert isinstance(valid, LoopAgentResponse)
        assert json.dumps(seen[0]) == json.dumps(reply)
        assert every_part(seen[1]) == every_part(valid)
        step = seen[1].next_step
        if step is not None:
            dumped = step.model_dump(by_alias=True, exclude_none=True, mode="json")
            assert json.dumps(step.request()) == json.dumps(dumped)


def every_part(one: Any) -> Any:
    """All that two objects of the protocol can differ in."""
    if isinstance(one, Wire):
        inner = [(name, every_part(value)) for name, value in one.__dict__.items()]
        return type(one), inner, one.model_fields_set, one.model_dump_json(), one.model_extra
    return [every_part(two) for two in one] if isinstance(one, list) else repr(one)


def test_calls_of_actions_are_seen_at_a_glance() -> None:
    calls = [{"name": "a", "params": {"x": [1, None]}}, {"name": "b", "params": {}}]
    step: Json = {"type": "Actions", "actions": calls}
    reply: Json = {"nextStep": step, "message": "m", "taskComplete": False}
    seen = envelope_at_a_glance(reply, 2)
    assert seen is not None
    assert list(seen[0]) == ["message", "taskComplete", "nextStep"]
    assert every_part(seen[1]) == every_part(validate_envelope(reply))
    assert envelope_at_a_glance(reply, 1) is None
    assert envelope_at_a_glance({**reply, "taskComplete": True}, 2) is None
    wrong: list[Any] = [[], "[]", [{"name": " ", "params": {}}], [{"name": 5, "params": {}}]]
    for one in [*wrong, [{"name": "a"}], ["a"], [{"name": "a", "params": "{}"}]]:
        assert envelope_at_a_glance({**reply, "nextStep": {**step, "actions": one}}, 2) is None


@pytest.mark.parametrize("name", [name for name, step in STEP_TYPES.items() if step.example])
def test_the_example_of_every_step_type_needs_no_folding(name: str) -> None:
    example = STEP_TYPES[name].example
    taken = canonical_reply(example) is not None
    assert taken == (not {"subAgent", "subAgents"} & set(example["nextStep"]) and _no_variant(name))


def _no_variant(name: str) -> bool:
    """Pipelines hold stages of several types, which are told apart while they are folded."""
    return name != "Pipeline"


@given(REPLIES)
def test_ordinary_replies_need_no_folding(reply: Json) -> None:
    both = reply.get("taskComplete") is True and "nextStep" in reply
    assert (canonical_reply(reply) is None) == both


def test_without_what_sees_everyday_replies_each_is_looked_at_closely() -> None:
    assert isinstance(everyday(SchemaValidator), SchemaValidator)

    def older(schema: Any) -> SchemaValidator:
        return SchemaValidator(schema)

    assert everyday(older) is None
