"""Sub-agents that were stopped by a limit or a failing model go on where they were, instead of from the start."""

from __future__ import annotations

import json
from typing import Any

import pytest

from loopagent import Agent, App, action, loop_state
from loopagent.core.advance import advance
from loopagent.core.state_bytes import dump_state
from loopagent.models.scripted import ScriptedModel
from loopagent.ports import ModelRequest
from loopagent.runtime.fold import beginning
from loopagent.runview import RunView


pytestmark = pytest.mark.anyio
DONE = {"taskComplete": True, "message": "Done."}
RETRY = {"taskComplete": False, "nextStep": {"type": "Retry"}}
AUTO = {"external": "auto"}


def by_turn(*script: Any) -> ScriptedModel:
    """A model that plays the script in every run it answers; functions make a reply of the request."""

    def reply(request: ModelRequest) -> Any:
        entry = script[sum(one.role == "assistant" for one in request.messages)]
        return entry(request) if callable(entry) else entry

    return ScriptedModel(reply)


def step(kind: str, **body: Any) -> dict[str, Any]:
    return {"taskComplete": False, "nextStep": {"type": kind, **body}}


def state_of(request: ModelRequest) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(request.messages[-1].text.removeprefix("State: "))
    return found


def go_on(request: ModelRequest) -> dict[str, Any]:
    """Have everyone who was stopped go on."""
    stopped = state_of(request)["stopped"].items()
    work = [{"name": name, "resumeRunId": run, "message": "Go on."} for run, name in stopped]
    return step("Sub-Agent", subAgents=work)


class Post:
    """Letters that were sent."""

    def __init__(self) -> None:
        self.sent: list[str] = []

        @action(effects="external")
        async def send(to: str) -> str:
            self.sent.append(to)
            return f"sent to {to}"

        self.send = send

    def family(self, ask: Any, *then: Any, **options: Any) -> Agent[Any]:
        """A boss who has a clerk send a letter and say so in a second turn."""
        letter = step("Actions", actions=[{"name": "send", "params": {"to": "a"}}])
        said = {**DONE, "payloadChangeRequest": {"newElements": {"said": True}}}
        clerk = Agent(
            "clerk", model=by_turn(letter, *then, said), actions=[self.send], approval=AUTO
        )
        model = by_turn(ask, go_on, DONE)
        return Agent("boss", model=model, agents=[clerk], approval=AUTO, **options)


async def ended(app: App, run_id: str) -> RunView:
    """The run at its end, which events, states and logs of its tree see alike."""
    view = await app.wait(run_id, timeout_seconds=60)
    events = [one async for one in app.events(run_id, live=False)]
    assert loop_state(events).public() == view.public()["state"]
    for row in await app.tree(run_id):
        snapshot, log = await app.store.load(row.id), await app.store.log(row.id)
        assert snapshot is not None
        state = beginning(snapshot.state, log)
        for entry in log:
            state = advance(state, *entry.events).state
        assert dump_state(state) == dump_state(snapshot.state)
    return view


EACH = {"collectionPath": "xs", "subAgent": {"name": "clerk", "message": "Write to {{ item }}."}}
ASKS = {
    "side by side": step("Sub-Agent", subAgents=[{"name": "clerk", "message": "Write."}] * 2),
    "in a loop": step("ForEach", forEach={**EACH, "executionMode": "parallel"}),
}


@pytest.mark.parametrize("ask", ASKS)
async def test_fix_31_a_raised_limit_lets_stopped_children_go_on_and_no_letter_is_sent_twice(
    ask: str,
) -> None:
    post = Post()
    boss = post.family(ASKS[ask], limits={"max_turns": 3})
    async with App(agents=[boss]) as app:
        view = await app.start("boss", "Write.", payload={"xs": [1, 2]})
        view = await ended(app, view.id)
        assert (view.state.status, len(post.sent)) == ("failed", 2)
        assert [one.stopped for one in view.state.asked.values()] == ["limit", "limit"]
        await app.raise_limits(view.id, {"maxTurns": 7})
        view = await ended(app, view.id)
        rows = await app.tree(view.id)
    assert view.state.status == "completed"
    assert view.state.payload == {"xs": [1, 2], "said": True}
    assert len(post.sent) == 2
    assert [one.status for one in rows] == ["completed"] * 3
    spent = view.state.turn + view.state.below.turns
    assert spent == 7, "each turn is counted once, so the limit is met to the turn"
    assert view.state.asked == {}


async def test_a_child_whose_model_failed_tries_again() -> None:
    post = Post()
    broken = [{"error": {"kind": "auth", "message": "no key"}}]

    def once(request: ModelRequest) -> Any:
        return broken.pop() if broken else {**DONE, "message": request.messages[-2].text}

    boss = post.family(step("Sub-Agent", subAgents=[{"name": "clerk", "message": "Write."}]), once)
    async with App(agents=[boss]) as app:
        view = await app.start("boss", "Write.")
        view = await ended(app, view.id)
        said = await app.store.transcript(view.id)
    assert (view.state.status, post.sent) == ("completed", ["a"])
    first, second = (json.loads(one.text)["results"][0] for one in said if one.kind == "results")
    assert first["runId"].startswith(view.id)
    assert first["error"]["code"] == "model"
    assert "resumeRunId" in first["note"]
    assert (second["ok"], second["message"]) == (True, "Go on.")


async def test_a_child_at_a_limit_of_its_own_is_not_promised_to_go_on() -> None:
    work = {"name": "clerk", "message": "Write."}
    clerk = Agent("clerk", model=by_turn(RETRY, DONE), limits={"max_turns": 1})
    boss = Agent("boss", model=by_turn(step("Sub-Agent", subAgents=[work]), DONE), agents=[clerk])
    async with App(agents=[boss]) as app:
        view = await app.start("boss", "Write.")
        view = await ended(app, view.id)
        said = await app.store.transcript(view.id)
    assert (view.state.status, view.state.asked) == ("completed", {})
    entry = next(json.loads(one.text)["results"][0] for one in said if one.kind == "results")
    assert entry["error"]["code"] == "limit"
    assert "note" not in entry
