"""What a person types, without holding up the run that goes on meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from threading import Thread
from typing import TypeVar


T = TypeVar("T")


async def typed(ask: Callable[[], T]) -> T:
    """Ask the person at the terminal, in a thread that nobody waits for when the command ends.

    Args:
        ask: Prompts, and returns what was typed; may raise.

    Returns:
        What it returned.
    """
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[T] = loop.create_future()

    def tell(give: Callable[[], None]) -> None:
        if not answer.done():
            give()

    def send(give: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the command has ended, and its event loop with it
            loop.call_soon_threadsafe(tell, give)

    def work() -> None:
        try:
            given = ask()
        except Exception as error:  # noqa: BLE001 - it is raised where the answer is waited for
            send(partial(answer.set_exception, error))
        else:
            send(partial(answer.set_result, given))

    Thread(target=work, name="terminal", daemon=True).start()
    return await answer


async def unless(stopped: asyncio.Event, work: Awaitable[None]) -> None:
    """Wait for work, but no longer than until everything is stopped."""
    doing = asyncio.ensure_future(work)
    stopping = asyncio.ensure_future(stopped.wait())
    try:
        await asyncio.wait({doing, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if doing.done():
            await doing
    finally:
        for one in (doing, stopping):
            one.cancel()
        await asyncio.gather(doing, stopping, return_exceptions=True)
