"""Async calls of actions in tasks of their own, so that one that ignores its end holds up nobody."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from typing import Any, cast

from loopagent.core.outcome import Outcome


CANCELLED_ITSELF = "CancelledError: the action cancelled itself"


class AsyncAttempt:
    """An async attempt, in a task of its own so that it cannot hold up whoever waits for `result`."""

    def __init__(self, call: Coroutine[Any, Any, Outcome], grace_seconds: float) -> None:
        loop = asyncio.get_running_loop()
        self.result: asyncio.Future[Outcome | None] = loop.create_future()
        self.task = loop.create_task(self._run(call))
        self._grace_seconds = grace_seconds

    async def give_up(self) -> None:
        """Cancel it, and wait a little for it to clean up."""
        self.task.cancel()
        await asyncio.wait((self.task,), timeout=self._grace_seconds)

    async def _run(self, call: Coroutine[Any, Any, Outcome]) -> None:
        settle = self.result.set_result
        try:
            _give(self.result, settle, await call)
        except asyncio.CancelledError:
            _give(self.result, settle, Outcome.failed("exception", CANCELLED_ITSELF))
            raise
        except BaseException as error:  # KeyboardInterrupt: it reaches whoever waits
            _give(self.result, self.result.set_exception, error)


def _give(result: asyncio.Future[Any], settle: Callable[[Any], None], value: object) -> None:
    """Settle a result that nobody has settled yet; whoever comes late is not heard."""
    if not result.done():
        settle(value)


async def kill(task: asyncio.Task[None]) -> None:
    """End a task that ignores its cancellation, by closing what it runs.

    `asyncio.run` waits for every task it knows, so one that went on would keep the process.
    """
    with contextlib.suppress(Exception, SystemExit):
        cast("Any", task.get_coro()).close()
    task.cancel()  # wakes it up: there is nothing left for it to run
    await asyncio.wait((task,))
    with contextlib.suppress(Exception, asyncio.CancelledError):
        task.result()  # looked at: how it ended is no news
