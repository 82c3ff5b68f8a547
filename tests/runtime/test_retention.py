"""Ended runs and their logs go when their time is over; whatever goes on or waits stays."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from loopagent import Agent, App, RequestError
from loopagent.models.scripted import ScriptedModel
from loopagent.ports import Store
from loopagent.runtime.retention import DAY_SECONDS, Retention, remove_old


pytestmark = pytest.mark.anyio

DONE: dict[str, Any] = {
    "taskComplete": True,
    "message": "Done.",
    "payloadChangeRequest": {"newElements": {"a": 1}},
}
ASK: dict[str, Any] = {
    "taskComplete": False,
    "message": "Which one?",
    "nextStep": {"type": "Chat"},
}


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(params=["memory://", "sqlite:///{folder}/runs.db"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Each kind of store."""
    return str(request.param).format(folder=tmp_path)


async def test_first_the_log_goes_then_the_run(url: str) -> None:
    clock = Clock()
    agents = [
        Agent("done", model=ScriptedModel([DONE] * 2)),
        Agent("asks", model=ScriptedModel([ASK, DONE])),
    ]
    rules = Retention(log_days=2, run_days=5)
    async with App(agents=agents, store=url, clock=clock) as app:
        old = await app.wait((await app.start("done", "Go.")).id)
        open_ = await app.wait((await app.start("asks", "Go.")).id)
        clock.now += 3 * DAY_SECONDS
        new = await app.wait((await app.start("done", "Go.")).id)

        removed = await remove_old(app.store, rules, clock.now)
        assert (removed.runs, removed.logs) == (0, 1)
        removed = await remove_old(app.store, rules, clock.now)
        assert (removed.runs, removed.logs) == (0, 0)
        view = await app.get(old.id)
        assert view.public() == old.public()
        with pytest.raises(RequestError) as gone:
            await app.need_log(old.id)
        assert (gone.value.code, gone.value.status) == ("log_gone", 410)
        for kept in (open_, new):
            await app.need_log(kept.id)

        clock.now += 2.5 * DAY_SECONDS
        removed = await remove_old(app.store, rules, clock.now)
        assert (removed.runs, removed.logs) == (1, 1)
        with pytest.raises(RequestError, match="There is no run"):
            await app.get(old.id)

        (ask,) = (await app.get(open_.id)).asks
        await app.answer(ask["requestId"], decision="answer", feedback="That one.")
        assert (await app.wait(open_.id)).state.payload == {"a": 1}


async def test_a_reader_of_a_removed_log_is_told_how_the_run_stands(url: str) -> None:
    async with App(agents=[Agent("done", model=ScriptedModel([DONE]))], store=url) as app:
        run = await app.wait((await app.start("done", "Go.")).id)
        assert await app.store.forget_log(run.id)
        for after in (0, 3, run.seq - 1):
            (event,) = [one async for one in app.events(run.id, after=after)]
            assert (event["type"], event["after"]) == ("stream.reset", run.seq)
            assert event["run"] == run.public()
        assert [one async for one in app.events(run.id, after=run.seq, live=False)] == []


async def test_a_position_of_another_run_starts_again(url: str) -> None:
    async with App(agents=[Agent("done", model=ScriptedModel([DONE]))], store=url) as app:
        run = await app.wait((await app.start("done", "Go.")).id)
        events = [one async for one in app.events(run.id, after=run.seq + 1)]
        assert (events[0]["type"], events[0]["after"]) == ("stream.reset", 0)
        assert [one["seq"] for one in events[1:]] == list(range(1, run.seq + 1))


async def test_an_app_removes_by_itself(url: str) -> None:
    clock = Clock()
    agent = Agent("done", model=ScriptedModel([DONE]))
    async with App(agents=[agent], store=url, clock=clock) as app:
        run = await app.wait((await app.start("done", "Go.")).id)
        clock.now += 2 * DAY_SECONDS
        store = app.store
        assert await store.ended(before=clock.now) == [run.id]
        if url == "memory://":
            async with App(
                agents=[agent], store=store, clock=clock, retention=Retention(run_days=1)
            ):
                await _until_gone(store, run.id)
    if url != "memory://":
        async with App(
            agents=[agent], store=url, clock=clock, retention=Retention(run_days=1)
        ) as again:
            await _until_gone(again.store, run.id)


async def _until_gone(store: Store, run_id: str) -> None:
    for _ in range(2000):
        if await store.load(run_id) is None:
            return
        await asyncio.sleep(0.01)
    raise AssertionError(f"{run_id} is still there")
