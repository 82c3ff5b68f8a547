"""A long payload is shown as an outline, and looked into like an artifact."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopagent.core.agent_spec import Limits, PayloadSpec
from loopagent.core.effects import ReadArtifact
from loopagent.core.json_values import compact_json
from loopagent.core.payload_view import outline, seen_json
from loopagent.core.prompt import volatile_message
from loopagent.core.state import Artifact
from tests.core.play import Play, agent


LONG = {"title": "Orders", "rows": [{"id": at, "note": "x" * 50} for at in range(100)]}
LOOK = {
    "taskComplete": False,
    "artifactToolCalls": [
        {"artifactId": "payload", "tool": "json_path", "input": {"path": "$.rows[7]"}}
    ],
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=300),
    lambda inner: st.lists(inner, max_size=30) | st.dictionaries(st.text(), inner, max_size=30),
    max_leaves=200,
)


def shown(play: Play) -> dict[str, Any]:
    state: dict[str, Any] = json.loads(volatile_message(play.state).removeprefix("State: "))
    return state


def playing(data: Any, **options: Any) -> Play:
    return Play(agent(**{"limits": Limits(max_payload_chars=1_000), **options}), payload=data)


def test_a_short_payload_is_shown_whole() -> None:
    state = shown(playing({"a": 1}))
    assert state["payload"] == {"a": 1}
    assert state.keys().isdisjoint({"payloadOutline", "artifacts"})


def test_fix_21_a_long_payload_is_shown_as_an_outline_with_the_tools_to_look_into_it() -> None:
    play = playing(LONG)
    state = shown(play)
    assert "payload" not in state
    assert state["payloadOutline"]["title"] == "Orders"
    assert state["payloadOutline"]["rows"][-1] == "… 99 more items"
    assert state["artifacts"] == {"payload": f"json, {len(seen_json(play.state))} chars"}
    assert "json_path(path" in state["artifactTools"]["json"]
    assert len(volatile_message(play.state)) < 1_000


def test_the_model_looks_into_it_by_its_name() -> None:
    play = playing(LONG).reply(LOOK)
    effect = next(one for one in play.effects if isinstance(one, ReadArtifact))
    assert (effect.artifact_id, effect.artifact_kind, effect.handle) == (
        "payload",
        "json",
        "payload",
    )
    play.settle("inline.artifact.0", {"value": 7})
    assert play.last("artifact.read")["handle"] == "payload"


def test_an_artifact_of_that_name_is_meant_first() -> None:
    play = playing({})
    play.state.artifacts = (Artifact("A", "f" * 64, 9, kind="json", name="payload"),)
    play.reply(LOOK)
    effect = next(one for one in play.effects if isinstance(one, ReadArtifact))
    assert effect.artifact_id == "f" * 64


def test_only_what_may_be_read_is_outlined_and_read() -> None:
    play = playing({**LONG, "secret": "s" * 5_000}, payload=PayloadSpec(read=("title", "rows")))
    assert "secret" not in shown(play)["payloadOutline"]
    assert "secret" not in seen_json(play.state)
    assert shown(playing({"a": 1, "b": "x" * 2_000}, payload=PayloadSpec(read=("a",))))[
        "payload"
    ] == {"a": 1}


def test_who_cannot_look_into_it_is_shown_all_of_it() -> None:
    assert shown(playing(LONG, artifact_tools=False))["payload"] == LONG


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("x" * 30, "x" * 10 + "… 20 more chars"),
        ([1, 2, 3], [1, "… 2 more items"]),
        ({"a": {"b": 1}, "c": [1, 2]}, {"a": "… 1 members", "c": "… 2 items"}),
        ({"a": {}, "b": []}, {"a": {}, "b": []}),
        (
            {str(at): at for at in range(12)},
            {**{str(at): at for at in range(10)}, "…": "2 more members"},
        ),
        (None, None),
        (1.5, 1.5),
    ],
)
def test_the_barest_outline(value: Any, expected: Any) -> None:
    assert outline(value, 1) == expected


@settings(max_examples=50, deadline=None)
@given(JSON)
def test_an_outline_is_short_or_the_barest_and_always_json(value: Any) -> None:
    text = compact_json(outline(value, 1_000))
    assert len(text) <= max(1_000, len(compact_json(outline(value, 0))))
    json.loads(text)
