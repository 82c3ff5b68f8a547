"""Threads for blocking work that may get stuck: a stuck one keeps neither others nor the process."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Callable
from typing import Generic, TypeVar


T = TypeVar("T")


class BusyError(Exception):
    """Nothing was started: there is no room for it."""


class Threads:
    """A bounded number of daemon threads, one for each piece of work.

    Python cannot stop a thread. Work that is given up goes on in its thread until it ends by itself;
    its place is free again at once, as long as not too many threads are stuck that way.

    Args:
        maximum: Threads that work side by side.
        max_stuck: Given-up threads that may still be running before no further work is taken.
    """

    def __init__(self, maximum: int, max_stuck: int) -> None:
        self._maximum = maximum
        self._max_stuck = max_stuck
        self._stuck = 0
        self._free = asyncio.Semaphore(maximum)

    async def start(
        self,
        call: Callable[[], T],
        *,
        ends_at: float,
        on_end: Callable[[], None] | None = None,
    ) -> Work[T]:
        """Begin to run `call` in a thread, with the context variables of the caller.

        Args:
            call: What it raises reaches whoever waits for its result.
            ends_at: When to stop waiting for a free thread, on the loop's clock, seconds.
            on_end: Called on the loop when the thread has ended, waited for or not.

        Raises:
            BusyError: None became free in time, or too many are stuck.
        """
        if self._stuck >= self._max_stuck:
            raise BusyError(f"{self._stuck} calls that were given up are still running")
        if self._free.locked():
            await self._wait(ends_at)
        else:
            await self._free.acquire()
        work = Work[T](self, on_end)
        try:
            work.begin(call)
        except RuntimeError as error:  # the system gives no more threads
            self._free.release()
            raise BusyError(str(error)) from error
        return work

    async def _wait(self, ends_at: float) -> None:
        try:
            async with asyncio.timeout_at(ends_at):
                await self._free.acquire()
        except TimeoutError:
            text = f"all {self._maximum} threads for synchronous actions are busy"
            raise BusyError(text) from None

    def ended(self, *, given_up: bool) -> None:
        """A thread has ended."""
        if given_up:
            self._stuck -= 1
        else:
            self._free.release()

    def given_up(self) -> None:
        """A thread is not waited for any more."""
        self._stuck += 1
        self._free.release()


class Work(Generic[T]):
    """One piece of work in a thread. `result` gets what it brings, or None from whoever gives up."""

    def __init__(self, threads: Threads, on_end: Callable[[], None] | None) -> None:
        self._threads = threads
        self._on_end = on_end
        self._loop = asyncio.get_running_loop()
        self._ended = self._given_up = False
        self.result: asyncio.Future[T | None] = self._loop.create_future()

    def begin(self, call: Callable[[], T]) -> None:
        """Start the thread."""
        run = contextvars.copy_context().run
        threading.Thread(target=run, args=(self._run, call), name="action", daemon=True).start()

    async def give_up(self) -> None:
        """Do not wait for it any more."""
        if not self._ended:
            self._given_up = True
            self._threads.given_up()

    def _run(self, call: Callable[[], T]) -> None:
        try:
            self._hand_over(self.result.set_result, call())
        except BaseException as error:  # KeyboardInterrupt: it reaches whoever waits
            self._hand_over(self.result.set_exception, error)

    def _hand_over(self, settle: Callable[..., None], result: object) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(self._end, settle, result)

    def _end(self, settle: Callable[..., None], result: object) -> None:
        self._ended = True
        self._threads.ended(given_up=self._given_up)
        if self._on_end is not None:
            self._on_end()
        if not self.result.done():
            settle(result)
