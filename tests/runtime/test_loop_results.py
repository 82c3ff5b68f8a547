"""Long results in loops: mappings, `last` and the stored whole see all of them, as far as the loop has room."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from loopagent import Agent, App, action
from loopagent.models.scripted import ScriptedModel
from loopagent.ports import ModelRequest
from loopagent.runview import RunView


pytestmark = pytest.mark.anyio
DONE = {"taskComplete": True, "message": "Done."}
CALL = {"name": "fetch", "params": {"n": "{{ item }}"}}
MAPPED = {**CALL, "outputMapping": {"n": "out[{{ index }}]"}}


@action(effects="read")
async def fetch(n: int) -> dict[str, Any]:
    """A long page."""
    return {"n": n, "text": f"{'x' * 20_000} end of {n}"}


def step(kind: str, **body: Any) -> dict[str, Any]:
    return {"taskComplete": False, "nextStep": {"type": kind, **body}}


def each(call: dict[str, Any]) -> dict[str, Any]:
    return step("ForEach", forEach={"collectionPath": "static:[3, 4]", "action": call})


def grep(artifact: str, pattern: str) -> dict[str, Any]:
    call = {"artifactId": artifact, "tool": "grep", "input": {"pattern": pattern}}
    return {"taskComplete": False, "artifactToolCalls": [call]}


def matches(told: str) -> int:
    """How many lines a look found."""
    return len(json.loads(told)["artifactToolCalls"][0]["result"]["matches"])


async def played(*script: Any, **options: Any) -> tuple[RunView, list[str]]:
    """The run at its end, and what the model was told last in each of its turns."""
    model = ScriptedModel(script)
    async with App(agents=[Agent("clerk", model=model, actions=[fetch], **options)]) as app:
        view = await app.start("clerk", "Go.")
        view = await app.wait(view.id, timeout_seconds=60)
    return view, [one.messages[-2].text for one in model.requests]


async def test_fix_27_long_results_of_passes_are_whole_behind_the_one_handle() -> None:
    view, told = await played(each(MAPPED), grep("A", "end of 4"), DONE)
    assert view.state.payload == {"out": [3, 4]}
    assert len(told[1]) < 2_000
    assert matches(told[2]) == 1


async def test_a_condition_sees_all_of_the_last_result() -> None:
    call = {"name": "fetch", "params": {"n": "{{ attempt }}"}}
    loop = {"condition": "last == null || last.n < 3", "action": call}
    _, told = await played(step("While", **{"while": loop}), DONE)
    report = json.loads(told[1])["results"][0]
    assert (report["ok"], report["result"]["done"]) == (True, 3)


async def test_what_has_no_room_is_an_artifact_alone_and_can_be_looked_into() -> None:
    def by_hash(request: ModelRequest) -> dict[str, Any]:
        turn = sum(one.role == "assistant" for one in request.messages)
        if turn < len(before):
            return before[turn]
        found = re.findall(r"[0-9a-f]{64}", request.messages[-2].text)
        return grep(found[0], "end of 3") if turn == len(before) else DONE

    path = {"artifactId": "A", "tool": "json_path", "input": {"path": "$[0].result"}}
    before = [each(MAPPED), {"taskComplete": False, "artifactToolCalls": [path]}]
    model = ScriptedModel(by_hash)
    clerk = Agent("clerk", model=model, actions=[fetch], limits={"max_loop_chars": 0})
    async with App(agents=[clerk]) as app:
        view = await app.start("clerk", "Go.")
        view = await app.wait(view.id, timeout_seconds=60)
    assert view.state.payload == {}
    second, last = (one.messages[-2].text for one in (model.requests[1], model.requests[-1]))
    assert "kept as an artifact: nothing of it can be put into the payload" in second
    assert matches(last) == 1


async def test_an_unknown_hash_is_no_artifact() -> None:
    _, told = await played(grep("0" * 64, "x"), DONE)
    assert json.loads(told[1])["artifactToolCalls"][0]["error"]["code"] == "no_artifact"
