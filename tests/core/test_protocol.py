"""The wire types: what is taken, how it is kept, and how everything wrong is named at once."""

from __future__ import annotations

import json
from typing import Any, Literal

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopagent import schemas
from loopagent.core.envelope import LoopAgentResponse, validate_envelope
from loopagent.core.feedback import refusal_feedback
from loopagent.core.problems import Problem, path_text, shorten
from loopagent.core.protocol import AgentPipelineRequest, pipeline_problems
from loopagent.core.steps import STEP_TYPES, NextStep
from loopagent.core.steps.sub_agent import SubAgent, SubAgentCall
from loopagent.core.steps.while_loop import While


Json = dict[str, Any]
DEEP = "[" * 100_000


def taken(reply: Json) -> LoopAgentResponse:
    found = validate_envelope(reply)
    assert not isinstance(found, list), found
    return found


def refused(reply: object) -> dict[str, str]:
    """Path → message of everything that is wrong."""
    found = validate_envelope(reply)
    assert isinstance(found, list), found
    assert len({one.path for one in found}) == len(found)
    return {one.path: one.message for one in found}


def step(kind: str, **body: Any) -> Json:
    return {"taskComplete": False, "nextStep": {"type": kind, **body}}


def dumped(reply: LoopAgentResponse) -> Json:
    return reply.model_dump(mode="json", by_alias=True, exclude_none=True)


def question(**kind: Any) -> Json:
    form = {"questions": [{"id": "q", "label": "Q", "type": kind}]}
    return {"message": "?", "responseForm": form}


