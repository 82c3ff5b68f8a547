"""What a run had looked up is shown to the next run of its conversation, and to no other."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from loopagent import Agent, App, Attachment
from loopagent.core.conversation import carried_text
from tests.runtime.hooked import DONE, Listening


pytestmark = pytest.mark.anyio
FILE = Attachment("orders.csv", b"id,city\n7,Porto\n")
LOOK = {
    "taskComplete": False,
    "artifactToolCalls": [
        {"artifactId": "A", "tool": "get_full", "input": {}},
        {"artifactId": "Z", "tool": "get_full", "input": {}},
    ],
    "nextStep": {"type": "Retry"},
}


def carried(model: Listening, at: int) -> list[str]:
    return [
        one.text for one in model.asked[at].messages if "last run of this conversation" in one.text
    ]


async def begin(app: App, agent: str = "clerk", **options: Any) -> Any:
    where: dict[str, Any] = {"conversation": "c1", "user": "ann", "attachments": [FILE], **options}
    return await app.wait((await app.start(agent, "Go.", **where)).id)


async def test_fix_9_5_successful_look_ups_reach_the_next_run_once(tmp_path: Path) -> None:
    for url in ("memory://", f"sqlite:///{tmp_path}/runs.db"):
        model = Listening(LOOK, DONE, DONE, DONE)
        async with App(agents=[Agent("clerk", model=model)], store=url) as app:
            for _ in range(3):
                await begin(app)
        assert carried(model, 0) == []
        [text] = carried(model, 2)
        body = json.loads(text[text.index("[") :])
        assert [(one["artifact"], one["tool"]) for one in body] == [("A", "get_full")]
        assert "Porto" in json.dumps(body)
        assert carried(model, 3) == [], "only what the last run itself looked up"


async def test_nobody_else_is_shown_it() -> None:
    model, other = Listening(LOOK), Listening()
    async with App(agents=[Agent("clerk", model=model), Agent("other", model=other)]) as app:
        await begin(app)
        others: list[dict[str, Any]] = [
            {"user": "bob"},
            {"tenant": "acme"},
            {"conversation": "c2"},
            {"conversation": None},
        ]
        for whose in others:
            await begin(app, **whose)
        await begin(app, "other")
        assert [carried(model, at) for at in range(2, 6)] == [[], [], [], []]
        assert carried(other, 0) == []
        await begin(app)
        assert len(carried(model, 6)) == 1, "the last run of the same agent counts"


async def test_it_can_be_turned_off_and_a_waiting_run_gets_it_too() -> None:
    model = Listening(
        LOOK, {"taskComplete": False, "message": "Which?", "nextStep": {"type": "Chat"}}
    )
    async with App(agents=[Agent("clerk", model=model)]) as app:
        first = await begin(app)
        assert first.waiting
        second = await app.start("clerk", "Next.", conversation="c1", user="ann", on_busy="enqueue")
        await app.post(first.id, "That one.")
        while not second.state.ended:
            await asyncio.sleep(0.01)
            second = await app.get(second.id)
        assert second.state.status == "completed"
        assert len(carried(model, -1)) == 1
        await begin(app, limits={"maxCarriedChars": 0})
        assert carried(model, -1) == []


async def test_it_becomes_a_stub_sooner_than_the_run_s_own_results() -> None:
    retry = {"taskComplete": False, "message": "On.", "nextStep": {"type": "Retry"}}
    model = Listening(LOOK, DONE, *[retry] * 4)
    spec: dict[str, Any] = {
        "context": {"rewriteBytes": 0, "carriedTurns": 2},
        "limits": {"repeatLimit": 50},
    }
    long = Attachment("long.txt", b"word " * 1000)
    async with App(agents=[Agent("clerk", model=model, **spec)]) as app:
        await begin(app, attachments=[long])
        await begin(app)
    shown = [len(carried(model, at)) for at in range(2, len(model.asked))]
    assert shown == [1, 1, 1, 0, 0], "three prompts in full, then as a stub"
    assert "[#1 results" in model.text(-1)


def test_the_newest_that_fit_are_carried_each_once() -> None:
    entries = [{"tool": str(n), "result": "x" * 100} for n in range(10)]
    text = carried_text([*entries, entries[9]], 600)
    assert len(text) <= 600
    kept = json.loads(text[text.index("[") :])
    assert [one["tool"] for one in kept] == ["7", "8", "9"]
    assert carried_text(entries, 200) == ""
    assert carried_text([], 600) == ""


async def test_a_run_that_waited_too_long_never_begins() -> None:
    ask = {"taskComplete": False, "message": "Which?", "nextStep": {"type": "Chat"}}
    model = Listening(ask)
    async with App(agents=[Agent("clerk", model=model)]) as app:
        first = await begin(app)
        where: dict[str, Any] = {"conversation": "c1", "user": "ann", "on_busy": "enqueue"}
        second = await app.start("clerk", "Next.", limits={"maxQueueSeconds": 0.05}, **where)
        third = await app.start("clerk", "Last.", **where)
        while not second.state.ended:
            await asyncio.sleep(0.01)
            second = await app.get(second.id)
        assert second.state.result is not None
        assert (second.state.status, second.state.result.reason) == ("failed", "limit")
        assert second.state.result.detail == {"limit": "maxQueueSeconds"}
        assert "never began" in second.state.result.message
        row = await app.conversations.get("c1", user="ann")
        assert row.active == (first.id, third.id)
        assert len(model.asked) == 1


async def test_a_run_whose_turn_comes_too_late_after_a_restart_never_begins(tmp_path: Path) -> None:
    now = 1000.0

    def clock() -> float:
        return now

    ask = {"taskComplete": False, "message": "Which?", "nextStep": {"type": "Chat"}}
    model, store = Listening(ask), f"sqlite:///{tmp_path}/runs.db"
    where: dict[str, Any] = {"conversation": "c1", "user": "ann"}
    async with App(agents=[Agent("clerk", model=model)], store=store, clock=clock) as app:
        first = await app.wait((await app.start("clerk", "Go.", **where)).id)
        second = await app.start("clerk", "Next.", on_busy="enqueue", **where)
    now += 90_000
    async with App(agents=[Agent("clerk", model=model)], store=store, clock=clock) as app:
        await app.post(first.id, "The blue one.")
        while not second.state.ended:
            await asyncio.sleep(0.01)
            second = await app.get(second.id)
        assert second.state.result is not None
        assert second.state.result.reason == "limit"
