"""Schedules: one fire for each moment, whoever is there to see it, and none lost without a word."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from loopagent.errors import ConflictError, StoreError
from loopagent.stores import MemoryStore, SqliteStore
from loopagent.trigger_port import TriggerRow
from tests.triggers.playing import BEGIN, Clock, log, playing, tasks, trigger


pytestmark = pytest.mark.anyio
HOURLY = {"everySeconds": 3600}


async def test_each_moment_fires_once() -> None:
    clock = Clock(BEGIN + 10)
    spec = trigger(schedule=HOURLY, message="{{ event.dueAt }} after {{ event.missed }}")
    async with playing(spec, clock=clock) as app:
        assert await app.triggers.sweep() == 5.0
        for seconds in (3_599, 3_600, 3_601, 7_205):
            clock.now = BEGIN + seconds
            await app.triggers.sweep()
        assert await tasks(app) == ["2027-01-15T09:00:00Z after 0", "2027-01-15T10:00:00Z after 0"]
        view = await app.triggers.get("t")
        assert (view.next_at, view.fired_at) == (BEGIN + 10_800, BEGIN + 7_205)
        first, *_ = await app.runs()
        data = (await app.store.events(first[0].id))[0]["data"]["trigger"]
        assert data == {"name": "t", "kind": "schedule", "eventId": "2027-01-15T10:00:00Z"}


@pytest.mark.parametrize(
    ("missed", "fired", "logged"),
    [
        ("once", ["2027-01-15T13:00:00Z after 4"], [("fired", "")]),
        ("skip", [], [("missed", "nothing ran at 2027-01-15T13:00:00Z, nor at 4 moments before")]),
    ],
)
async def test_moments_that_nothing_saw(missed: str, fired: list[str], logged: list[Any]) -> None:
    clock, store = Clock(), MemoryStore()
    spec = trigger(
        schedule={**HOURLY, "missed": missed}, message="{{ event.dueAt }} after {{ event.missed }}"
    )
    async with playing(spec, clock=clock, store=store):
        pass
    clock.now = BEGIN + 5.5 * 3_600
    async with playing(spec, clock=clock, store=store) as app:
        await app.triggers.sweep()
        await app.triggers.sweep()
        assert await tasks(app) == fired
        assert await log(app, "status", "reason") == logged
        clock.now = BEGIN + 6 * 3_600
        await app.triggers.sweep()
        assert (await tasks(app))[len(fired) :] == ["2027-01-15T14:00:00Z after 0"]


async def test_a_little_late_is_not_missed() -> None:
    clock = Clock()
    spec = trigger(schedule={**HOURLY, "missed": "skip", "graceSeconds": 60})
    async with playing(spec, clock=clock) as app:
        clock.now = BEGIN + 3_660
        await app.triggers.sweep()
        assert await log(app, "status") == [("fired",)]


async def test_another_schedule_begins_anew() -> None:
    clock, store = Clock(), MemoryStore()
    async with playing(trigger(schedule=HOURLY), clock=clock, store=store) as old:
        clock.now += 4_000
        async with playing(
            trigger(schedule={"everySeconds": 600}), clock=clock, store=store
        ) as new:
            await old.triggers.sweep()  # the one that started last is in charge
            assert await log(new, "status") == []
            clock.now = BEGIN + 4_200
            await old.triggers.sweep()
            await new.triggers.sweep()
            assert await log(new, "event_id") == [("2027-01-15T09:10:00Z",)]
    off = trigger(schedule={"everySeconds": 600}, enabled=False)
    async with playing(off, clock=clock, store=store) as app:
        clock.now += 6_000
        await app.triggers.sweep()
        assert len(await log(app, "status")) == 1
    async with playing(trigger(schedule={"everySeconds": 600}), clock=clock, store=store) as app:
        await app.triggers.sweep()
        assert len(await log(app, "status")) == 1  # what passed while it was off does not count


async def test_dates_end() -> None:
    clock = Clock()
    spec = trigger(schedule={"at": ["2027-01-15T09:00:00", "2027-01-15T08:30+00:00"]})
    async with playing(spec, clock=clock) as app:
        for seconds in (1_800, 3_600, 90_000):
            clock.now = BEGIN + seconds
            await app.triggers.sweep()
        wanted = [("2027-01-15T08:30:00Z",), ("2027-01-15T09:00:00Z",)]
        assert await log(app, "event_id") == wanted
        assert (await app.triggers.get("t")).next_at is None


async def test_of_several_apps_one_fires(tmp_path: Any) -> None:
    clock, path = Clock(), tmp_path / "runs.db"
    spec = trigger(schedule=HOURLY)
    async with (
        playing(spec, clock=clock, store=SqliteStore(path)) as a,
        playing(spec, clock=clock, store=SqliteStore(path)) as b,
        playing(spec, clock=clock, store=SqliteStore(path)) as c,
    ):
        for hour in range(1, 6):
            clock.now = BEGIN + 3_600 * hour
            await asyncio.gather(*(one.triggers.sweep() for one in (a, b, c)))
        assert len(await tasks(a)) == 5
        assert await log(a, "status") == [("fired",)] * 5


class LostStore(MemoryStore):
    """Forgets to answer: a run is made, and whoever made it is gone before that is noted."""

    def __init__(self) -> None:
        super().__init__()
        self.lose = 0

    async def save_trigger(self, row: TriggerRow, deliveries: Any = ()) -> None:
        if self.lose and any(one.status == "fired" for one in deliveries):
            self.lose -= 1
            raise StoreError("gone")
        await super().save_trigger(row, deliveries)


class FullStore(MemoryStore):
    """Has no room for runs."""

    async def create(self, commit: Any, *, metadata: Any = None) -> int:
        raise StoreError("full")


async def test_a_run_whose_maker_died_is_not_made_twice() -> None:
    clock, store = Clock(), LostStore()
    spec = trigger(schedule=HOURLY)
    async with playing(spec, clock=clock, store=store) as app:
        clock.now = BEGIN + 3_600
        store.lose = 1
        with pytest.raises(StoreError):
            await app.triggers.sweep()
        assert await log(app, "status") == [("starting",)]
        await app.triggers.sweep()  # it is left to whoever makes it for a while
        assert await log(app, "status") == [("starting",)]
        clock.now += 11
        await app.triggers.sweep()
        assert await log(app, "status") == [("fired",)]
        assert len(await tasks(app)) == 1


async def test_a_run_that_can_never_be_made_is_given_up() -> None:
    clock = Clock()
    async with playing(trigger(schedule=HOURLY), clock=clock, store=FullStore()) as app:
        for number in range(7):
            clock.now = BEGIN + 3_600 + 11 * number
            await app.triggers.sweep()
        assert await log(app, "status", "reason") == [
            ("failed", "its run could not be made in 5 attempts")
        ]


class RivalStore(MemoryStore):
    """Somebody else is always faster the first few times."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.times = times

    async def save_trigger(self, row: TriggerRow, deliveries: Any = ()) -> None:
        if self.times:
            self.times -= 1
            known = await self.trigger(row.name)
            await super().save_trigger(
                TriggerRow(row.name, row.version, None, known.body if known else {})
            )
        await super().save_trigger(row, deliveries)


async def test_others_that_are_faster() -> None:
    async with playing(trigger(), store=RivalStore(5)) as app:
        assert (await app.triggers.fire("t")).status == "fired"
    async with playing(trigger(), store=RivalStore(1_000)) as app:
        with pytest.raises(ConflictError, match="all the time"):
            await app.triggers.fire("t")


async def test_the_watch_does_what_is_due() -> None:
    clock = Clock()
    async with playing(trigger(schedule={"everySeconds": 1}), clock=clock) as app:
        watch = asyncio.create_task(app.triggers.watch())
        while len(await tasks(app)) < 3:
            clock.now += 1
            await asyncio.sleep(0.02)
        watch.cancel()
        await asyncio.gather(watch, return_exceptions=True)
        assert len(await tasks(app)) == len(await log(app, "id"))
