"""A pipeline with real actions, a real store and a real artifact."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from loopagent import Agent, App, action
from loopagent.models.scripted import ScriptedModel


pytestmark = pytest.mark.anyio
RUNNING: set[int] = set()
MOST: list[int] = []


@action(effects="read")
async def list_orders() -> dict[str, Any]:
    """List all orders; far too many for a prompt."""
    return {
        "rows": [
            {"id": number, "city": f"city {number % 3}", "pad": "x" * 100} for number in range(200)
        ]
    }


@action(effects="read")
async def get_total(order: int) -> dict[str, int]:
    """Look one order up."""
    RUNNING.add(order)
    MOST.append(len(RUNNING))
    await asyncio.sleep(0.001)
    RUNNING.discard(order)
    if order == 4:
        message = "no such order"
        raise LookupError(message)
    return {"id": order, "total": order * 10}


@action(effects="read")
async def summarize(lines: list[str]) -> str:
    """Make one text of many lines."""
    return "\n".join(lines)


def pipe(*steps: dict[str, Any]) -> dict[str, Any]:
    return {
        "taskComplete": False,
        "nextStep": {"type": "Pipeline", "pipeline": {"steps": list(steps)}},
    }


DONE = {"taskComplete": True, "message": "Done."}
ORDERS = {"tool": "list-orders"}


async def results_of(
    tmp_path: Path, *steps: dict[str, Any]
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Run one pipeline; the entry the model gets, and the events."""
    RUNNING.clear()
    MOST.clear()
    agent: Agent[Any] = Agent(
        "planner",
        model=ScriptedModel([pipe(*steps), DONE]),
        actions=[list_orders, get_total, summarize],
    )
    async with App(agents=[agent], store=f"sqlite:///{tmp_path}/runs.db") as app:
        view = await app.wait(
            (await app.start("planner", "Look at the orders.")).id, timeout_seconds=20
        )
        assert view.state.status == "completed"
        messages = await app.store.transcript(view.id)
        events = [one async for one in app.events(view.id, live=False)]
    text = next(one.text for one in messages if one.kind == "results")
    entry: dict[str, Any] = json.loads(text)["results"][0]
    return entry, events


async def test_two_hundred_rows_stay_out_of_the_prompt(tmp_path: Path) -> None:
    entry, events = await results_of(
        tmp_path, ORDERS, {"first": 12},
        {"map": {"do": [{"tool": "get-total", "with": {"order": "{{item.id}}"}}]}},
        {"where": "total >= 50"}, {"select": "total"},
    )  # fmt: skip
    assert entry["result"] == [50, 60, 70, 80, 90, 100, 110]
    assert "1 of 12 entries of steps[2] (map) failed and are null" in entry["note"]
    assert "no such order" in entry["note"]
    assert max(MOST) == 8
    kinds = [one["type"] for one in events]
    assert kinds.count("action.completed") == 13
    assert kinds.count("pipeline.step") == 5
    first = next(one for one in events if one["type"] == "action.completed")
    assert first["data"]["result"].keys() == {"chars", "head"}


async def test_a_long_last_value_becomes_an_artifact(tmp_path: Path) -> None:
    entry, events = await results_of(
        tmp_path, ORDERS, {"select": "pad"}, {"tool": "summarize", "pipeInto": "lines"}
    )
    assert entry["result"]["artifact"] == "A"
    assert entry["result"]["chars"] == 200 * 101 - 1
    assert any(one["type"] == "artifact.created" for one in events)


async def test_another_process_goes_on_with_the_entries_that_are_left(tmp_path: Path) -> None:
    made: list[int] = []
    held = asyncio.Event()

    @action(effects="read")
    async def look(order: int) -> int:
        """Look one order up; the later ones hang until the second process."""
        made.append(order)
        if order >= 5:
            await held.wait()
        return order

    steps = [
        ORDERS,
        {"first": 8},
        {"map": {"do": [{"tool": "look", "with": {"order": "{{item.id}}"}}]}},
    ]

    def app() -> App:
        agent: Agent[Any] = Agent(
            "planner", model=ScriptedModel([pipe(*steps), DONE]), actions=[list_orders, look]
        )
        return App(agents=[agent], store=f"sqlite:///{tmp_path}/runs.db")

    async with app() as first:
        run_id = (await first.start("planner", "Look at the orders.")).id
        for _ in range(2_000):
            step = (await first.get(run_id)).state.step
            if step is not None and len(step.results) == 6:
                break
            await asyncio.sleep(0.01)
    assert sorted(made) == list(range(8))
    held.set()
    async with app() as second:
        view = await second.wait(run_id, timeout_seconds=20)
        assert view.state.status == "completed"
        messages = await second.store.transcript(run_id)
    text = next(one.text for one in messages if one.kind == "results")
    assert json.loads(text)["results"][0]["result"] == list(range(8))
    assert sorted(made) == [0, 1, 2, 3, 4, 5, 5, 6, 6, 7, 7]
