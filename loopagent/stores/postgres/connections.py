"""The connections of a store: a few, used in turn, and made again when the server was away.

Whatever is done with a connection may be done again after it was lost: each piece of work is told whether it was
tried before, because nobody knows whether a commit that got no answer took place.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import asyncpg

from loopagent.errors import StoreError
from loopagent.logs import log
from loopagent.stores.postgres.faults import LOST, TRANSIENT, translate


if TYPE_CHECKING:
    from loopagent.stores.postgres.address import Address

T = TypeVar("T")
Db: TypeAlias = Any
"""A connection of `asyncpg`, which is not typed strictly."""
Work = Callable[[Db, bool], Awaitable[T]]
"""Is given a connection, and whether it may have been done already."""

FIRST_PAUSE_SECONDS = 0.05
LONGEST_PAUSE_SECONDS = 1.0
LONGEST_CONNECT_SECONDS = 10.0
MAX_CLASHES = 8
"""How often work is done again that clashed with somebody else's."""


class Connections:
    """Connections to one database.

    Args:
        address: The database.
    """

    def __init__(self, address: Address) -> None:
        self._address = address
        self._idle: list[Db] = []
        self._free = asyncio.Semaphore(address.connections)
        self._open = False

    async def open(self) -> None:
        """Make the first connection; waits for a server that is only starting.

        Raises:
            StoreError: The server cannot be reached, or refuses.
        """
        self._open = True
        try:
            await self.run(_nothing)
        except BaseException:
            self._open = False
            raise

    async def aclose(self) -> None:
        """Close what is idle; what is in use is closed when it comes back."""
        self._open = False
        idle, self._idle = self._idle, []
        for one in idle:
            await _close(one)

    async def run(self, work: Work[T]) -> T:
        """Do a piece of work with a connection, again if the connection is lost or others are in the way.

        Raises:
            StoreError: The server stayed away, or refuses.
        """
        if not self._open:
            raise StoreError("The store is not open: `await store.open()` comes first.")
        async with self._free:
            return await self._insist(work)

    async def _insist(self, work: Work[T]) -> T:
        deadline = asyncio.get_running_loop().time() + self._address.patience_seconds
        pause, clashes, again = FIRST_PAUSE_SECONDS, 0, False
        while True:
            used = bool(self._idle)
            try:
                return await self._once(work, again=again)
            except TRANSIENT as error:
                clashes += 1
                if clashes > MAX_CLASHES:
                    raise translate(error) from error
                await asyncio.sleep(0.01 * clashes)
            except LOST as error:
                again = True
                self._discard()
                if used:
                    continue  # it may have died long ago; a new one will tell
                if asyncio.get_running_loop().time() + pause > deadline or not self._open:
                    raise translate(error) from error
                log.warning("database.away", retry_seconds=pause)
                await asyncio.sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE_SECONDS)

    async def _once(self, work: Work[T], *, again: bool) -> T:
        db = self._idle.pop() if self._idle else await connect(self._address)
        try:
            result = await work(db, again)
        except BaseException as error:
            closed = db.is_closed()
            self._after(db, error)
            if closed and isinstance(error, asyncpg.InterfaceError):
                raise ConnectionResetError(str(error)) from error
            known = translate(error)
            if known is error or isinstance(error, (*TRANSIENT, *LOST)):
                raise
            raise known from error
        self._give_back(db)
        return result

    def _after(self, db: Db, error: BaseException) -> None:
        """Keep a connection whose work failed in an orderly way."""
        orderly = isinstance(error, Exception) and not isinstance(error, LOST)
        if orderly and not db.is_closed() and not db.is_in_transaction():
            self._give_back(db)
        else:
            db.terminate()

    def _give_back(self, db: Db) -> None:
        if self._open:
            self._idle.append(db)
        else:
            db.terminate()

    def _discard(self) -> None:
        """The server was away: what is idle is of no use either."""
        idle, self._idle = self._idle, []
        for one in idle:
            one.terminate()


async def connect(address: Address) -> Db:
    """A new connection that sees our tables first.

    Raises:
        StoreError: The address or the password is wrong.
    """
    try:
        return await asyncpg.connect(
            address.dsn,
            timeout=int(min(address.timeout_seconds, LONGEST_CONNECT_SECONDS)) or 1,
            command_timeout=address.timeout_seconds,
            server_settings={
                "search_path": address.schema,
                "application_name": "loopagent",
                "jit": "off",
            },
        )
    except LOST:
        raise
    except Exception as error:
        raise translate(error) from error


async def _close(db: Db) -> None:
    try:
        await db.close(timeout=2.0)
    except Exception:  # noqa: BLE001 - it is gone either way
        db.terminate()


async def _nothing(db: Db, _: bool) -> None:
    del db
