"""A pipeline is checked as a whole before its first stage runs."""

from __future__ import annotations

import re
from typing import Any

import pytest

from loopagent.core.action_spec import ActionSpec
from loopagent.core.agent_spec import AgentSpec, Limits
from loopagent.core.pipeline.checker import check_pipeline
from loopagent.core.protocol.pipeline import AgentPipelineRequest
from loopagent.core.state import RunState


FIND = ActionSpec(
    name="find-orders",
    effects="read",
    parameters={
        "type": "object",
        "properties": {
            "limit": {"type": "integer", "default": 10},
            "tags": {"type": "array", "items": {"type": "string"}},
            "query": {"type": "string"},
        },
        "required": ["query"],
        "additionalProperties": False,
    },
)
SEND = ActionSpec(name="send", effects="external", max_calls=2)
PAIR = ActionSpec(
    name="pair",
    effects="read",
    parameters={
        "type": "object",
        "properties": {"a": {}, "b": {}},
        "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
    },
)
DROP = ActionSpec(name="drop", effects="irreversible", approval="never")
TOOL = {"tool": "find-orders", "with": {"query": "x"}}


def check(
    *steps: dict[str, Any], **state: Any
) -> tuple[AgentPipelineRequest, dict[str, str], list[str]]:
    spec = AgentSpec(name="a", actions=(FIND, SEND, PAIR, DROP), limits=Limits())
    run = RunState(id="r", spec=spec, model="m", **state)
    request = AgentPipelineRequest.model_validate({"steps": list(steps)})
    checked, problems, warnings = check_pipeline(request, run, names={"payload"}, where="p")
    return checked, {one.path: one.message for one in problems}, warnings


def wrong(*steps: dict[str, Any], **state: Any) -> dict[str, str]:
    return check(*steps, **state)[1]


def test_a_good_pipeline_stays_the_object_it_is() -> None:
    request = AgentPipelineRequest.model_validate({"steps": [TOOL, {"count": True}]})
    spec = AgentSpec(name="a", actions=(FIND,))
    run = RunState(id="r", spec=spec, model="m")
    assert check_pipeline(request, run, names=(), where="p") == (request, [], [])
    assert check_pipeline(request, run, names=(), where="p")[0] is request


def test_fix_4_names_are_resolved_once_at_every_depth() -> None:
    loose = {"tool": "Find Orders", "with": {"query": "x"}}
    checked, problems, _ = check(
        loose,
        {"let": {"name": "n", "value": [loose]}},
        {"map": {"do": [{"map": {"as": "x", "do": [loose, {"tool": "SEND"}]}}]}},
    )
    assert problems == {}
    named = re.findall(r'"tool":"([^"]+)"', checked.model_dump_json(by_alias=True))
    assert named == ["find-orders", "find-orders", "find-orders", "send"]


def test_everything_that_is_wrong_is_found_at_once() -> None:
    found = wrong(
        {"tool": "find-order"},
        {"tool": "serch"},
        {"where": "total >"},
        {"select": ["a", "b["]},
        {"sort": "-a["},
        {"distinct": "a["},
        {"groupBy": {"by": "a", "sum": ["b", "c["]}},
        {"jsonpath": "$[?(@.a)]"},
        {"tool": "find-orders", "with": {"query": 5, "limt": 1}},
        {"tool": "find-orders", "with": {"query": "{{ nope.x }}", "tags": ["{{ 1 + }}"]}},
        {"map": {"as": "the item", "do": [{"grep": "(?=x)"}]}},
        {"let": {"name": "in", "value": [{"tool": "drop"}]}},
    )
    assert sorted(found) == sorted(
        [
            "p.steps[0].with.query",
            "p.steps[1].tool",
            "p.steps[2].where",
            "p.steps[3].select",
            "p.steps[4].sort",
            "p.steps[5].distinct",
            "p.steps[6].groupBy.sum",
            "p.steps[7].jsonpath",
            "p.steps[8].with.query",
            "p.steps[8].with.limt",
            "p.steps[9].with.query",
            "p.steps[9].with.tags[0]",
            "p.steps[10].map.as",
            "p.steps[10].map.do[0].grep",
            "p.steps[11].let.name",
            "p.steps[11].let.value[0].tool",
        ]
    )
    assert "unknown name nope" in found["p.steps[9].with.query"]
    assert "is required and missing" in found["p.steps[0].with.query"]