OPTIONS = [{"value": "a", "label": "A"}, {"value": 2, "label": "B"}, {"value": True, "label": "C"}]
QUESTIONS: list[Json] = [
    {"type": "text", "placeholder": "name", "maxLength": 20},
    {"type": "textarea", "markdown": True},
    {"type": "email"},
    {"type": "number", "min": 1, "max": 2.5},
    {"type": "currency", "prefix": "EUR"},
    {"type": "date"},
    {"type": "datetime"},
    {"type": "buttongroup", "options": OPTIONS},
    {"type": "radio", "options": OPTIONS},
    {"type": "dropdown", "options": OPTIONS},
    {"type": "checkbox", "options": OPTIONS, "multiple": True},
    {"type": "slider", "min": 0, "max": 10, "step": 0.5, "suffix": "%"},
    {"type": "daterange"},
    {"type": "time"},
]
STAGES: list[Json] = [
    {"tool": "List", "with": {"a": None}, "pipeInto": "rows"},
    {"where": "Balance > 0"},
    {"select": ["Id", "Vendor.Name"]},
    {"sort": "-Balance"},
    {"first": 3},
    {"last": 3},
    {"count": True},
    {"distinct": "Id"},
    {"flatten": True},
    {"groupBy": {"by": ["Vendor"], "sum": "Balance"}},
    {"jsonpath": "$.rows[*]"},
    {"lines": True},
    {"grep": {"pattern": "x", "ignoreCase": True}},
    {"head": 3},
    {"tail": 3},
    {"map": {"as": "row", "do": [{"tool": "Get", "with": {"id": "{{row.id}}"}}]}},
    {"let": {"name": "all", "value": [{"tool": "List"}, {"count": True}]}},
]
EACH = {"collectionPath": "orders", "action": {"name": "a", "params": {}}}
GOOD: list[Json] = [
    *[one.example for one in STEP_TYPES.values()],
    *[question(**kind) for kind in QUESTIONS],
    *[step("Pipeline", pipeline={"steps": [STAGES[0], stage]}) for stage in STAGES],
    {},
    {"taskComplete": True, "message": "ok", "confidence": 3, "reasoning": None, "nextStep": None},
    {"payloadChangeRequest": {"newElements": {"a": None}, "customer": None}},
    {"payloadChangeRequest": {"newElements": '{"a": null}', "removeElements": None}},
    {"scratchpad": {"notes": None, "taskList": {"remove": ["1"]}}},
    {"memoryWrites": [{"note": "Likes EUR.", "type": "Preference", "scopeHint": "user"}]},
    {"artifactToolCalls": [{"artifactId": "A", "tool": "get_full", "input": ""}]},
    {"conversationToolCalls": [{"tool": "searchConversation", "input": {"query": "x"}}]},
    {"actionableCommands": [{"type": "open:url", "label": "L", "url": "https://a.b"}]},
    {"actionableCommands": [{"type": "their:own", "size": None, "deep": {"a": [1]}}]},
    {"automaticCommands": [{"type": "notification", "message": "m", "duration": 0}]},
    step("Chat"),
    step("Retry"),
    step("Actions", actions=[{"name": "a"}, {"name": "b", "params": '{"x": [1]}'}]),
    step("ClientTools", clientTools=[{"Name": "a", "params": {}, "TimeoutMs": 0}]),
    step("Sub-Agent", subAgent={"name": "s", "message": "m"}),
    step("Sub-Agent", subAgents=[], subAgent={"name": "s", "message": "m", "resumeRunId": "r"}),
    step("ForEach", forEach={**EACH, "itemVariable": " ", "indexVariable": ""}),
    step("While", **{"while": {"condition": "attempt < 3", "action": {"name": "a"}}}),
]
BAD: list[tuple[Json, set[str]]] = [
    ({"taskComplete": "true", "message": 5}, {"taskComplete", "message"}),
    ({"nextStep": "Chat"}, {"nextStep"}),
    ({"nextStep": {}}, {"nextStep.type"}),
    (step("Nope"), {"nextStep.type"}),
    ({"nextStep": {"type": ["Chat"]}}, {"nextStep.type"}),
    (step("Actions"), {"nextStep.actions"}),
    (step("Actions", actions=[]), {"nextStep.actions"}),
    (
        step("Actions", actions=[{"name": " ", "params": []}, {"params": {}}]),
        {
            "nextStep.actions[0].name",
            "nextStep.actions[0].params",
            "nextStep.actions[1].name",
        },
    ),
    (step("Plan", plan=" \n"), {"nextStep.plan"}),
    (step("Skill", skills=[{"reason": "r"}]), {"nextStep.skills[0].name"}),
    (step("Retry", messageIndex=-1), {"nextStep.messageIndex"}),
    (step("Retry", messageIndex=True), {"nextStep.messageIndex"}),
    (step("Sub-Agent"), {"nextStep.subAgents"}),
    (step("Sub-Agent", subAgents=[]), {"nextStep.subAgents"}),
    (
        step("Sub-Agent", subAgent={}),
        {"nextStep.subAgent.name", "nextStep.subAgent.message"},
    ),
    (
        step("Sub-Agent", subAgents=[{"name": "s", "message": " ", "terminateAfter": "yes"}]),
        {"nextStep.subAgents[0].message", "nextStep.subAgents[0].terminateAfter"},
    ),
    (step("ForEach", forEach={**EACH, "maxIterations": 0}), {"nextStep.forEach.maxIterations"}),
    (
        step("ForEach", forEach={"subAgent": {"name": "s", "message": "m"}, "action": {}}),
        {"nextStep.forEach.action", "nextStep.forEach.collectionPath"},
    ),
    (
        step("While", **{"while": {"maxIterations": "many"}}),
        {
            "nextStep.while.condition",
            "nextStep.while.action",
            "nextStep.while.maxIterations",
        },
    ),
    (step("Pipeline", pipeline={"steps": []}), {"nextStep.pipeline.steps"}),
    (step("Pipeline", pipeline={"steps": STAGES[:1] * 21}), {"nextStep.pipeline.steps"}),
    (
        step("Pipeline", pipeline={"steps": [STAGES[0], {"tool": "a", "first": 1}, {"x": 1}, 5]}),
        {f"nextStep.pipeline.steps[{index}]" for index in (1, 2, 3)},
    ),
    (
        step("Pipeline", pipeline={"steps": [STAGES[0], {"map": {"do": [{"first": "x"}]}}]}),
        {"nextStep.pipeline.steps[1].map.do[0].first"},
    ),
    (
        question(type="text", maxLength="x", markdown=1),
        {
            "responseForm.questions[0].type.maxLength",
            "responseForm.questions[0].type.markdown",
        },
    ),
    (question(type="rating"), {"responseForm.questions[0].type.type"}),
    (
        question(type="radio", options=[{"value": [], "label": 1}]),
        {
            "responseForm.questions[0].type.options[0].value",
            "responseForm.questions[0].type.options[0].label",
        },
    ),
    ({"responseForm": {"questions": []}}, {"responseForm.questions"}),
    ({"actionableCommands": [{"label": "L"}]}, {"actionableCommands[0].type"}),
    (
        {"actionableCommands": [{"type": "open:url"}]},
        {f"actionableCommands[0].{one}" for one in ("label", "url")},
    ),
    (
        {"scratchpad": {"taskList": {"upsert": [{"id": "1", "title": "t", "status": "done"}]}}},
        {"scratchpad.taskList.upsert[0].status"},
    ),
    (
        {"memoryWrites": [{"note": "", "type": ""}]},
        {"memoryWrites[0].note", "memoryWrites[0].type"},
    ),
]


