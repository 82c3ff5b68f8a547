"""Several apps over one PostgreSQL database, as processes on several machines would be."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from loopagent import Agent, App, action
from loopagent.models.scripted import ScriptedModel
from loopagent.runview import RunView
from tests.waiting import until


pytestmark = pytest.mark.anyio
DONE = {"taskComplete": True, "message": "Done."}
CHAT = {"taskComplete": False, "message": "Which?", "nextStep": {"type": "Chat"}}


def call(name: str, **params: Any) -> dict[str, Any]:
    step = {"type": "Actions", "actions": [{"name": name, "params": params}]}
    return {"taskComplete": False, "nextStep": step}


@action(effects="read")
async def look() -> str:
    return "seen"


def app(url: str, *script: dict[str, Any], actions: Any = (look,), **options: Any) -> App:
    agent = Agent("clerk", model=ScriptedModel(list(script)), actions=list(actions))
    return App(agents=[agent], store=url, **options)


async def ended(app: App, run_id: str) -> RunView:
    for _ in range(100):
        view = await app.wait(run_id, timeout_seconds=10)
        if view.state.ended:
            return view
    raise AssertionError("it did not end")


async def test_a_server_that_does_not_work_leaves_runs_to_a_worker(postgres_url: str) -> None:
    async with (
        app(postgres_url, work=False) as server,
        app(postgres_url, call("look"), DONE) as worker,
    ):
        view = await server.start("clerk", "Go.")
        events = [one["type"] async for one in server.events(view.id)]
        assert events[-1] == "run.completed"
        assert "action.completed" in events
        log = await server.store.log(view.id)
        assert sum(len(one.facts) for one in log) == len(
            [one for one in events if one != "run.idle"]
        )
        assert server.engine.runs.get(view.id) is None
        await until(lambda: worker.engine.runs.get(view.id) is None)


async def test_an_answer_at_the_server_wakes_a_worker(postgres_url: str) -> None:
    async with app(postgres_url, work=False) as server, app(postgres_url, CHAT, DONE):
        view = await server.wait((await server.start("clerk", "Go.")).id, timeout_seconds=20)
        assert view.waiting
        while await server.store.owner(view.id) is not None:  # noqa: ASYNC110 - given back in the background
            await asyncio.sleep(0.005)
        await server.post(view.id, "That one.")
        assert (await ended(server, view.id)).state.status == "completed"


async def test_events_reach_another_process_before_it_looks_by_itself(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loopagent.runtime.follow.POLL_SECONDS", 3600.0)
    async with (
        app(postgres_url, CHAT, call("look"), DONE) as worker,
        app(postgres_url, work=False) as server,
    ):
        view = await worker.wait((await worker.start("clerk", "Go.")).id, timeout_seconds=20)
        late: list[float] = []

        async def follow() -> None:
            async for event in server.events(view.id):
                late.append(time.time() - event["ts"])

        following = asyncio.create_task(follow())
        await asyncio.sleep(0.2)
        before = len(late)
        await worker.post(view.id, "That one.")
        async with asyncio.timeout(30):
            await following
        assert len(late) > before + 3


async def test_a_cancelled_run_stops_in_the_process_that_works_on_it(postgres_url: str) -> None:
    stopped: list[str] = []
    begun = asyncio.Event()

    @action(effects="read", timeout_ms=600_000)
    async def sleep() -> str:
        begun.set()
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            stopped.append("sleep")
            raise
        return "slept"

    worker = app(postgres_url, call("sleep"), actions=[sleep])
    async with app(postgres_url, actions=[sleep], work=False) as server, worker:
        view = await server.start("clerk", "Go.")
        await begun.wait()
        await server.cancel(view.id)
        await until(lambda: stopped)
        assert (await server.get(view.id)).state.status == "cancelled"
        await until(lambda: worker.engine.runs.get(view.id) is None)


async def test_a_full_worker_leaves_runs_to_others(postgres_url: str) -> None:
    at_work: dict[str, int] = {"now": 0, "most": 0}

    @action(effects="read")
    async def work() -> str:
        at_work["now"] += 1
        at_work["most"] = max(at_work.values())
        await asyncio.sleep(0.05)
        at_work["now"] -= 1
        return "worked"

    script = [call("work"), DONE]
    async with app(postgres_url, actions=[work], work=False) as server:
        views = [await server.start("clerk", f"Go {number}.") for number in range(8)]
        async with app(postgres_url, *script, actions=[work], max_runs=2):
            for view in views:
                assert (await ended(server, view.id)).state.ended
    assert at_work["most"] <= 2


async def test_a_run_that_waits_for_the_clock_is_a_row_and_goes_on_in_time(
    postgres_url: str,
) -> None:
    """The pause is longer than a process holds a run for; another process is there when it ends."""
    each = {
        "collectionPath": "items",
        "executionMode": "sequential",
        "delayBetweenIterationsMs": 2_500,
        "action": {"name": "look", "params": {}},
    }
    loop = {"taskComplete": False, "nextStep": {"type": "ForEach", "forEach": each}}
    async with app(postgres_url, work=False) as server:
        async with app(postgres_url, loop, DONE) as first:
            view = await first.start("clerk", "Go.", payload={"items": [1, 2]})
            for _ in range(2_000):
                if (await server.get(view.id)).state.due:
                    break
                await asyncio.sleep(0.005)
            await until(lambda: first.engine.runs.get(view.id) is None)
            state = (await server.get(view.id)).state
            assert state.due is not None
            assert state.due > time.time()
            assert await server.store.owner(view.id) is None
        async with app(postgres_url, loop, DONE):
            view = await ended(server, view.id)
        assert view.state.status == "completed"
        assert view.state.clock >= state.due


async def test_the_runs_of_a_dead_process_are_taken_over_when_their_lease_ends(
    postgres_url: str,
) -> None:
    """The first process is not dead, only silent: it does not renew its leases, and hears that it lost one."""
    reached = asyncio.Event()

    @action(effects="read", timeout_ms=600_000)
    async def hang() -> str:
        reached.set()
        await asyncio.sleep(600)
        return "never"

    @action(name="hang", effects="read")
    async def hang_not() -> str:
        return "done"

    silent = app(postgres_url, call("hang"), DONE, actions=[hang], recover=False, lease_seconds=1.0)
    async with silent:
        silent._background[-1].cancel()
        view = await silent.start("clerk", "Go.")
        await reached.wait()
        async with app(
            postgres_url, call("hang"), DONE, actions=[hang_not], lease_seconds=1.0
        ) as other:
            assert (await ended(other, view.id)).state.status == "completed"
        await silent._leases._renew()
        await until(lambda: silent.engine.runs.get(view.id) is None)
        assert silent._leases.count == 0


async def test_closing_lets_calls_end_and_leaves_the_rest_to_others(postgres_url: str) -> None:
    calls: list[str] = []
    reached = asyncio.Event()

    @action(effects="write", approval="auto")
    async def charge() -> str:
        calls.append("charge")
        reached.set()
        await asyncio.sleep(0.3)
        calls.append("charged")
        return "charged"

    async with app(postgres_url, actions=[charge], work=False) as server:
        async with app(postgres_url, call("charge"), DONE, actions=[charge], grace_seconds=20):
            view = await server.start("clerk", "Go.")
            await reached.wait()
        assert calls == ["charge", "charged"]
        assert await server.store.owner(view.id) is None
        async with app(postgres_url, call("charge"), DONE, actions=[charge]):
            assert (await ended(server, view.id)).state.status == "completed"
    assert calls == ["charge", "charged"]
    log = await collected(server_url=postgres_url, run_id=view.id)
    assert "interrupted" not in str(log)


async def collected(server_url: str, run_id: str) -> list[Any]:
    async with app(server_url, recover=False) as reader:
        return list(await reader.store.log(run_id))