def test_what_a_template_stands_in_is_checked_when_it_is_filled() -> None:
    assert (
        wrong(
            {"tool": "find-orders", "with": {"query": "{{payload.q}}", "tags": ["{{payload.t}}"]}}
        )
        == {}
    )
    assert wrong(TOOL, {"tool": "find-orders", "pipeInto": "query"}) == {}
    assert list(wrong(TOOL, {"tool": "find-orders", "pipeInto": "quary"})) == [
        "p.steps[1].with.quary",
        "p.steps[1].with.query",
    ]
    assert wrong({"tool": "pair", "with": {"a": "{{payload.q}}"}}) == {}
    assert wrong({"tool": "pair", "with": {}}) != {}


@pytest.mark.parametrize(
    ("stage", "wants"),
    [
        ({"first": 1}, "first works on a list, and the stage before gives a number"),
        ({"map": {"do": [{"count": True}]}}, "map works on a list"),
        ({"lines": True}, "lines works on text"),
        ({"grep": "x"}, "grep works on text or a list"),
    ],
)
def test_what_a_stage_gives_must_be_what_the_next_works_on(
    stage: dict[str, Any], wants: str
) -> None:
    assert wants in wrong(TOOL, {"count": True}, stage)["p.steps[2]"]


def test_head_works_on_text_and_first_on_lists() -> None:
    assert wrong(TOOL, {"lines": True}, {"first": 1}, {"grep": "x"}, {"count": True}) == {}
    assert wrong(TOOL, {"head": 5}, {"lines": True}) == {}
    assert "gives text" in wrong(TOOL, {"head": 5}, {"first": 1})["p.steps[2]"]
    assert "gives a list" in wrong(TOOL, {"select": "a"}, {"tail": 1})["p.steps[2]"]


def test_data_must_come_from_somewhere() -> None:
    let = {"let": {"name": "a", "value": [TOOL]}}
    assert wrong(let, TOOL) == {}
    assert wrong(let) == {
        "p.steps": "expected a last value, but no stage gives data to it; add a tool"
    }
    assert wrong(let, {"count": True}) == {
        "p.steps[1]": "expected tool before count, there is no data yet"
    }
    assert list(wrong({"let": {"name": "a", "value": [{"count": True}]}}, TOOL)) == [
        "p.steps[0].let.value[0]"
    ]
    nested = {"let": {"name": "a", "value": [let]}}
    assert list(wrong(nested, TOOL)) == ["p.steps[0].let.value"]
    assert wrong(TOOL, {"let": {"name": "n", "value": [{"count": True}]}}) == {}


def test_names_are_known_where_they_are_bound_and_not_elsewhere() -> None:
    use = {"tool": "find-orders", "with": {"query": "{{item.a}} {{n}} {{$}}"}}
    let = {"let": {"name": "n", "value": [{"count": True}]}}
    assert wrong(TOOL, let, {"map": {"do": [use]}}) == {}
    found = wrong(TOOL, {"map": {"do": [let, use]}}, use)
    assert list(found) == ["p.steps[2].with.query"]
    first = wrong({"tool": "find-orders", "with": {"query": "{{$}}"}})
    assert "unknown name $" in first["p.steps[0].with.query"]
    assert list(wrong({**TOOL, "pipeInto": "query"})) == ["p.steps[0].pipeInto"]


def test_fix_5_calls_that_are_sure_to_be_made_are_counted_for_the_whole() -> None:
    send = {"tool": "send"}
    assert wrong(send, send) == {}
    assert wrong(send, {"let": {"name": "x", "value": [send]}}, send) == {
        "p.steps": "send may be called 2 more time(s)"
    }
    assert wrong(send, send, calls={"send": 1}) == {"p.steps": "send may be called 1 more time(s)"}


def test_fix_2_an_action_that_is_forbidden_is_not_there() -> None:
    found = wrong({"tool": "drop"})
    assert "there is no action" in found["p.steps[0].tool"]
    assert "drop" not in found["p.steps[0].tool"].partition("available")[2]
