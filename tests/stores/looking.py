"""A store that is opened and closed, and whether a run in it is whole."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeVar

from loopagent.ports import Store


StoreT = TypeVar("StoreT", bound=Store)


@asynccontextmanager
async def opening(store: StoreT) -> AsyncIterator[StoreT]:
    """The store, opened."""
    await store.open()
    try:
        yield store
    finally:
        await store.aclose()


async def is_whole(store: Store, run_id: str) -> int:
    """The version of a run whose log, numbers, transcript and state fit together."""
    snapshot = await store.load(run_id)
    assert snapshot is not None
    entries = await store.log(run_id)
    assert [one.version for one in entries] == list(range(1, snapshot.version + 1))
    events = await store.events(run_id, limit=100_000)
    assert [one["seq"] for one in events] == list(range(1, snapshot.seq + 1))
    assert snapshot.state.turn == snapshot.version - 1
    numbers = [one.number for one in await store.transcript(run_id)]
    assert numbers == list(range(1, snapshot.state.messages + 1))
    return snapshot.version
