"""One timer serves many limits: each wait ends at its own, and none is late because of another."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopagent.runtime.deadlines import Deadlines


pytestmark = pytest.mark.anyio
TICK_SECONDS = 0.002


@given(
    st.lists(
        st.tuples(st.integers(-2, 8), st.sampled_from(["wait", "settle", "drop"])), max_size=12
    )
)
@settings(max_examples=25, deadline=None)
def test_every_wait_ends_at_its_own_limit_unless_it_is_over_before(
    waits: list[tuple[int, str]],
) -> None:
    asyncio.run(check(waits))


async def check(waits: list[tuple[int, str]]) -> None:
    loop, deadlines = asyncio.get_running_loop(), Deadlines()
    began = loop.time()
    ended: dict[int, float] = {}
    results: list[asyncio.Future[Any]] = []

    def note(number: int, _: object) -> None:
        ended[number] = loop.time()

    for number, (ticks, then) in enumerate(waits):
        result = loop.create_future()
        results.append(result)
        result.add_done_callback(partial(note, number))
        deadlines.add(result, began + ticks * TICK_SECONDS)
        if then == "settle":
            result.set_result("settled")
        if then != "wait":
            deadlines.drop(result)
    waiting = [one for one, (_, then) in zip(results, waits, strict=True) if then == "wait"]
    if waiting:
        await asyncio.wait(waiting, timeout=60)
    for number, (ticks, then) in enumerate(waits):
        if then == "wait":
            assert results[number].result() is None
            assert ended[number] >= began + ticks * TICK_SECONDS - 0.001
        else:
            assert results[number].done() == (then == "settle")


async def test_a_limit_that_has_passed_ends_a_wait_at_once() -> None:
    loop, deadlines = asyncio.get_running_loop(), Deadlines()
    late, soon = loop.create_future(), loop.create_future()
    deadlines.add(late, loop.time() + 3600)
    deadlines.add(soon, loop.time() - 1)
    assert await asyncio.wait_for(soon, 10) is None
    assert not late.done()
