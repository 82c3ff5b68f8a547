"""What processes tell each other through the database: that a run has moved on, that there is work.

Notices are sent apart from the commits they tell of, and many at a time: a transaction that notifies holds a lock
over all of the server's databases while it is made safe on disk. So a notice may be lost with the process that was
about to send it; whoever needs to be certain also looks, now and then.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from loopagent.dispatch_port import News
from loopagent.errors import StoreError
from loopagent.logs import log
from loopagent.stores.postgres.connections import connect
from loopagent.stores.postgres.faults import LOST


if TYPE_CHECKING:
    from loopagent.stores.postgres.address import Address
    from loopagent.stores.postgres.connections import Db

MAX_NOTICE_BYTES = 7_500
"""PostgreSQL takes no payload of 8000 bytes or more."""
SPACING_SECONDS = 0.02
"""Notices of one process are at least so far apart; the first one after a silence goes out at once."""
FIRST_PAUSE_SECONDS = 0.05
LONGEST_PAUSE_SECONDS = 5.0


class Signals:
    """A connection for notices, held as long as the store is open and somebody watches or has something to tell.

    Args:
        address: The database.
    """

    def __init__(self, address: Address) -> None:
        self._address = address
        self._me = token_hex(6)
        self._channel = f"loopagent_{address.schema}"
        self._heard: Callable[[News], None] | None = None
        self._untold: dict[str, News] = {}
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def watch(self, heard: Callable[[News], None]) -> None:
        """Have news brought."""
        self._heard = heard

    def tell(self, news: News) -> None:
        """Send news soon; of one run only the latest."""
        if self._task is None:
            return
        known = self._untold.get(news.run_id)
        if known is None or news.version >= known.version:
            self._untold[news.run_id] = news
        self._wake.set()

    def open(self) -> None:
        """Begin, if anybody watches."""
        if self._heard is not None and self._task is None:
            self._task = asyncio.create_task(self._stay(), name="signals")

    async def aclose(self) -> None:
        """Send what is untold, and stop."""
        task, self._task = self._task, None
        if task is None:
            return
        for _ in range(50):
            if not self._untold or task.done():
                break
            await asyncio.sleep(0.01)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    async def _stay(self) -> None:
        """Stay connected. After a break whoever listens is told that something may have been missed."""
        pause = FIRST_PAUSE_SECONDS
        while True:
            try:
                await self._serve()
            except Exception as error:  # noqa: BLE001 - whatever it is, the next connection may do better
                if not isinstance(error, (StoreError, *LOST)):
                    log.error("signals.broke", error)
            log.warning("signals.away", retry_seconds=pause)
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE_SECONDS)

    async def _serve(self) -> None:
        db = await connect(self._address)
        try:
            db.add_termination_listener(self._ended)
            await db.add_listener(self._channel, self._arrived)
            self._hear(News())
            clock, earliest = asyncio.get_running_loop().time, 0.0
            while not db.is_closed():
                await self._wake.wait()
                await asyncio.sleep(max(earliest - clock(), 0.0))
                self._wake.clear()
                await self._send(db)
                earliest = clock() + SPACING_SECONDS
        finally:
            db.terminate()

    def _ended(self, db: Db) -> None:
        del db
        self._wake.set()

    async def _send(self, db: Db) -> None:
        """Send all that is untold; what could not be sent stays untold."""
        while self._untold:
            batch = self._batch()
            payload = json.dumps([self._me, *map(_entry, batch)], separators=(",", ":"))
            await db.execute("SELECT pg_notify($1, $2)", self._channel, payload)
            for one in batch:
                if self._untold.get(one.run_id) is one:
                    del self._untold[one.run_id]

    def _batch(self) -> list[News]:
        """As many news as one notice can carry."""
        batch: list[News] = []
        left = MAX_NOTICE_BYTES
        for one in self._untold.values():
            left -= len(json.dumps(_entry(one))) + 1
            if batch and left < 0:
                break
            batch.append(one)
        return batch

    def _arrived(self, db: Db, pid: int, channel: str, payload: str) -> None:
        del db, pid, channel
        sender, *batch = json.loads(payload)
        if sender == self._me:
            return
        for run_id, root_id, version in batch:
            self._hear(News(run_id, root_id or run_id, version))

    def _hear(self, news: News) -> None:
        if self._heard is None:
            return
        try:
            self._heard(news)
        except Exception as error:  # noqa: BLE001 - a listener's fault must not end the listening
            log.error("signals.not_heard", error, run_id=news.run_id)


def _entry(news: News) -> list[Any]:
    """News as they are sent; a root is not named twice."""
    return [news.run_id, "" if news.root_id == news.run_id else news.root_id, news.version]
