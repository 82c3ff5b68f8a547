"""Who writes. What has queued up meanwhile goes into one transaction, so one sync serves all.

A thread does, so that the event loop does not wait for the disk. But waking it and being woken by it costs more
than a commit to a fast disk. So while commits are quick and jobs come one by one, they are done where they are asked
for, if the thread has nothing to do and no other process holds the lock. When more are slow than quick, that ends
until the thread has seen quick ones again.

All other jobs are handed over when the event loop has run everything that was ready: then the thread finds them
together and has the interpreter to itself, instead of fighting for it after every statement.

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
from time import perf_counter
from typing import Any, TypeAlias, TypeVar

from loopagent.errors import LoopAgentError, StoreError
from loopagent.stores.sqlite.file import explain, is_busy, rollback


T = TypeVar("T")
Write: TypeAlias = Callable[[sqlite3.Connection], T]

MAX_JOBS = 512
"""No more is taken into one transaction once it has so many jobs."""
MAX_AT_ONCE = 2
"""Runs whose jobs of one moment are done on the event loop. Those of more had better share a commit."""
CROWDED = 8
"""After jobs that came together so many more go to the thread, where others can join them."""
TOO_SLOW = 4
"""So many more slow commits than quick ones send jobs to the thread; one that was held up by chance does not."""

_LEAST = {"OFF": "OFF", "NORMAL": "NORMAL", "FULL": "NORMAL", "EXTRA": "NORMAL"}
"""How commits are written that need no sync of their own, by the level of the others."""


class _Ticket:
    """A job on its way: what to do, who waits for it, how it ended."""

    __slots__ = ("error", "future", "prepare", "synced", "value", "write")

    def __init__(
        self,
        prepare: Callable[[], Write[Any]],
        future: asyncio.Future[Any] | None = None,
        *,
        synced: bool = True,
    ) -> None:
        self.prepare = prepare
        self.future = future
        self.synced = synced
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
        if self.future is None or self.future.done():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.value)


Queue: TypeAlias = "SimpleQueue[list[_Ticket] | None]"
"""Jobs that were handed over together; None ends the thread."""


class Writer:
    """Runs write jobs one after the other, on its thread or at once.

    Args:
        connect: Opens the connection; runs on the thread.
        path: The file, for error messages.
        inline_seconds: A job may be done at once, on the event loop, while most commits take no longer; 0 for
            never.
        busy_timeout_seconds: How long the thread waits for another process that holds the lock; the event
            loop never does.
        synchronous: How commits are synced that are to be synced.
    """

    def __init__(
        self,
        connect: Callable[[], sqlite3.Connection],
        path: Path,
        *,
        inline_seconds: float = 0.0,
        busy_timeout_seconds: float = 30.0,
        synchronous: str = "FULL",
    ) -> None:
        self._connect = connect
        self._path = path
        self._inline_seconds = inline_seconds
        self._timeout_ms = int(busy_timeout_seconds * 1000)
        self._patient = True
        self._synchronous = synchronous
        self._synced = True
        self._slowness = 0
        self._connection: sqlite3.Connection | None = None
        self._writing = threading.Lock()
        self._handed_over = 0
        self._at_once: set[object] = set()
        self._crowded = 0
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
        self._handed_over = 1
        thread.start()
        try:
            await opened
        except BaseException:
            queue.put(None)
            raise
        self._queue, self._thread = queue, thread

    async def submit(
        self, prepare: Callable[[], Write[T]], *, synced: bool = True, run_id: str = ""
    ) -> T:
        """Run a job and wait for its commit.

        Args:
            prepare: The job.
            synced: Whether its commit must survive a power cut; one that need not does so with the next that must.
            run_id: The run that moves on by it. Its next job comes after this one, so they could not share a commit.

        Raises:
            StoreError: It could not be written, or the store is not open.
        """
        if self._thread is None:
            raise not_open(self._path)
        loop = asyncio.get_running_loop()
        ticket = _Ticket(prepare, synced=synced)
        tickets = self._gathered.get(loop)
        if tickets is None:
            tickets = self._gathered[loop] = []
            self._at_once.clear()
            loop.call_soon(self._hand_over, loop)
        few = run_id in self._at_once or len(self._at_once) < MAX_AT_ONCE
        if not tickets and few and self._done_at_once(ticket):
            self._at_once.add(run_id or ticket)
            if ticket.error is not None:
                raise ticket.error
            value: T = ticket.value
            return value
        future: asyncio.Future[T] = loop.create_future()
        ticket.future = future
        tickets.append(ticket)
        return await future

    def _done_at_once(self, ticket: _Ticket) -> bool:
        """Do a job on the event loop; False when it has to go to the thread."""
        slow = self._slowness >= TOO_SLOW or not self._inline_seconds
        if slow or self._crowded or not self._writing.acquire(blocking=False):
            return False
        try:
            connection = self._connection
            if self._handed_over or connection is None:
                return False
            if ticket.ready():
                self._commit([ticket], connection, patient=False)
        except Exception as error:  # noqa: BLE001 - goes to whoever waits
            if is_busy(error):
                return False
            ticket.error = explain(error, self._path)
        finally:
            self._writing.release()
        return True

    def _hand_over(self, loop: asyncio.AbstractEventLoop) -> None:
        tickets = self._gathered.pop(loop, [])
        if not tickets:
            return
        self._crowded = CROWDED if len(tickets) > 1 else max(self._crowded - 1, 0)
        with self._lock:
            if self._thread is not None:
                self._handed_over += len(tickets)
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
        self._connection, self._patient, self._synced = connection, True, True
        open_ = True
        while open_:
            tickets, open_ = _take(queue)
            ready = [one for one in tickets if one.ready()]
            with self._writing:
                self._write(ready, connection)
            with self._lock:
                self._handed_over -= len(tickets)
            _deliver(tickets)
        with self._writing:
            self._connection = None
            connection.close()

    def _write(self, tickets: list[_Ticket], connection: sqlite3.Connection) -> None:
        """Commit jobs together; when that breaks, each alone."""
        if not tickets:
            return
        try:
            self._commit(tickets, connection, patient=True)
        except Exception as error:  # noqa: BLE001 - goes to whoever waits
            if len(tickets) > 1 and not is_busy(error):
                for one in tickets:
                    self._write([one], connection)
                return
            told = explain(error, self._path)
            for one in tickets:
                one.error = told

    # ------------------------------------------------------------------ by whoever holds `_writing`

    def _commit(
        self, tickets: list[_Ticket], connection: sqlite3.Connection, *, patient: bool
    ) -> None:
        """Commit jobs together and note how long that takes; a failure rolls them back as a whole."""
        if patient != self._patient:
            connection.execute(f"PRAGMA busy_timeout = {self._timeout_ms if patient else 0}")
            self._patient = patient
        synced = False
        for one in tickets:
            synced = synced or one.synced
        if synced != self._synced:
            level = self._synchronous if synced else _LEAST[self._synchronous]
            connection.execute(f"PRAGMA synchronous = {level}")
            self._synced = synced
        began = perf_counter()
        connection.execute("BEGIN IMMEDIATE")
        try:
            for one in tickets:
                one.run(connection)
            connection.execute("COMMIT")
        except BaseException:
            rollback(connection)
            raise
        if len(tickets) == 1:
            slow = perf_counter() - began > self._inline_seconds
            self._slowness = min(max(self._slowness + (1 if slow else -1), 0), 2 * TOO_SLOW)


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


def _deliver(tickets: list[_Ticket]) -> None:
    """Hand the results over, once for each event loop that waits."""
    waited_for = [(one.future.get_loop(), one) for one in tickets if one.future is not None]
    for loop, group in groupby(waited_for, key=lambda one: one[0]):
        with suppress(RuntimeError):  # that loop has been closed: nobody waits any more
            loop.call_soon_threadsafe(_settle, [one for _, one in group])


def _settle(tickets: list[_Ticket]) -> None:
    for one in tickets:
        one.settle()


def _nothing(connection: sqlite3.Connection) -> None:
    """Write nothing."""
    del connection


def not_open(path: Path) -> StoreError:
    """The error for work before `open` or after `aclose`."""
    return StoreError(f"The store of {path} is not open: `await store.open()` comes first.")
