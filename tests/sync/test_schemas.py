"""Generated files are what the classes say; the prompt stays small and the same."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest

from loopagent import resources, schemas
from loopagent.core.agent_spec import AgentSpec
from loopagent.core.dialects import DIALECTS, generation_schema
from loopagent.core.envelope import validate_envelope
from loopagent.core.prompt import system_parts, system_prompt
from loopagent.core.steps import STEP_TYPES
from tests.core.play import WORK
from tests.decoding import accepts


TEMPLATE = resources.prompt("system.md.j2")
TYPES = [
    "Actions",
    "Chat",
    "ClientTools",
    "ForEach",
    "Pipeline",
    "Plan",
    "Retry",
    "Skill",
    "Sub-Agent",
    "While",
]


def test_the_schema_files_are_in_step() -> None:
    assert schemas.check(resources.folder("schemas")) == []


def test_the_ten_step_types() -> None:
    assert sorted(name for name in STEP_TYPES if name in TYPES) == TYPES


@pytest.mark.parametrize("name", TYPES)
def test_every_example_is_a_valid_reply(name: str) -> None:
    example = STEP_TYPES[name].example
    assert not isinstance(validate_envelope(example), list)
    assert jsonschema_rs.is_valid(schemas.reply_schema(), example)


def test_every_event_type_has_a_schema() -> None:
    schema = schemas.event_schema()
    event = {
        "seq": 1,
        "id": "r.1",
        "runId": "r",
        "ts": 1.0,
        "type": "turn.started",
        "decidedBy": "engine",
        "data": {},
    }
    assert jsonschema_rs.is_valid(schema, event)
    assert not jsonschema_rs.is_valid(schema, {**event, "type": "turn.begun"})


DONE = '{"reasoning":"r","taskComplete":true,"message":"ok"}'
CALL = '{"reasoning":"r","taskComplete":false,"nextStep":{"type":"Actions","actions":[{"name":"work","params":{"item":1}}]}}'


def test_the_grammar_dialect_knows_the_client_tools_by_name() -> None:
    schema = generation_schema(
        "grammar", step_types=["ClientTools"], client_tools=[("work", WORK.parameters)]
    )
    call = CALL.replace("Actions", "ClientTools").replace("actions", "clientTools")
    assert accepts(schema, call)
    assert not accepts(schema, call.replace("work", "wrok"))
    assert not accepts(schema, call.replace("1}", '"x"}'))


def test_the_grammar_dialect_writes_replies_and_nothing_else() -> None:
    schema = generation_schema(
        "grammar", step_types=["Actions", "Chat"], actions=[("work", WORK.parameters)]
    )
    assert accepts(schema, DONE)
    assert accepts(schema, CALL)
    for bad in (
        CALL.replace("work", "wrok"),
        CALL.replace("1}", '"x"}'),
        CALL.replace("false", '"false"'),
        '{"taskComplete":false,"message":"x"}',
        "done",
        DONE + DONE,
    ):
        assert not accepts(schema, bad), bad


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_compiles_and_has_no_object_that_must_stay_empty(dialect: Any) -> None:
    schema = generation_schema(dialect, step_types=TYPES)
    assert accepts(schema, "{" + '"x"' + "}") is False
    for one in _objects(schema):
        assert (
            one.get("additionalProperties") is not None
            or "$ref" in one
            or one.get("properties") is not None
        )
        assert not (one.get("properties") == {} and one.get("additionalProperties") is False)
        if dialect == "openai" and "properties" in one:
            assert sorted(one["required"]) == sorted(one["properties"])


def _objects(value: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    if isinstance(value, dict):
        found = [value] if value.get("type") == "object" else []
        for one in value.values():
            found += _objects(one)
    elif isinstance(value, list):
        for one in value:
            found += _objects(one)
    return found


def test_the_protocol_part_of_the_prompt_is_small_and_byte_stable() -> None:
    bare = AgentSpec(name="bare", actions=(WORK,), steps=("Actions", "Chat", "Retry"))
    parts = system_parts(TEMPLATE, bare)
    text = system_prompt(TEMPLATE, bare)
    assert text == system_prompt(TEMPLATE, bare.model_copy())
    assert text == "".join(one.text for one in parts)
    assert sum(one.tokens for one in parts if one.protocol) <= 1_000
    assert "ForEach" not in text
    assert "# Actions" not in system_prompt(TEMPLATE, AgentSpec(name="bare"))
    assert "## Chat" not in system_prompt(TEMPLATE, AgentSpec(name="bare", autonomy="autonomous"))


def test_the_protocol_part_stays_small_with_every_step_type() -> None:
    parts = system_parts(TEMPLATE, AgentSpec(name="all", actions=(WORK,)), sorted(STEP_TYPES))
    assert {f"step:{name}" for name in STEP_TYPES} < {one.name for one in parts}
    assert sum(one.tokens for one in parts if one.protocol) <= 2_500
    text = "".join(one.text for one in parts)
    assert text.count("type LoopAction =") == 1  # a type that several steps use is written out once


def test_every_part_of_a_prompt_is_named() -> None:
    spec = AgentSpec.model_validate(
        {
            "name": "whole",
            "actions": (WORK,),
            "instructions": "Do.",
            "standing": ("Be kind.", "Be brief."),
            "payload": {"schema": {"type": "object"}},
        }
    )
    named = {one.name: one.text for one in system_parts(TEMPLATE, spec)}
    assert list(named)[:2] == ["agent", "protocol"]
    assert list(named)[-4:] == ["actions", "payload schema", "instructions", "standing"]
    assert named["standing"].split("\n\n") == ["\nBe kind.", "Be brief.\n"]
    assert named["instructions"].strip() == "# Your job\nDo."


def test_braces_in_instructions_reach_the_model_as_written() -> None:
    tricky = 'Use {"a": 1}, {name}, {{x}}, {% if %}, ${y} and a lone {.'
    text = system_prompt(TEMPLATE, AgentSpec(name="bare", instructions=tricky))
    assert tricky in text