@pytest.mark.parametrize("reply", GOOD, ids=[f"good{index}" for index in range(len(GOOD))])
def test_what_is_taken_survives_storage_and_fits_the_schema(reply: Json) -> None:
    found = taken(reply)
    stored = dumped(found)
    assert json.loads(json.dumps(stored)) == stored
    assert taken(stored) == found
    assert jsonschema_rs.is_valid(schemas.reply_schema(), reply)


@pytest.mark.parametrize(("reply", "paths"), BAD, ids=[f"bad{index}" for index in range(len(BAD))])
def test_everything_wrong_is_named_at_its_place(reply: Json, paths: set[str]) -> None:
    assert set(refused(reply)) == paths
    assert not jsonschema_rs.is_valid(schemas.reply_schema(), reply)


def test_a_message_says_what_was_expected_and_what_came() -> None:
    wrong = refused(
        {
            "taskComplete": "maybe",
            "message": 5,
            "confidence": "high",
            "nextStep": {"type": "Nope"},
            "memoryWrites": [{"note": "n", "type": 5}, "x" * 200],
        }
    )
    assert wrong == {
        "taskComplete": 'expected true or false, got text "maybe"',
        "message": "expected text, got number 5",
        "confidence": 'expected a number, got text "high"',
        "nextStep.type": f'expected one of {", ".join(STEP_TYPES)}, got text "Nope"',
        "memoryWrites[0].type": "expected text, got number 5",
        "memoryWrites[1]": f'expected an object, got text "{"x" * 59}…',
    }
    assert refused(step("Chat", type=None)) == {"nextStep.type": "required, but missing"}
    assert refused([1, 2]) == {"": "expected an object, got a list of 2"}


def test_feedback_says_what_came_once() -> None:
    found = validate_envelope({"message": 5})
    assert isinstance(found, list)
    assert refusal_feedback(found).count("number 5") == 1


def test_null_is_absent_except_where_it_is_a_value() -> None:
    reply = taken(
        {
            "message": None,
            "scratchpad": {"notes": None, "taskList": None},
            "payloadChangeRequest": {
                "newElements": {"a": None},
                "updateElements": None,
                "loose": None,
            },
            "nextStep": {"type": "Actions", "actions": [{"name": "a", "params": {"x": None}}]},
        }
    )
    assert reply.message is None
    assert reply.scratchpad is not None
    assert reply.scratchpad.model_fields_set == {"notes"}
    change = reply.payload_change_request
    assert change is not None
    assert change.new_elements == {"a": None}
    assert change.model_extra == {"loose": None}
    assert dumped(reply)["nextStep"]["actions"] == [{"name": "a", "params": {"x": None}}]


TEXTS: list[tuple[Any, Json]] = [
    ({"a": 1}, {"a": 1}),
    ('{"a": [1, null]}', {"a": [1, None]}),
    (' {"a": 1, "a": 1} ', {"a": 1}),
    ("", {}),
    ("  ", {}),
    (None, {}),
    ({"text": '{"stays": "text"}'}, {"text": '{"stays": "text"}'}),
]


