"""The one thread that writes. What has queued up meanwhile goes into one transaction, so one sync serves all.

Jobs are handed over when the event loop has run everything that was ready: then the thread finds them together and
has the interpreter to itself, instead of fighting for it after every statement.

A job has two parts. `prepare` runs outside the transaction and may fail for itself alone (a value that is not
JSON). What it returns runs inside; it may refuse with a `LoopAgentError` as long as it has written nothing. After
any other failure the transaction is rolled back and its jobs are tried again one by one, so that none fails for
another's sake.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeAlias, TypeVar

from loopagent.errors import LoopAgentError, StoreError
from loopagent.stores.sqlite.file import explain, is_busy, rollback


T = TypeVar("T")
Write: TypeAlias = Callable[[sqlite3.Connection], T]

MAX_JOBS = 512
"""No more is taken into one transaction once it has so many jobs."""


class _Ticket:
    """A job on its way: what to do, who waits for it, how it ended."""

    __slots__ = ("error", "future", "prepare", "value", "write")

    def __init__(self, prepare: Callable[[], Write[Any]], future: asyncio.Future[Any]) -> None:
        self.prepare = prepare
        self.future = future
        self.write: Write[Any] | None = None
        self.value: Any = None
        self.error: BaseException | None = None

    def ready(self) -> bool:
        """Do what needs no transaction; False when that failed."""
        try:
            self.write = self.prepare()
        except Exception as error:  # noqa: BLE001 - goes to whoever waits
            self.error = error
        return self.error is None

    def run(self, connection: sqlite3.Connection) -> None:
        """Write. A refusal is the job's result; anything else breaks the transaction."""
        assert self.write is not None
        try:
            self.value, self.error = self.write(connection), None
        except LoopAgentError as error:
            self.error = error

    def settle(self) -> None:
        """Tell who waits; runs on their event loop."""
        if self.future.done():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.value)


Queue: TypeAlias = "SimpleQueue[list[_Ticket] | None]"
"""Jobs that were handed over together; None ends the thread."""


class Writer:
    """Runs write jobs on one thread, in the order they came.

    Args:
        connect: Opens the connection; runs on the thread.
        path: The file, for error messages.
    """

    def __init__(self, connect: Callable[[], sqlite3.Connection], path: Path) -> None:
        self._connect = connect
        self._path = path
        self._gathered: dict[asyncio.AbstractEventLoop, list[_Ticket]] = {}
        self._queue: Queue = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    async def open(self) -> None:
        """Start the thread and open the connection.

        Raises:
            StoreError: It cannot be opened; the thread has ended then.
        """
        opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue: Queue = SimpleQueue()
        queue.put([_Ticket(lambda: _nothing, opened)])
        name = "loopagent-sqlite-writer"
        thread = threading.Thread(target=self._main, args=(queue,), name=name, daemon=True)
        thread.start()
        try:
            await opened
        except BaseException:
            queue.put(None)
            raise
        self._queue, self._thread = queue, thread

    async def submit(self, prepare: Callable[[], Write[T]]) -> T:
        """Run a job and wait for its commit.

        Raises:
            StoreError: It could not be written, or the store is not open.
        """
        if self._thread is None:
            raise not_open(self._path)
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        tickets = self._gathered.get(loop)
        if tickets is None:
            tickets = self._gathered[loop] = []
            loop.call_soon(self._hand_over, loop)
        tickets.append(_Ticket(prepare, future))
        return await future

    def _hand_over(self, loop: asyncio.AbstractEventLoop) -> None:
        tickets = self._gathered.pop(loop, [])
        with self._lock:
            if self._thread is not None:
                self._queue.put(tickets)
                return
        for one in tickets:
            one.error = not_open(self._path)
            one.settle()

    async def aclose(self) -> None:
        """Finish what is queued, then close the connection."""
        self._hand_over(asyncio.get_running_loop())
        with self._lock:
            thread, self._thread = self._thread, None
            self._queue.put(None)
        if thread is not None:
            await asyncio.to_thread(thread.join)

    # ------------------------------------------------------------------ on the thread

    def _main(self, queue: Queue) -> None:
        try:
            connection = self._connect()
        except Exception as error:  # noqa: BLE001 - goes to whoever opens
            first, _ = _take(queue)
            for one in first:
                one.error = error
            _deliver(first)
            return
        open_ = True
        while open_:
            tickets, open_ = _take(queue)
            self._write([one for one in tickets if one.ready()], connection)
            _deliver(tickets)
        connection.close()

    def _write(self, tickets: list[_Ticket], connection: sqlite3.Connection) -> None:
        """Commit jobs together; when that breaks, each alone."""
        if not tickets:
            return
        try:
            _transact(tickets, connection)
        except Exception as error:  # noqa: BLE001 - goes to whoever waits
            if len(tickets) > 1 and not is_busy(error):
                for one in tickets:
                    self._write([one], connection)
                return
            told = explain(error, self._path)
            for one in tickets:
                one.error = told


def _take(queue: Queue) -> tuple[list[_Ticket], bool]:
    """Everything that is queued, and False at the end mark; waits for the first."""
    taken: list[_Ticket] = []
    more = queue.get()
    while more is not None:
        taken += more
        if len(taken) >= MAX_JOBS or queue.empty():
            return taken, True
        more = queue.get()
    return taken, False


def _transact(tickets: list[_Ticket], connection: sqlite3.Connection) -> None:
    """One transaction; a failure rolls it back as a whole."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        for one in tickets:
            one.run(connection)
        connection.execute("COMMIT")
    except BaseException:
        rollback(connection)
        raise


def _deliver(tickets: list[_Ticket]) -> None:
    """Hand the results over, once for each event loop that waits."""
    for loop, group in groupby(tickets, key=lambda one: one.future.get_loop()):
        with suppress(RuntimeError):  # that loop has been closed: nobody waits any more
            loop.call_soon_threadsafe(_settle, list(group))


def _settle(tickets: list[_Ticket]) -> None:
    for one in tickets:
        one.settle()


def _nothing(connection: sqlite3.Connection) -> None:
    """Write nothing."""
    del connection


def not_open(path: Path) -> StoreError:
    """The error for work before `open` or after `aclose`."""
    return StoreError(f"The store of {path} is not open: `await store.open()` comes first.")
