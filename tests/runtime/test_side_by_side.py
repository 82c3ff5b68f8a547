"""Calls of one reply: those that end at once are brought back together, and nobody waits for one that takes long."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from loopagent import Agent, App, action
from loopagent.core.events import Settled
from loopagent.models.scripted import ScriptedModel
from loopagent.ports import Commit, ModelReply, ModelRequest
from loopagent.stores import MemoryStore
from tests.waiting import until


pytestmark = pytest.mark.anyio
DONE = {"taskComplete": True, "message": "Done."}


class Recorder(MemoryStore):
    """Remembers which calls' ends came together."""

    def __init__(self) -> None:
        super().__init__()
        self.groups: list[list[str]] = []

    async def commit(self, commit: Commit, *later: Commit) -> int:
        first_seq = await super().commit(commit, *later)
        settled = [one for one in commit.events if isinstance(one, Settled)]
        self.groups.append([one.effect_id.partition(":")[2] for one in settled])
        return first_seq

    @property
    def brought(self) -> list[list[str]]:
        return [group for group in self.groups if group and group != ["model"]]

    @property
    def came(self) -> list[str]:
        return [call for group in self.brought for call in group]


class Desk:
    """An action that ends at once, and one that waits until somebody lets it go."""

    def __init__(self) -> None:
        self.begun: list[int] = []
        self.go_on = asyncio.Event()

    def agent(self, *names: str, turns: int = 1, **options: Any) -> Agent[Any]:
        @action(effects="read")
        async def quick(item: int = 0) -> int:
            self.begun.append(item)
            return item

        @action(effects="read")
        async def slow(item: int = 0) -> int:
            self.begun.append(item)
            await self.go_on.wait()
            return item

        calls = [{"name": name, "params": {"item": at}} for at, name in enumerate(names)]
        step = {"taskComplete": False, "nextStep": {"type": "Actions", "actions": calls}}
        return Agent(
            "desk", model=ScriptedModel([*[step] * turns, DONE]), actions=[quick, slow], **options
        )


@pytest.fixture
def store() -> Recorder:
    return Recorder()


async def test_calls_that_end_at_once_are_committed_together(store: Recorder) -> None:
    desk = Desk()
    async with App(agents=[desk.agent(*["quick"] * 5)], store=store) as app:
        run = await app.start("desk", "Go.")
        assert (await app.wait(run.id)).state.status == "completed"
    assert desk.begun == [0, 1, 2, 3, 4]
    assert store.brought == [[f"action.{at}" for at in range(5)]]


@pytest.mark.parametrize("slow_at", [0, 1, 2])
async def test_what_has_ended_is_committed_while_another_call_waits(
    store: Recorder, slow_at: int
) -> None:
    desk, names = Desk(), ["quick"] * 3
    names[slow_at] = "slow"
    async with App(agents=[desk.agent(*names)], store=store) as app:
        run = await app.start("desk", "Go.")
        await until(lambda: len(store.came) == 2)
        assert f"action.{slow_at}" not in store.came
        assert sorted(desk.begun) == [0, 1, 2]
        desk.go_on.set()
        assert (await app.wait(run.id)).state.status == "completed"
    assert store.brought[-1] == [f"action.{slow_at}"]


async def test_calls_that_wait_run_side_by_side(store: Recorder) -> None:
    desk = Desk()
    async with App(agents=[desk.agent(*["slow"] * 4)], store=store) as app:
        run = await app.start("desk", "Go.")
        await until(lambda: len(desk.begun) == 4)
        assert store.brought == []
        desk.go_on.set()
        assert (await app.wait(run.id)).state.status == "completed"
    assert store.brought == [[f"action.{at}" for at in range(4)]]


async def test_no_more_begin_at_once_than_the_limit_says(store: Recorder) -> None:
    desk = Desk()
    agent = desk.agent(*["slow"] * 5, limits={"max_concurrency": 2})
    async with App(agents=[agent], store=store) as app:
        run = await app.start("desk", "Go.")
        await until(lambda: len(desk.begun) == 2)
        for _ in range(20):
            await asyncio.sleep(0)
        assert len(desk.begun) == 2
        desk.go_on.set()
        assert (await app.wait(run.id)).state.status == "completed"
    assert desk.begun == [0, 1, 2, 3, 4]


async def test_a_run_that_is_cancelled_begins_none_of_the_calls_that_wait_their_turn() -> None:
    desk = Desk()
    agent = desk.agent(*["slow"] * 5, limits={"max_concurrency": 2})
    async with App(agents=[agent]) as app:
        run = await app.start("desk", "Go.")
        await until(lambda: len(desk.begun) == 2)
        await app.cancel(run.id)
        desk.go_on.set()
        assert (await app.wait(run.id)).state.status == "cancelled"
        for _ in range(20):
            await asyncio.sleep(0)
    assert desk.begun == [0, 1]


async def test_other_tasks_come_in_between_the_turns_of_a_run_that_never_waits() -> None:
    others = 0

    async def count() -> None:
        nonlocal others
        while True:
            others += 1
            await asyncio.sleep(0)

    busy = Desk().agent("quick", turns=300, limits={"max_turns": 400, "repeat_limit": 1_000})
    async with App(agents=[busy]) as app:
        counting = asyncio.create_task(count())
        run = await app.start("desk", "Go.")
        before = others
        assert (await app.wait(run.id)).state.status == "completed"
        counting.cancel()
    assert others - before > 10


class Leaving:
    """A model that never waits, and has the process stop with its last reply."""

    name = "object:leaving"

    def __init__(self) -> None:
        self.app: App | None = None
        self.replies = [*[["quick"]] * 6, ["quick", "quick", "slow"]]
        self.stopping: asyncio.Task[None] | None = None

    async def generate(self, request: ModelRequest, *, on_delta: Any = None) -> ModelReply:
        calls = [{"name": name} for name in self.replies.pop(0)]
        if not self.replies:
            assert self.app is not None
            self.stopping = asyncio.create_task(self.app.engine.aclose())
        step = {"taskComplete": False, "nextStep": {"type": "Actions", "actions": calls}}
        return ModelReply(text=json.dumps(step))

    async def aclose(self) -> None: ...


async def test_what_has_ended_is_kept_when_the_process_stops_in_that_moment() -> None:
    store, desk, model = Recorder(), Desk(), Leaving()
    actions = desk.agent("quick").actions.values()
    agent = Agent("leaving", model=model, actions=actions, limits={"repeat_limit": 100})
    async with App(agents=[agent], store=store) as app:
        model.app = app
        await app.start("leaving", "Go.")
        await until(lambda: model.stopping)
        assert model.stopping is not None
        await model.stopping
    # Eight quick calls and a slow one; it may have stopped before the last ones began.
    assert len(store.came) == min(len(desk.begun), 8)