def test_parameters_come_as_an_object_or_as_its_text() -> None:
    for given_, kept in TEXTS:
        reply = taken(step("Actions", actions=[{"name": "a", "params": given_}]))
        assert dumped(reply)["nextStep"]["actions"][0]["params"] == kept


def test_other_parameters_are_a_problem_and_never_a_crash() -> None:
    for given_ in (
        "[1]",
        "x",
        5,
        [],
        True,
        '{"a": NaN}',
        '{"a": 1, "a": 2}',
        '{"a": 1, "a": true}',
        DEEP,
        '{"a":' + DEEP,
    ):
        wrong = refused(step("Actions", actions=[{"name": "a", "params": given_}]))
        assert list(wrong) == ["nextStep.actions[0].params"]


def test_a_command_that_only_the_client_knows_is_passed_on_whole() -> None:
    command = {"type": "their:own", "label": None, "nested": {"a": [1, None]}}
    reply = taken({"actionableCommands": [command], "automaticCommands": [command]})
    assert reply.actionable_commands is not None
    assert reply.actionable_commands[0].model_dump() == command


def test_client_tools_come_in_both_casings() -> None:
    calls = [
        {"Name": "a", "Params": {"x": 1}, "TimeoutMs": 0, "Description": "d"},
        {
            "name": "a",
            "Name": "a",
            "params": None,
            "Params": '{"x": 1}',
            "timeoutMs": 0,
            "description": "d",
        },
    ]
    kept = dumped(taken(step("ClientTools", clientTools=calls)))["nextStep"]["clientTools"]
    assert kept == [{"name": "a", "params": {"x": 1}, "timeoutMs": 0, "description": "d"}] * 2
    wrong = refused(
        step(
            "ClientTools", clientTools=[{"name": "a", "Name": "b", "timeoutMs": 1, "TimeoutMs": 2}]
        )
    )
    assert wrong == {
        "nextStep.clientTools[0].name": 'expected name and Name to agree, got text "a" and text "b"',
        "nextStep.clientTools[0].timeoutMs": "expected timeoutMs and TimeoutMs to agree, "
        "got number 1 and number 2",
    }


def test_a_filled_list_of_sub_agents_wins() -> None:
    one, two = {"name": "s", "message": "m"}, {"name": "t"}
    reply = taken(step("Sub-Agent", subAgents=[one], subAgent=two))
    assert dumped(reply)["nextStep"]["subAgents"] == [{**one, "terminateAfter": False}]
    assert "subAgent" not in dumped(reply)["nextStep"]


def test_loops_have_the_defaults_of_the_protocol() -> None:
    each = dumped(taken(step("ForEach", forEach={**EACH, "itemVariable": " "})))
    assert each["nextStep"]["forEach"] == {
        **EACH,
        "itemVariable": "item",
        "indexVariable": "index",
        "maxIterations": 1000,
        "executionMode": "sequential",
        "maxConcurrency": 10,
        "continueOnError": False,
        "delayBetweenIterationsMs": 0,
    }
    loop = {"condition": "x", "pipeline": {"steps": [{"tool": "a"}]}}
    again = dumped(taken(step("While", **{"while": loop})))["nextStep"]["while"]
    assert (again["itemVariable"], again["maxIterations"]) == ("attempt", 100)


def nested(levels: int, *, text: bool) -> Json:
    stages: Any = [{"count": None}]
    for _ in range(levels - 1):
        stages = [{"map": {"do": json.dumps(stages) if text else stages}}]
    return {"steps": [{"tool": "a"}, *stages]}


@pytest.mark.parametrize("text", [False, True])
def test_stages_nest_five_levels_deep(text: bool) -> None:
    assert pipeline_problems(nested(5, text=text)) == []
    taken(step("Pipeline", pipeline=nested(5, text=text)))
    for levels in (6, 200):
        assert refused(step("Pipeline", pipeline=nested(levels, text=False)))
        assert pipeline_problems(nested(levels, text=False))


