"""Constrained decoding by each dialect can write every reply, and nothing that is none."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from loopagent.core.dialect_writer import typed
from loopagent.core.dialects import DIALECTS, SIDE_CHANNELS, Dialect, generation_schema
from loopagent.core.envelope import validate_envelope
from loopagent.core.reply import read_reply
from loopagent.core.steps import STEP_TYPES
from loopagent.errors import ConfigError
from tests.decoding import CannotBeWrittenError, accepts, text_of


Json = dict[str, Any]
MAX_OPTIONAL = 24
MAX_UNIONS = 16
TYPES = sorted(STEP_TYPES)
FORM = {
    "questions": [
        {"id": "q", "label": "Q", "type": {"type": "slider", "min": 0, "max": 9}},
        {
            "id": "r",
            "label": "R",
            "type": {"type": "radio", "options": [{"value": 1, "label": "1"}]},
        },
    ]
}
SIDE: Json = {
    "payloadChangeRequest": {
        "newElements": {"a": None, "b": [1]},
        "removeElements": {"c": "__DELETE__"},
    },
    "scratchpad": {"taskList": {"upsert": [{"id": "1", "title": "t", "status": "pending"}]}},
    "memoryWrites": [{"note": "n", "type": "Context"}],
    "responseForm": FORM,
    "actionableCommands": [
        {"type": "open:resource", "label": "L", "resourceType": "View", "parameters": {"x": None}}
    ],
    "automaticCommands": [{"type": "notification", "message": "m"}],
    "confidence": 0.5,
}
READS: Json = {
    "artifactToolCalls": [{"artifactId": "A", "tool": "get_full", "input": {"page": 1}}],
    "conversationToolCalls": [{"tool": "searchConversation", "input": {"query": "x"}}],
}
NESTED = [
    {"tool": "List", "with": {"deep": {"a": None}}},
    {"map": {"do": [{"let": {"name": "n", "value": [{"tool": "Get"}]}}, {"count": True}]}},
    {"groupBy": {"by": ["a", "b"], "sum": "c"}},
]
GOING: Json = {"reasoning": "r", "taskComplete": False}
SAMPLES: list[Json] = [
    *[{"reasoning": "r", **STEP_TYPES[name].example} for name in TYPES],
    {"reasoning": "r", "taskComplete": True, "message": "done"},
    {"reasoning": "r", "taskComplete": True, "message": "done", **SIDE},
    {**GOING, "message": "m", **SIDE, **READS, "nextStep": {"type": "Chat"}},
    {**GOING, "scratchpad": {"notes": ""}, "nextStep": {"type": "Retry"}},
    {**GOING, "nextStep": {"type": "Pipeline", "pipeline": {"steps": NESTED}}},
    {**GOING, "nextStep": {"type": "Sub-Agent", "subAgents": [
        {"name": "s", "message": "m", "templateParameters": {"x": [1]}}]}},
    {**GOING, "nextStep": {"type": "Actions", "actions": [{"name": "a", "params": {"x": {}, "y": None}}]}},
]  # fmt: skip


def nodes(schema: Any) -> Iterator[Json]:
    if isinstance(schema, dict):
        yield schema
        for key, one in schema.items():
            if key not in ("enum", "required"):
                yield from nodes(list(one.values()) if key in ("properties", "$defs") else one)
    elif isinstance(schema, list):
        for one in schema:
            yield from nodes(one)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_reply_can_be_written_and_is_read_as_meant(dialect: Dialect) -> None:
    schema = generation_schema(dialect, step_types=TYPES)
    for reply in SAMPLES:
        text = text_of(reply, dialect, schema)
        assert accepts(schema, text), text
        reading, meant = read_reply(text), validate_envelope(reply)
        assert reading.response == meant
        pads = [one.get("scratchpad") or {} for one in (reading.reply, reply)]
        assert len({"notes" in one for one in pads}) == 1  # null notes would clear them
        for key in ("payloadChangeRequest", "responseForm", "scratchpad"):
            assert plain(reading.reply.get(key)) == plain(reply.get(key)), key


def plain(value: Any) -> Any:
    """Without the nulls that stand for absent fields; those in payload data stay."""
    if isinstance(value, list):
        return [plain(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {
        key: one if key == "newElements" else plain(one)
        for key, one in value.items()
        if one is not None
    }


def counter_samples(good: str) -> list[str]:
    return [
        good.replace('"Actions"', '"Act"'),
        good.replace('"actions"', '"skills"'),
        good.replace('"actions": [', '"actions": [[').replace("]}", "]]}"),
        good.replace("false", '"false"'),
        good.replace("false", "true"),
        good.replace('"reasoning"', '"thinking"'),
        good.replace('"name": "search"', '"name": 5'),
        good.replace('"name": "search"', '"name": "search", "id": 1'),
        good.replace('"', "'"),
        good[:-1] + ",}",
        good[:-1],
        good + good,
        f"```json\n{good}\n```",
        f"Here it is: {good}",
        good.replace('"r"', '"r\n"'),
        good.replace('"r"', "NaN"),
    ]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_is_no_reply_cannot_be_written(dialect: Dialect) -> None:
    schema = generation_schema(dialect, step_types=TYPES)
    good = text_of(SAMPLES[0], dialect, schema)
    for text in counter_samples(good):
        assert text != good
        assert not accepts(schema, text), text
    for bad in ({**GOING, "message": "m"}, {**GOING, "nextStep": {"type": "Tasks"}}):
        with pytest.raises(CannotBeWrittenError):
            text_of(bad, dialect, schema)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_only_what_the_agent_may_use_is_in_it(dialect: Dialect) -> None:
    schema = generation_schema(dialect, step_types=["Actions", "Chat"], features=["scratchpad"])
    for reply in SAMPLES:
        kind = reply.get("nextStep", {}).get("type", "Chat")
        fits = kind in ("Actions", "Chat") and not reply.keys() & {*SIDE, *READS} - {"scratchpad"}
        if fits:
            assert accepts(schema, text_of(reply, dialect, schema))
        else:
            with pytest.raises(CannotBeWrittenError):
                text_of(reply, dialect, schema)
    done = generation_schema(dialect, step_types=[], features=[])
    assert "$defs" not in done or done["$defs"] == {}
    assert accepts(
        done, text_of({"reasoning": "r", "taskComplete": True, "message": "m"}, dialect, done)
    )


@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_object_must_stay_empty_and_every_one_says_whether_it_is_closed(
    dialect: Dialect,
) -> None:
    for node in nodes(generation_schema(dialect, step_types=TYPES)):
        if node.get("type") == "object":
            assert isinstance(node["additionalProperties"], bool)
            assert node.get("properties") or node["additionalProperties"]
            assert dialect == "grammar" or not node["additionalProperties"]
        assert not node.keys() & {
            "oneOf",
            "allOf",
            "not",
            "pattern",
            "title",
            "default",
            "maxLength",
        }
        assert not [key for key in node if key.startswith("x-")]
        assert "\n" not in str(node.get("description", ""))


def test_openai_wants_every_field_and_a_plain_object_as_root() -> None:
    schema = generation_schema("openai", step_types=TYPES)
    assert list(schema["properties"]) == ["turn"]
    for node in nodes(schema):
        if "properties" in node:
            assert node["required"] == list(node["properties"])


def test_anthropic_stays_within_its_limits() -> None:
    schema = generation_schema("anthropic", step_types=TYPES)
    outside = list(nodes({key: one for key, one in schema.items() if key != "$defs"}))
    optional = sum(
        len(one["properties"]) - len(one["required"]) for one in outside if "properties" in one
    )
    assert optional <= MAX_OPTIONAL
    assert sum("anyOf" in one for one in outside) <= MAX_UNIONS
    for node in nodes(schema):
        assert not node.keys() & {"minimum", "maximum", "maxItems", "multipleOf"}
        assert node.get("minItems", 1) == 1
    assert not any(_leads_to(name, name, schema["$defs"]) for name in schema["$defs"])


def _leads_to(start: str, goal: str, defs: Json) -> bool:
    todo, seen = [start], set[str]()
    while todo:
        for node in nodes(defs[todo.pop()]):
            name = str(node.get("$ref", "")).rpartition("/")[2]
            if name == goal:
                return True
            if name and name not in seen:
                seen.add(name)
                todo.append(name)
    return False


def test_the_same_agent_sends_the_same_bytes() -> None:
    one = generation_schema(
        "openai", step_types=["Chat", "Actions"], features={"scratchpad", "confidence"}
    )
    two = generation_schema(
        "openai", step_types=["Chat", "Actions"], features=["confidence", "scratchpad"]
    )
    assert json.dumps(one) == json.dumps(two)
    one.clear()
    assert two == generation_schema(
        "openai", step_types=["Chat", "Actions"], features=["confidence", "scratchpad"]
    )


def test_what_does_not_exist_is_the_hosts_mistake() -> None:
    with pytest.raises(ConfigError, match="unknown step type Tasks"):
        generation_schema("grammar", step_types=["Tasks"])
    with pytest.raises(ConfigError, match="unknown feature telepathy"):
        generation_schema("grammar", step_types=["Chat"], features=["telepathy"])
    assert set(SIDE) | set(READS) == set(SIDE_CHANNELS)


SEARCH: Json = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "minLength": 1, "pattern": "^(?!x)"},
        "limit": {"type": "integer", "minimum": 1, "maximum": 9, "default": 5},
        "sort": {"$ref": "#/$defs/Sort"},
        "near": {"anyOf": [{"type": "number"}, {"type": "null"}]},
        "tags": {"type": ["array", "null"], "items": {"type": "string"}},
        "filter": {"type": "object"},
    },
    "required": ["query", "near"],
    "$defs": {"Sort": {"enum": ["up", "down"], "type": "string"}},
}
TREE: Json = {
    "type": "object",
    "properties": {"root": {"$ref": "#/$defs/Node"}},
    "$defs": {"Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}},
}
CATALOGUE: list[tuple[str, Json]] = [
    ("search", SEARCH),
    ("now", {"type": "object", "properties": {}}),
    ("tree", TREE),
    ("any", {}),
]


def call(name: str, params: Json | None) -> Json:
    made = {"name": name} if params is None else {"name": name, "params": params}
    return {**GOING, "nextStep": {"type": "Actions", "actions": [made]}}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_calls_are_typed_by_the_actions_an_agent_has(dialect: Dialect) -> None:
    schema = generation_schema(dialect, step_types=["Actions"], features=[], actions=CATALOGUE)
    for good in (
        call("search", {"query": "x", "near": None}),
        call(
            "search", {"query": "x", "near": 1.5, "sort": "up", "tags": ["a"], "filter": {"a": 1}}
        ),
        call("now", None),
        call("tree", {"root": {"next": {}}}),
        call("any", {"what": "ever"}),
    ):
        text = text_of(good, dialect, schema)
        assert accepts(schema, text), text
        reading = read_reply(text)
        assert reading.outcome == "step"
    for bad in (
        call("serach", {"query": "x", "near": 1}),
        call("search", {"query": 5, "near": 1}),
        call("search", {"query": "x", "near": 1, "sort": "sideways"}),
        call("search", {"query": "x", "near": 1, "more": 1}),
        call("now", {"x": 1}),
    ):
        with pytest.raises(CannotBeWrittenError):
            text_of(bad, dialect, schema)


def test_parameters_that_cannot_be_expressed_stay_free() -> None:
    free = {"type": "object", "additionalProperties": True}
    for schema in (
        TREE,
        {"type": "object", "properties": {"a": {"not": {}}}},
        {"properties": {"a": {"$ref": "#/elsewhere"}}},
        {"type": "object", "additionalProperties": {"type": "string"}},
        {},
    ):
        assert typed(schema) == free
    assert typed({"type": "object", "properties": {}, "additionalProperties": False}) is None
