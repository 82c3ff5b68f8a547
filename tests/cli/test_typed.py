"""What is typed comes from a thread, so that whatever else goes on is not held up."""

from __future__ import annotations

import asyncio
import threading

import pytest

from loopagent.cli.typed import typed, unless


pytestmark = pytest.mark.anyio


async def test_work_goes_on_while_somebody_types() -> None:
    gate = threading.Event()

    def ask() -> str:
        assert gate.wait(60)
        return "yes"

    answer = asyncio.ensure_future(typed(ask))
    await asyncio.sleep(0)
    gate.set()  # only work that goes on comes here
    assert await answer == "yes"


async def test_what_goes_wrong_at_the_terminal_is_raised_where_it_is_waited_for() -> None:
    def ask() -> str:
        raise EOFError("nobody is there")

    with pytest.raises(EOFError, match="nobody is there"):
        await typed(ask)


async def test_an_answer_is_waited_for_until_everything_is_stopped() -> None:
    gate, stopped = threading.Event(), asyncio.Event()
    told: list[str] = []

    async def work() -> None:
        told.append(await typed(lambda: str(gate.wait(60))))

    waiting = asyncio.ensure_future(unless(stopped, work()))
    await asyncio.sleep(0)
    stopped.set()
    await asyncio.wait_for(waiting, 60)
    gate.set()
    assert told == []
    await unless(asyncio.Event(), work())
    assert told == ["True"]


async def test_what_goes_wrong_in_the_work_is_raised() -> None:
    async def work() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await unless(asyncio.Event(), work())


def test_an_answer_that_comes_after_the_end_is_nobody_s() -> None:
    gate = threading.Event()

    async def ends_at_once() -> None:
        waiting = asyncio.ensure_future(typed(lambda: gate.wait(60)))
        await asyncio.sleep(0)
        waiting.cancel()

    asyncio.run(ends_at_once())
    (thread,) = (one for one in threading.enumerate() if one.name == "terminal")
    gate.set()
    thread.join(60)
    assert not thread.is_alive()
