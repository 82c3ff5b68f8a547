from __future__ import annotations

import asyncio
from time import monotonic, sleep

from loopagent.testing import JumpingLoop


def play(work):
    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        return runner.run(work)


def test_pauses_cost_no_time_and_keep_their_order() -> None:
    said: list[str] = []

    async def say(text: str, seconds: float) -> None:
        await asyncio.sleep(seconds)
        said.append(text)

    async def work() -> float:
        started = asyncio.get_running_loop().time()
        await asyncio.gather(say("c", 86_400 * 40), say("a", 1), say("b", 3600))
        return asyncio.get_running_loop().time() - started

    started = monotonic()
    assert play(work()) >= 86_400 * 40
    assert monotonic() - started < 1
    assert said == ["a", "b", "c"]


def test_the_clock_waits_for_threads() -> None:
    async def work() -> str:
        async with asyncio.timeout(5):
            await asyncio.to_thread(sleep, 0.05)
        return "in time"

    assert play(work()) == "in time"


def test_the_clock_waits_for_work_that_says_so() -> None:
    async def work() -> float:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, JumpingLoop)
        with loop.real_time():
            await asyncio.sleep(0.05)
        return loop.time()

    started = monotonic()
    play(work())
    assert 0.04 < monotonic() - started < 2
