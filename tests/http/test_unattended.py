"""Runs that nobody works on are shown so, everywhere, until somebody does."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from loopagent import Agent, App, LoopFold, RequestError, action
from loopagent.core.loop_view import LoopState
from loopagent.http import create_api
from loopagent.http.attendance import Attendance
from loopagent.models.scripted import ScriptedModel
from loopagent.runtime.leases import LEASE_SECONDS, machine


pytestmark = pytest.mark.anyio
DONE = {"taskComplete": True, "message": "Done."}
DEAD = f"{machine()}:4194305:gone"
"""Signs leases like a process of this machine; no process has so high a number."""
ELSEWHERE = "other-machine:1:alive"
LEFT = ("resumable", "unattended")


class Clock:
    """A clock that a test moves."""

    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@action(effects="read")
async def look() -> str:
    """Look."""
    return "seen"


@asynccontextmanager
async def opened(folder: Path, clock: Callable[[], float], **options: Any) -> AsyncIterator[App]:
    agent = Agent("clerk", model=ScriptedModel([DONE]), actions=[look])
    store = f"sqlite:///{folder}/runs.db"
    async with App(agents=[agent], store=store, clock=clock, **options) as app:
        yield app


def standing(state: LoopState) -> tuple[str, str | None]:
    return state.state, state.reason


async def test_a_run_that_no_worker_takes_up_says_so_after_a_while(tmp_path: Path) -> None:
    clock = Clock()
    async with opened(tmp_path, clock, work=False) as server:
        run = (await server.start("clerk", "Go.")).id
        assert standing((await server.get(run)).loop) == ("running", None)
        clock.now += LEASE_SECONDS
        view = await server.get(run)
        assert standing(view.loop) == LEFT
        assert view.loop.primary is not None
        assert (view.loop.primary.decision, view.waiting) == ("resume", False)
        assert [one.state for one in (await server.runs())[0]] == ["resumable"]
        assert [one.state for one in await server.tree(run)] == ["resumable"]
        with pytest.raises(RequestError, match="start `loopagent worker`") as refused:
            await server.resume(run)
        assert (refused.value.code, refused.value.status) == ("no_worker", 409)
        assert standing((await server.wait(run, timeout_seconds=0)).loop) == LEFT
        async with opened(tmp_path, clock) as worker:
            assert (await worker.wait(run, timeout_seconds=60)).state.status == "completed"
        assert standing((await server.get(run)).loop) == ("idle", "completed")


async def test_a_lease_counts_until_it_is_over_or_its_process_is_dead(tmp_path: Path) -> None:
    clock = Clock()
    async with opened(tmp_path, clock, work=False) as server:
        run = (await server.start("clerk", "Go.")).id
        clock.now += 2 * LEASE_SECONDS
        claim = {"now": clock.now, "lease_seconds": LEASE_SECONDS}
        await server.store.claim(run, ELSEWHERE, **claim)
        assert standing((await server.get(run)).loop) == ("running", None)
        clock.now += LEASE_SECONDS
        assert standing((await server.get(run)).loop) == LEFT
        await server.store.claim(run, DEAD, now=clock.now, lease_seconds=LEASE_SECONDS)
        assert standing((await server.get(run)).loop) == LEFT
        async with opened(tmp_path, clock, recover=False) as shell:
            assert standing((await shell.wait(run, timeout_seconds=60)).loop) == LEFT
            await shell.resume(run)
            assert (await shell.wait(run, timeout_seconds=60)).state.status == "completed"


async def test_what_rests_has_nobody_to_miss(tmp_path: Path) -> None:
    clock = Clock()
    async with opened(tmp_path, clock, work=False) as server:
        run = (await server.start("clerk", "Go.")).id
        await server.pause(run)
        clock.now += 2 * LEASE_SECONDS
        assert standing((await server.get(run)).loop) == ("resumable", "paused")
        ended = (await server.start("clerk", "Go.")).id
        await server.cancel(ended)
        clock.now += 2 * LEASE_SECONDS
        assert standing((await server.get(ended)).loop) == ("idle", "cancelled")


async def test_whoever_listens_is_told_while_nothing_happens(tmp_path: Path) -> None:
    clock = Clock()
    async with opened(tmp_path, clock, work=False) as server:
        run = (await server.start("clerk", "Go.")).id
        fold = LoopFold(run)
        for event in await server.store.events(run):
            fold.add(event)
        listener = Attendance(server, run)
        assert await listener.news() is None
        clock.now += LEASE_SECONDS
        left = await listener.news()
        assert left is not None
        fold.add(left)
        assert fold.state == (await server.get(run)).loop
        assert await listener.news() is None
        listener.moved()
        assert await listener.news() == left
        await server.store.claim(run, ELSEWHERE, now=clock.now, lease_seconds=LEASE_SECONDS)
        back = await listener.news()
        assert back is not None
        fold.add(back)
        assert fold.state == (await server.get(run)).loop
        assert fold.state.state == "running"
        assert await Attendance(server, "run_of_nobody").news() is None


async def test_the_api_and_the_page_say_it(tmp_path: Path) -> None:
    clock = Clock()
    async with opened(tmp_path, clock, work=False) as server:
        run = (await server.start("clerk", "Go.")).id
        transport = httpx2.ASGITransport(app=create_api(server, manage=False))
        async with httpx2.AsyncClient(transport=transport, base_url="http://test") as client:
            before = await client.get(f"/runs/{run}", headers={"Accept": "text/html"})
            assert "Nobody works on the run." not in before.text
            clock.now += LEASE_SECONDS
            assert (await client.get(f"/api/v1/runs/{run}/state")).json()["reason"] == "unattended"
            rows = (await client.get("/api/v1/runs")).json()["runs"]
            assert [one["state"] for one in rows] == ["resumable"]
            page = await client.get(f"/runs/{run}")
            assert "Nobody works on the run." in page.text
            assert 'value="resume"' in page.text
            assert "can be resumed" in (await client.get("/runs")).text
            refused = await client.post(f"/api/v1/runs/{run}/resume")
            assert (refused.status_code, refused.json()["code"]) == (409, "no_worker")
