"""Spellings of keys and values are forgiven in the protocol's own fields, with a warning; data stays as it is."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest

from loopagent.core.fold import Folder
from loopagent.core.fold_values import MAX_PROBLEMS, MAX_WARNINGS
from loopagent.core.reply import read_reply
from loopagent.core.steps import STEP_TYPES


Json = dict[str, Any]


def fold(value: Any) -> tuple[Json | None, list[str], list[str]]:
    """The folded value, warnings, and problems as text."""
    before = deepcopy(value)
    folder = Folder()
    reply = folder.fold(value)
    assert value == before, "what was given is changed"
    return reply, folder.warnings, [str(one) for one in folder.problems]


def step(**fields: Any) -> Json:
    return {"taskComplete": False, "nextStep": fields}


ACTIONS = step(type="Actions", actions=[{"name": "a", "params": {"x": 1}}])
FOR_EACH = step(
    type="ForEach",
    forEach={
        "collectionPath": "x",
        "maxIterations": 5,
        "continueOnError": False,
        "action": {"name": "a"},
    },
)
CHAT = {"taskComplete": False, "message": "Which?", "nextStep": {"type": "Chat"}}
FORM = {
    "questions": [
        {
            "id": "q",
            "label": "Q",
            "type": {"type": "checkbox", "options": [{"value": 1, "label": "x"}]},
        }
    ]
}

FOLDED: list[tuple[str, Any, Json]] = [
    (
        "capitals",
        {
            "TaskComplete": False,
            "NextStep": {"Type": "Actions", "Actions": [{"Name": "a", "Params": {"x": 1}}]},
        },
        ACTIONS,
    ),
    (
        "snake case",
        {
            "task_complete": False,
            "next_step": {"type": "actions", "actions": [{"name": "a", "params": {"x": 1}}]},
        },
        ACTIONS,
    ),
    (
        "type syntax",
        {
            "taskComplete?": False,
            "nextStep: object": {
                "type": "Actions",
                "actions:[1+]": [{"name": "a", "params*": {"x": 1}}],
            },
        },
        ACTIONS,
    ),
    ("a list of one", [ACTIONS], ACTIONS),
    ("the same several times", [ACTIONS, ACTIONS], ACTIONS),
    ("a wrapper", {"response": ACTIONS}, ACTIONS),
    ("two wrappers", {"result": {"LoopAgentResponse": ACTIONS}}, ACTIONS),
    (
        "a list around the step",
        step(**ACTIONS["nextStep"]) | {"nextStep": [ACTIONS["nextStep"]]},
        ACTIONS,
    ),
    ("the step as text", step() | {"nextStep": json.dumps(ACTIONS["nextStep"])}, ACTIONS),
    (
        "the body as text",
        step(type="Actions", actions=json.dumps(ACTIONS["nextStep"]["actions"])),
        ACTIONS,
    ),
    (
        "an entry as text",
        step(type="Actions", actions=[json.dumps(ACTIONS["nextStep"]["actions"][0])]),
        ACTIONS,
    ),
    (
        "parameters as text",
        step(type="Actions", actions=[{"name": "a", "params": '{"x": 1}'}]),
        ACTIONS,
    ),
    ("a single entry", step(type="Actions", actions={"name": "a", "params": {"x": 1}}), ACTIONS),
    ("type missing", step(actions=[{"name": "a", "params": {"x": 1}}]), ACTIONS),
    ("type blank", step(type=" ", actions=[{"name": "a", "params": {"x": 1}}]), ACTIONS),
    (
        "body beside the step",
        {
            "taskComplete": False,
            "nextStep": "Actions",
            "actions": [{"name": "a", "params": {"x": 1}}],
        },
        ACTIONS,
    ),
    (
        "step without nextStep",
        {"taskComplete": False, "type": "Actions", "actions": [{"name": "a", "params": {"x": 1}}]},
        ACTIONS,
    ),
    (
        "another body",
        step(type="Actions", actions=[{"name": "a", "params": {"x": 1}}], skills=[{"name": "s"}]),
        ACTIONS,
    ),
    (
        "a key of no type",
        step(type="Actions", actions=[{"name": "a", "params": {"x": 1}, "id": 7}], zzz=1),
        ACTIONS,
    ),
    ("a later key", ACTIONS | {"decisions": [{"id": "x"}]}, ACTIONS),
    (
        "text booleans and numbers",
        step(
            type="ForEach",
            forEach={
                "collectionPath": "x",
                "maxIterations": "5",
                "continueOnError": "False",
                "action": {"name": "a"},
            },
        ),
        FOR_EACH,
    ),
    (
        "step type in other words",
        step(type="for each", for_each=FOR_EACH["nextStep"]["forEach"]),
        FOR_EACH,
    ),
    ("text nextStep", {"taskComplete": "FALSE", "message": "Which?", "nextStep": "chat"}, CHAT),
    (
        "message in the step",
        {"taskComplete": False, "nextStep": {"type": "Chat", "message": "Which?"}},
        CHAT,
    ),
    ("two messages", CHAT | {"nextStep": {"type": "Chat", "message": "Other"}}, CHAT),
    (
        "change in the step",
        step(type="Retry", payloadChangeRequest='{"newElements":{"a":1}}'),
        step(type="Retry") | {"payloadChangeRequest": {"newElements": {"a": 1}}},
    ),
    ("index as text", step(messageIndex="3"), step(type="Retry", messageIndex=3)),
    (
        "confidence as text",
        {"message": "m", "confidence": " 0.8 "},
        {"message": "m", "confidence": 0.8},
    ),
    (
        "sub-agents in the single place",
        step(
            type="Sub-Agent",
            subAgent=[{"name": "a", "message": "m"}, {"name": "b", "message": "n"}],
        ),
        step(
            type="Sub-Agent",
            subAgents=[{"name": "a", "message": "m"}, {"name": "b", "message": "n"}],
        ),
    ),
    (
        "a list of one sub-agent",
        step(type="subagent", subAgent=[{"name": "a", "message": "m", "terminateAfter": "true"}]),
        step(type="Sub-Agent", subAgent={"name": "a", "message": "m", "terminateAfter": True}),
    ),
    (
        "client tools in capitals",
        step(type="ClientTool", clientTools={"Name": "a", "TimeoutMs": "4000"}),
        step(type="ClientTools", clientTools=[{"name": "a", "timeoutMs": 4000}]),
    ),
    (
        "question type as text",
        {
            "responseForm": {
                "questions": {
                    "id": "q",
                    "label": "Q",
                    "type": "Checkbox",
                    "options": [{"value": 1, "label": "x"}],
                }
            }
        },
        {"responseForm": FORM},
    ),
    (
        "form booleans",
        {
            "responseForm": {
                "questions": [
                    {
                        "id": "q",
                        "label": "Q",
                        "required": "true",
                        "type": {"type": "textarea", "markdown": "False"},
                    }
                ]
            }
        },
        {
            "responseForm": {
                "questions": [
                    {
                        "id": "q",
                        "label": "Q",
                        "required": True,
                        "type": {"type": "textarea", "markdown": False},
                    }
                ]
            }
        },
    ),
    (
        "commands",
        {
            "message": "m",
            "actionableCommands": {
                "type": "open:url",
                "label": "l",
                "url": "u",
                "new_tab": "false",
            },
        },
        {
            "message": "m",
            "actionableCommands": [{"type": "open:url", "label": "l", "url": "u", "newTab": False}],
        },
    ),
    (
        "conversation tool",
        {
            "conversationToolCalls": {
                "tool": "searchConversation",
                "input": {"query": "q", "isRegex": "true", "role": "user"},
            }
        },
        {
            "conversationToolCalls": [
                {
                    "tool": "searchConversation",
                    "input": {"query": "q", "isRegex": True, "role": "User"},
                }
            ]
        },
    ),
    (
        "blank input",
        {"artifactToolCalls": [{"artifactId": "A", "tool": "get_full", "input": ""}]},
        {"artifactToolCalls": [{"artifactId": "A", "tool": "get_full", "input": {}}]},
    ),
    (
        "scratchpad",
        {"scratchpad": '{"task_list": {"remove": "t1"}}'},
        {"scratchpad": {"taskList": {"remove": ["t1"]}}},
    ),
    (
        "pipeline text",
        step(pipeline='{"steps": [{"tool": "a"}, {"count": true}]}'),
        step(type="Pipeline", pipeline={"steps": [{"tool": "a"}, {"count": True}]}),
    ),
    (
        "unknown type beside a completion",
        {"taskComplete": True, "nextStep": {"type": "Done"}},
        {"taskComplete": True},
    ),
    (
        "no body beside a completion",
        {"taskComplete": True, "nextStep": {"type": "Actions", "actions": []}},
        {"taskComplete": True},
    ),
    ("empty step", {"message": "m", "nextStep": {"type": None, "actions": []}}, {"message": "m"}),
    ("false step", {"message": "m", "nextStep": False}, {"message": "m"}),
    (
        "confidence out of range",
        {"message": "m", "confidence": 7},
        {"message": "m", "confidence": 7},
    ),
]


@pytest.mark.parametrize(
    ("given", "expected"), [row[1:] for row in FOLDED], ids=[r[0] for r in FOLDED]
)
def test_folded(given: Any, expected: Json) -> None:
    reply, warnings, problems = fold(given)
    assert (reply, problems) == (expected, [])
    assert warnings
    assert fold(expected)[0] == expected


def test_nulls_are_absent() -> None:
    assert fold({"taskComplete": True, "message": None, "nextStep": None}) == (
        {"taskComplete": True},
        [],
        [],
    )
    assert fold(step(type="Retry", messageIndex=None))[0] == step(type="Retry")
    entry = {"name": "a", "params": None}
    assert fold(step(type="Actions", actions=[entry]))[0] == step(
        type="Actions", actions=[{"name": "a"}]
    )


def test_null_notes_mean_something() -> None:
    assert fold({"scratchpad": {"notes": None}})[0] == {"scratchpad": {"notes": None}}


DATA: Json = {
    "taskComplete?": "true",
    "a: b": "{}",
    "Name": '[{"x": 1}]',
    "confidence": "0.8",
    "nothing": None,
    "next_step": {"type": "chat"},
}


@pytest.mark.parametrize(
    "given",
    [
        {"payloadChangeRequest": {"newElements": DATA, "removeElements": {"x": "__DELETE__"}}},
        step(type="Actions", actions=[{"name": "a", "params": DATA}]),
        step(
            type="Actions",
            actions=[{"name": "a", "params": {"template": '{"id":1}', "rows": ['{"id":1}']}}],
        ),
        step(
            type="Sub-Agent", subAgents=[{"name": "a", "message": "{}", "templateParameters": DATA}]
        ),
        step(
            type="ForEach", forEach={"collectionPath": "x", "action": {"name": "a", "params": DATA}}
        ),
        {"artifactToolCalls": [{"artifactId": "A", "tool": "t", "input": DATA}]},
        {"message": '{"taskComplete": true}', "reasoning": "true"},
        {
            "message": "m",
            "automaticCommands": [{"type": "host:own", "Data": DATA, "nothing": None}],
        },
        {
            "message": "m",
            "responseForm": {
                "questions": [
                    {"id": "q", "label": "l", "type": {"type": "text"}, "defaultValue": DATA}
                ]
            },
        },
    ],
)
def test_data_is_never_touched(given: Json) -> None:
    assert fold(given) == (given, [], [])


def test_an_action_that_takes_nothing_may_be_asked_in_many_ways() -> None:
    ways: list[Any] = ["", None, "{}", "null", [], " [] "]
    calls: list[Json] = [{"name": "list_sites", "params": one} for one in ways]
    calls.append({"name": "list_sites"})
    reading = read_reply(json.dumps(step(type="Actions", actions=calls)))
    assert reading.response is not None
    asked = reading.response.model_dump(by_alias=True)["nextStep"]["actions"]
    assert [call["params"] for call in asked] == [{}] * len(calls)


WRONG: list[tuple[str, Any, list[str]]] = [
    ("nothing", None, [""]),
    ("a text", "hello", [""]),
    ("an empty list", [], [""]),
    ("two replies", [ACTIONS, CHAT], [""]),
    ("true is not one", [{"taskComplete": True}, {"taskComplete": 1}], [""]),
    ("a bare payload", {"customers": [{"id": 1}], "total": 1}, [""]),
    ("a bare payload with a body's name", {"skills": ["python"], "name": "x"}, [""]),
    ("an empty object", {}, [""]),
    ("a wrapped payload", {"result": {"total": 1}}, [""]),
    ("a number as step", {"message": "m", "nextStep": 7}, ["nextStep"]),
    (
        "several steps",
        {"message": "m", "nextStep": [{"type": "Chat"}, {"type": "Retry"}]},
        ["nextStep"],
    ),
    ("a step as text that is no JSON", {"message": "m", "nextStep": '{"type":"Ch'}, ["nextStep"]),
    ("a number as type", step(type=5, actions=[{"name": "a"}]), ["nextStep.type"]),
    ("an unknown type", step(type="Tasks", tasks={}), ["nextStep.type"]),
    (
        "an unknown type with a body, complete",
        {"taskComplete": True, "nextStep": {"type": "Do", "actions": [{"name": "a"}]}},
        ["nextStep.type"],
    ),
    ("two bodies", step(actions=[{"name": "a"}], skills=[{"name": "s"}]), ["nextStep.type"]),
    ("only a reason", step(reason="why"), ["nextStep.type"]),
    (
        "two names",
        step(type="ClientTools", clientTools=[{"name": "a", "Name": "b"}]),
        ["nextStep.clientTools[0].name"],
    ),
    ("two spellings", {"message": "a", "Message": "b"}, ["message"]),
    (
        "two changes",
        {
            "payloadChangeRequest": {"newElements": {"a": 1}},
            "nextStep": {"type": "Retry", "payloadChangeRequest": {"newElements": {"a": 2}}},
        },
        ["nextStep.payloadChangeRequest"],
    ),
    (
        "repeated keys in a text",
        step(type="Actions", actions=[{"name": "a", "params": '{"x":1,"x":2}'}]),
        ["nextStep.actions[0].params"],
    ),
    ("a huge number", {"message": "m", "confidence": "9" * 5000}, ["confidence"]),
    (
        "several at once",
        {"message": "a", "Message": "b", "nextStep": {"type": "Nope"}},
        ["message", "nextStep.type"],
    ),
]


@pytest.mark.parametrize(("given", "paths"), [row[1:] for row in WRONG], ids=[r[0] for r in WRONG])
def test_wrong(given: Any, paths: list[str]) -> None:
    folder = Folder()
    folder.fold(given)
    assert [one.path for one in folder.problems] == paths
    assert all(len(one.message) < 400 for one in folder.problems)


@pytest.mark.parametrize("value", ["yes", 1, 0, "", "falsely", [], {}])
def test_other_values_are_no_booleans(value: Any) -> None:
    reading = read_reply(json.dumps({"taskComplete": value, "message": "m"}))
    assert reading.outcome == "refuse"
    assert [one.path for one in reading.problems] == ["taskComplete"]


@pytest.mark.parametrize("name", STEP_TYPES)
def test_every_step_type_is_found_in_any_spelling(name: str) -> None:
    plain = name.replace("-", "")
    words = {
        plain.lower(),
        plain.upper(),
        name.replace("-", "_"),
        name.replace("-", " "),
        f" {name} ",
    }
    for said in words:
        reply = fold({"message": "m", "nextStep": {"type": said}})[0]
        assert reply is not None
        assert reply["nextStep"] == {"type": name}


@pytest.mark.parametrize("name", STEP_TYPES)
def test_every_example_is_canonical_and_its_type_can_be_inferred(name: str) -> None:
    example = STEP_TYPES[name].example
    assert fold(example) == (example, [], [])
    assert read_reply(json.dumps(example)).step_type == name
    if STEP_TYPES[name].body:
        bare = {key: one for key, one in example["nextStep"].items() if key != "type"}
        reply = fold({**example, "nextStep": bare})[0]
        assert reply == example


def test_the_list_of_problems_is_the_models_and_ours() -> None:
    raw = {"taskComplete": "maybe", "confidence": {}, "nextStep": {"type": "Nope"}}
    paths = {one.path for one in read_reply(json.dumps(raw)).problems}
    assert paths == {"taskComplete", "confidence", "nextStep.type"}


def test_lists_of_warnings_and_problems_are_bounded() -> None:
    many = {f"k{number}": 1 for number in range(1000)}
    assert len(fold({"message": "m", **many})[1]) == MAX_WARNINGS + 1
    twice = {"message": "x", **{f"message:{number}": f"y{number}" for number in range(1000)}}
    assert len(fold(twice)[2]) == MAX_PROBLEMS


def test_entries_are_bounded_over_all_lists() -> None:
    folder = Folder(max_entries=3)
    entry = {"name": "a"}
    assert folder.fold(step(type="Actions", actions=[entry] * 3)) is not None
    assert folder.fold(step(type="Actions", actions=[entry])) is None
    assert folder.problems[0].path == "nextStep.actions"
    data = {"payloadChangeRequest": {"newElements": {"a": list(range(100))}}}
    assert Folder(max_entries=3).fold(data) == data
