"""The one thread that writes. What has queued up meanwhile goes into one transaction, so one sync serves all.

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
from itertools import groupby
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, TypeAlias, TypeVar

from loopagent.errors import LoopAgentError, StoreError
from loopagent.stores.sqlite.file import explain, is_busy, rollback


T = TypeVar("T")
Write: TypeAlias = Callable[[sqlite3.Connection], T]

MAX_JOBS = 512
"""Jobs in one transaction."""


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
        assert self.write is not None  # noqa: S101 - only ready tickets are run
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


class Writer:
    """Runs write jobs on one thread, in the order they came.

    Args:
        connect: Opens the connection; runs on the thread.
        path: The file, for error messages.
    """

    def __init__(self, connect: Callable[[], sqlite3.Connection], path: Path) -> None:
        self._connect = connect
        self._path = path
        self._queue: SimpleQueue[_Ticket | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    async def open(self) -> None:
        """Start the thread and open the connection.

        Raises:
            StoreError: It cannot be opened; the thread has ended then.
        """
        opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue: SimpleQueue[_Ticket | None] = SimpleQueue()
        ticket = _Ticket(lambda: _nothing, opened)
        name = "loopagent-sqlite-writer"
        thread = threading.Thread(target=self._main, args=(queue, ticket), name=name, daemon=True)
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
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        with self._lock:
            if self._thread is None:
                raise not_open(self._path)
            self._queue.put(_Ticket(prepare, future))
        return await future

    async def aclose(self) -> None:
        """Finish what is queued, then close the connection."""
        with self._lock:
            thread, self._thread = self._thread, None
            self._queue.put(None)
        if thread is not None:
            await asyncio.to_thread(thread.join)

    # ------------------------------------------------------------------ on the thread

    def _main(self, queue: SimpleQueue[_Ticket | None], opened: _Ticket) -> None:
        try:
            connection = self._connect()
        except Exception as error:  # noqa: BLE001 - goes to whoever opens
            opened.error = error
            _deliver([opened])
            return
        _deliver([opened])
        open_ = True
        while open_:
            tickets = _take(queue)
            open_ = tickets[-1] is not None
            asked = [one for one in tickets if one is not None]
            self._write([one for one in asked if one.ready()], connection)
            _deliver(asked)
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


def _take(queue: SimpleQueue[_Ticket | None]) -> list[_Ticket | None]:
    """Everything that is queued, up to the end mark; waits for the first."""
    taken = [queue.get()]
    while taken[-1] is not None and len(taken) < MAX_JOBS:
        try:
            taken.append(queue.get_nowait())
        except Empty:
            break
    return taken


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
        try:
            loop.call_soon_threadsafe(_settle, list(group))
        except RuntimeError:
            continue  # that loop has been closed: nobody waits any more


def _settle(tickets: list[_Ticket]) -> None:
    for one in tickets:
        one.settle()


def _nothing(connection: sqlite3.Connection) -> None:
    """Write nothing."""
    del connection


def not_open(path: Path) -> StoreError:
    """The error for work before `open` or after `aclose`."""
    return StoreError(f"The store of {path} is not open: `await store.open()` comes first.")