@pytest.mark.parametrize("request_", [GOOD, BAD], ids=["good", "bad"])
def test_the_static_check_agrees_with_validation(request_: list[Any]) -> None:
    replies = [one if isinstance(one, dict) else one[0] for one in request_]
    bodies = [
        one["nextStep"]["pipeline"] for one in replies if "pipeline" in (one.get("nextStep") or {})
    ]
    assert bodies
    for body in bodies:
        found = pipeline_problems(body)
        wrong = validate_envelope(step("Pipeline", pipeline=body))
        if not isinstance(wrong, list):
            assert found == []
            assert pipeline_problems(AgentPipelineRequest.model_validate(body)) == []
        else:
            paths = {one.path.removeprefix("nextStep.pipeline.") for one in wrong}
            assert {one.path for one in found} <= paths


def test_a_pipeline_begins_with_data() -> None:
    assert pipeline_problems({"steps": [{"where": "a"}]})[0].path == "steps[0]"
    assert list(refused(step("Pipeline", pipeline={"steps": [{"where": "a"}]}))) == [
        "nextStep.pipeline.steps[0]"
    ]


def test_the_static_check_takes_anything() -> None:
    for steps in (None, 5, "x", [], [None], [{"map": 5}], [{"let": {"value": "x"}}]):
        assert pipeline_problems({"steps": steps})


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
    | st.sampled_from(["Chat", "Actions", "Sub-Agent", "text", "{}", "[]", "open:url"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ["type", "name", "params", "actions", "subAgents", "forEach", "while", "steps", "map", "do"]
        )
        | st.text(max_size=4),
        inner,
        max_size=4,
    ),
    max_leaves=12,
)  # fmt: skip
KEYS = [field.alias or name for name, field in LoopAgentResponse.model_fields.items()]


@given(
    st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=4), st.sampled_from(list(STEP_TYPES))
)
def test_no_value_whatever_raises(reply: Json, kind: str) -> None:
    if isinstance(reply.get("nextStep"), dict):
        reply["nextStep"]["type"] = kind
    found = validate_envelope(reply)
    if isinstance(found, list):
        assert found
        assert all(one.message for one in found)
    else:
        assert taken(dumped(found)) == found


def test_a_new_step_type_registers_itself() -> None:
    class Sleep(NextStep):
        """Sleep."""

        type: Literal["Sleep"]
        seconds: int

    try:
        assert dumped(taken(step("Sleep", seconds=2)))["nextStep"] == {
            "type": "Sleep",
            "seconds": 2,
        }
        assert list(refused(step("Sleep", seconds="x"))) == ["nextStep.seconds"]
    finally:
        STEP_TYPES.pop("Sleep")


def test_a_step_type_has_one_name_of_its_own() -> None:
    with pytest.raises(TypeError, match="is taken by"):
        type("Chat", (NextStep,), {"__annotations__": {"type": Literal["Chat"]}, "__module__": "x"})
    with pytest.raises(TypeError, match="with one name"):
        type("Other", (NextStep,), {"__annotations__": {"type": str}, "__module__": "x"})
    assert STEP_TYPES["Chat"].__module__ == "loopagent.core.steps.chat"


def test_the_types_are_at_home_in_python_too() -> None:
    work = SubAgentCall(name="s", message="m")
    reply = LoopAgentResponse(next_step=SubAgent(type="Sub-Agent", sub_agents=[work]))
    assert taken(dumped(reply)) == reply
    assert SubAgent(type="Sub-Agent", sub_agents=[work]).calls == [work]
    assert SubAgent(type="Sub-Agent", sub_agent=work).calls == [work]
    assert (
        While.model_validate(STEP_TYPES["While"].example["nextStep"]).while_.max_iterations == 100
    )


def test_a_problem_reads_well() -> None:
    assert str(Problem(path_text(["a", 0, "odd key", "b"]), "wrong")) == 'a[0]["odd key"].b: wrong'
    assert str(Problem("", "wrong")) == "wrong"
    assert shorten({}) == "an empty object"
    assert shorten({str(one): one for one in range(9)} | {"a": 1}).endswith(', "5", …')
    assert shorten(None) == "null"
    assert shorten(10**5000) == "number with very many digits"
    assert shorten({1}) == "a set"
