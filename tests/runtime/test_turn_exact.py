"""Every turn of a tree, of a conversation and with hooks and notes is shown byte for byte as it was sent."""

from __future__ import annotations

from typing import Any

import pytest

from loopagent import Agent, App, Attachment, add_context, before_run, before_turn
from loopagent.runtime.turn import turn_record
from tests.runtime.hooked import DONE, Json, Listening, act, send


pytestmark = pytest.mark.anyio
RETRY: Json = {"taskComplete": False, "message": "On.", "nextStep": {"type": "Retry"}}


def work(*names: str) -> Json:
    listed = [{"name": one, "message": "Go."} for one in names]
    return {"taskComplete": False, "nextStep": {"type": "Sub-Agent", "subAgents": listed}}


async def exact(app: App, run_id: str) -> dict[str, list[bool]]:
    found: dict[str, list[bool]] = {}
    for row in await app.tree(run_id):
        state = (await app.get(row.id)).state
        turns = range(1, state.turn + 1)
        records = [await turn_record(app.store, row.id, turn, app.system) for turn in turns]
        found.setdefault(row.agent, []).extend(one.exact for one in records)
    return found


async def test_turns_of_children_are_exact_though_the_tree_spends_beside_them() -> None:
    one = Listening(RETRY, act(("send", {"to": "x"})), DONE, RETRY, DONE)
    two = Listening(RETRY, {**RETRY, "message": "More."}, DONE)
    below = Agent("below", model=Listening(RETRY))
    children = [
        Agent("one", model=one, actions=[send]),
        Agent("two", model=two, agents=[below]),
    ]
    model = Listening(work("one", "two"), work("one"))
    limits: dict[str, Any] = {"maxTokens": 1_000_000, "maxSeconds": 1000}
    top = Agent("top", model=model, agents=children, approval={"external": "auto"})
    async with App(agents=[top]) as app:
        view = await app.wait((await app.start("top", "Go.", limits=limits)).id)
        assert view.state.status == "completed", view.state.result
        assert await exact(app, view.id) == {
            "top": [True] * 3,
            "one": [True] * 5,
            "two": [True] * 3,
        }


async def test_turns_of_a_conversation_with_notes_hooks_and_files_are_exact() -> None:
    look: Json = {
        "taskComplete": False,
        "artifactToolCalls": [{"artifactId": "A", "tool": "get_full", "input": {}}],
        "conversationToolCalls": [{"tool": "searchConversation", "input": {"query": "Go"}}],
        "memoryWrites": [{"note": "Likes tea", "type": "Preference"}],
        "nextStep": {"type": "Retry"},
    }

    @before_run
    async def rules(call: Any) -> Any:
        return add_context(f"Rules for {call.user}.")

    @before_turn
    async def weather(call: Any) -> Any:
        return add_context(f"It rains in turn {call.turn}.")

    model = Listening(look, DONE, look, {**RETRY, "message": "More."})
    agent = Agent("a", model=model, memory={})
    async with App(agents=[agent], hooks=[rules, weather]) as app:
        for _ in range(2):
            started = await app.start(
                "a",
                "Go.",
                conversation="c1",
                user="ann",
                tenant="acme",
                attachments=[Attachment("a.txt", b"hello")],
            )
            view = await app.wait(started.id)
            assert view.state.status == "completed", view.state.result
            found = await exact(app, view.id)
            assert found == {"a": [True] * view.state.turn}
