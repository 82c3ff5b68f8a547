"""What models bring along from other protocols is read as it is meant, so no call runs without its parameters."""

from __future__ import annotations

import json
from typing import Any

import pytest

from loopagent.core.reply import read_reply


Json = dict[str, Any]


def read(kind: str, **body: Any) -> tuple[Json, list[str]]:
    """The step as it is understood, and the warnings."""
    reply = {"taskComplete": False, "nextStep": {"type": kind, **body}}
    reading = read_reply(json.dumps(reply))
    assert reading.response is not None, reading.problems
    assert reading.response.next_step is not None
    made = reading.response.next_step.model_dump(by_alias=True, exclude_defaults=True)
    return made, list(reading.warnings)


@pytest.mark.parametrize("key", ["parameters", "arguments", "args", "input", "inputs", "with"])
def test_parameters_have_many_names(key: str) -> None:
    made, warnings = read("Actions", actions=[{"name": "look", key: {"q": "x"}}])
    assert made["actions"] == [{"name": "look", "params": {"q": "x"}}]
    assert warnings == [f"nextStep.actions[0].{key}: read as params"]


def test_arguments_may_be_json_text() -> None:
    made, _ = read("Actions", actions=[{"tool": "look", "arguments": '{"q": "x"}'}])
    assert made["actions"] == [{"name": "look", "params": {"q": "x"}}]


@pytest.mark.parametrize("call", [{"params": {"q": 1}, "input": {"q": 2}}, {"input": "words"}])
def test_what_cannot_be_meant_is_left_out(call: Json) -> None:
    made, warnings = read("Actions", actions=[{"name": "look", **call}])
    assert made["actions"][0].get("params", {}) == call.get("params", {})
    assert warnings == ["nextStep.actions[0].input: not part of the protocol, left out"]


def test_names_inside_of_data_are_data() -> None:
    params = {"arguments": {"args": 1}, "with": {}}
    made, warnings = read("Actions", actions=[{"name": "look", "params": params}])
    assert made["actions"][0]["params"] == params
    assert warnings == []


def test_every_kind_of_call_forgives_them() -> None:
    stages = [{"tool": "look", "params": {"q": 1}}, {"tool": "mail", "args": {"to": "a"}}]
    made, _ = read("Pipeline", pipeline={"steps": stages})
    assert [one["with"] for one in made["pipeline"]["steps"]] == [{"q": 1}, {"to": "a"}]
    made, _ = read("ClientTools", clientTools=[{"tool": "pick", "input": {"x": 1}}])
    assert made["clientTools"] == [{"name": "pick", "params": {"x": 1}}]
    made, _ = read("Sub-Agent", subAgents=[{"agent": "k", "task": "Do.", "parameters": {"a": 1}}])
    work = {"name": "k", "message": "Do.", "templateParameters": {"a": 1}}
    assert made["subAgents"] == [work]
    made, _ = read("ForEach", forEach={"collectionPath": "xs", "subAgent": work})
    assert made["forEach"]["subAgent"] == work


def test_a_mapping_beside_the_action_of_a_loop_is_its_own() -> None:
    loop = {"collectionPath": "xs", "outputMapping": {"*": "out[]"}}
    made, warnings = read("ForEach", forEach={**loop, "action": {"name": "a", "args": {"n": 1}}})
    assert made["forEach"]["action"] == {
        "name": "a",
        "params": {"n": 1},
        "outputMapping": {"*": "out[]"},
    }
    assert "nextStep.forEach.outputMapping: moved to action" in warnings
    own = {"name": "a", "outputMapping": {"x": "y"}}
    made, warnings = read("ForEach", forEach={**loop, "action": own})
    assert made["forEach"]["action"] == own
    assert warnings == ["nextStep.forEach.outputMapping: not part of the protocol, left out"]


def test_a_stage_with_two_verbs_is_refused_and_none_of_them_lost() -> None:
    stages = [{"tool": "look"}, {"select": "id", "first": 1}]
    reply = {"taskComplete": False, "nextStep": {"type": "Pipeline", "pipeline": {"steps": stages}}}
    (problem,) = read_reply(json.dumps(reply)).problems
    assert problem.path == "nextStep.pipeline.steps[1]"
    assert "exactly one of tool, where" in problem.message
    nulls = {**dict.fromkeys(("tool", "where", "first"), None), "Select": "id"}
    made, _ = read("Pipeline", pipeline={"steps": [{"tool": "look"}, nulls]})
    assert made["pipeline"]["steps"][1] == {"select": "id"}
