"""Another process at work on a database: `python hammer.py FILE-OR-URL RUN COMMITS`.

Creates the run where it is missing, then commits turns against whatever version it finds, and prints each version
that it was told is committed.
"""

import asyncio
import sys

from loopagent.errors import ConflictError
from loopagent.ports import Store
from loopagent.stores import open_store
from loopagent.testing.store_samples import SampleRun


async def hammer(path: str, run_id: str, commits: int) -> None:
    store = open_store(path if "://" in path else f"sqlite:///{path}")
    await store.open()
    run = SampleRun(run_id)
    try:
        await store.create(run.begin())
    except ConflictError:
        await reload(store, run)
    for _ in range(commits):
        while not await commit(store, run):
            await reload(store, run)
        sys.stdout.write(f"{run.version}\n")
        sys.stdout.flush()
    await store.aclose()


async def commit(store: Store, run: SampleRun) -> bool:
    try:
        await store.commit(run.turn())
    except ConflictError:
        return False
    return True


async def reload(store: Store, run: SampleRun) -> None:
    snapshot = await store.load(run.id)
    assert snapshot is not None
    run.state, run.version = snapshot.state, snapshot.version


if __name__ == "__main__":
    asyncio.run(hammer(sys.argv[1], sys.argv[2], int(sys.argv[3])))
