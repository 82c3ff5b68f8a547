"""How results of action files are kept and shown: a summary in place of a long one, an artifact with a name."""

from __future__ import annotations

import json
from typing import Any

import pytest

from loopagent import Agent, App
from loopagent.actions.build import make_action
from tests.actions.making import means, read
from tests.runtime.hooked import Listening


pytestmark = pytest.mark.anyio
FILE = """\
name: rows.list
description: Lists rows.
effects: read
params: {{type: object, properties: {{of: {{type: string}}}}}}
run: {{kind: python, callable: "tests.actions.rows:rows"}}
result: {{maxChars: 200, {result}}}
"""
DONE = {"taskComplete": True, "message": "Done."}


async def shown(result: str, count: int) -> tuple[dict[str, Any], Any]:
    """What the model is shown of a result, and the artifacts of the run."""
    made = make_action(read(FILE.format(result=result)), means(allowed_modules=("tests.actions",)))
    calls = [{"name": "rows.list", "params": {"of": "x" * count}}]
    asks = {"taskComplete": False, "nextStep": {"type": "Actions", "actions": calls}}
    model = Listening(asks, DONE)
    async with App(agents=[Agent("a", model=model, actions=[made])], env={}) as app:
        view = await app.wait((await app.start("a", "Go.")).id)
        assert view.state.status == "completed"
        stored = await app.store.transcript(view.id)
        text = next(one.text for one in stored if one.kind == "results")
        return json.loads(text)["results"][0]["result"], view.state.artifacts


async def test_a_summary_stands_for_a_long_result_only() -> None:
    summary = (
        'summary: "{{ length(result.rows) }} rows of {{ params.of }}, first {{ result.rows[0] }}"'
    )
    long, artifacts = await shown(summary, 90)
    assert long["summary"] == f"90 rows of {'x' * 90}, first row 0"
    assert "head" not in long
    assert artifacts[0].handle == long["artifact"]
    short, none = await shown(summary, 2)
    assert short == {"rows": ["row 0", "row 1"]}
    assert none == ()


async def test_a_summary_that_cannot_be_made_leaves_the_beginning() -> None:
    long, _ = await shown('summary: "{{ length(result.nothing) }}"', 90)
    assert long["head"].startswith('{"rows":["row 0"')


async def test_a_result_becomes_an_artifact_of_a_name_and_type() -> None:
    kept, artifacts = await shown("artifact: {name: rows.json, type: application/json}", 2)
    [one] = artifacts
    assert (one.name, one.kind) == ("rows.json", "json")
    assert (kept["name"], kept["artifact"], kept["head"]) == (
        "rows.json",
        one.handle,
        '{"rows":["row 0","row 1"]}',
    )
