from __future__ import annotations

import asyncio
import sys
import threading

import pytest

from loopagent.runtime.threads import BusyError, Threads


pytestmark = pytest.mark.anyio


def soon() -> float:
    return asyncio.get_running_loop().time() + 5


async def test_work_runs_aside_and_its_result_comes_back():
    threads = Threads(1, 1)
    work = await threads.start(threading.get_ident, ends_at=soon())
    assert await work.result not in {None, threading.get_ident()}


async def test_giving_up_what_has_ended_frees_no_second_place():
    threads = Threads(1, 1)
    release = threading.Event()
    ended = await threads.start(int, ends_at=soon())
    assert await ended.result == 0
    await ended.give_up()
    running = await threads.start(release.wait, ends_at=soon())
    with pytest.raises(BusyError, match="all 1 threads"):
        await threads.start(int, ends_at=0)
    release.set()
    assert await running.result is True


async def test_work_that_was_given_up_frees_its_place_and_counts_as_stuck_until_it_ends():
    threads = Threads(1, 1)
    release = threading.Event()
    ends: list[str] = []
    stuck = await threads.start(release.wait, ends_at=soon(), on_end=lambda: ends.append("end"))
    await stuck.give_up()
    with pytest.raises(BusyError, match="1 calls that were given up"):
        await threads.start(int, ends_at=soon())
    assert ends == []
    release.set()
    assert await stuck.result is True
    assert ends == ["end"]
    assert await (await threads.start(int, ends_at=soon())).result == 0


EXHAUSTED = """
import asyncio, resource
from loopagent.runtime.threads import BusyError, Threads

async def main():
    threads = Threads(1, 1)
    resource.setrlimit(resource.RLIMIT_AS, (1, 1))
    try:
        await threads.start(int, ends_at=asyncio.get_running_loop().time() + 5)
    except BusyError as error:
        print(error, flush=True)

asyncio.run(main())
"""


async def test_a_system_without_threads_is_told_as_busy():
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", EXHAUSTED, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    assert out == b"can't start new thread\n"


UNFINISHED = """
import asyncio, threading
from loopagent.runtime.threads import Threads

release = threading.Event()
hand_over = threading.Event()

def late():
    release.wait()
    hand_over.set()

async def main():
    await Threads(1, 1).start(late, ends_at=asyncio.get_running_loop().time() + 5)

asyncio.run(main())
release.set()
hand_over.wait(5)
print("quiet", flush=True)
"""


async def test_a_result_for_a_loop_that_is_closed_is_dropped_quietly():
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        UNFINISHED,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert await process.communicate() == (b"quiet\n", b"")
