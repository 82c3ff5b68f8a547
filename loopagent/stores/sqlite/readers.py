"""A few threads that read. Each reading is one transaction, so it sees one moment of the database."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from loopagent.stores.sqlite.file import explain, rollback
from loopagent.stores.sqlite.writer import not_open


T = TypeVar("T")


class Readers:
    """Runs read jobs off the event loop.

    Args:
        connect: Opens a connection that only reads.
        path: The file, for error messages.
        count: Threads, each with a connection once it is needed.
    """

    def __init__(
        self, connect: Callable[[], sqlite3.Connection], path: Path, *, count: int
    ) -> None:
        self._connect = connect
        self._path = path
        self._count = count
        self._idle: list[sqlite3.Connection] = []
        self._pool: ThreadPoolExecutor | None = None

    def open(self) -> None:
        """Allow reading."""
        self._pool = ThreadPoolExecutor(self._count, thread_name_prefix="loopagent-sqlite-reader")

    async def run(self, read: Callable[[sqlite3.Connection], T]) -> T:
        """Read something.

        Raises:
            StoreError: It could not be read, or the store is not open.
        """
        if self._pool is None:
            raise not_open(self._path)
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._read, read)

    async def aclose(self) -> None:
        """Finish what is being read and close the connections."""
        pool, self._pool = self._pool, None
        if pool is not None:
            await asyncio.to_thread(pool.shutdown)
        while self._idle:
            self._idle.pop().close()

    def _read(self, read: Callable[[sqlite3.Connection], T]) -> T:
        try:
            connection = self._take()
            try:
                connection.execute("BEGIN")
                return read(connection)
            finally:
                rollback(connection)
                self._idle.append(connection)
        except (sqlite3.Error, UnicodeEncodeError) as error:
            raise explain(error, self._path) from error

    def _take(self) -> sqlite3.Connection:
        try:
            return self._idle.pop()
        except IndexError:
            return self._connect()
