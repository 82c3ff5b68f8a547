"""What ForEach costs per item, beside a plain semaphore loop with as many commits: `python benchmarks/for_each.py`.

Prints, for memory, SQLite, and SQLite with `durability=turn`: CPU microseconds of this process per item, and
transactions; then the microseconds of an `asyncio` loop that runs the same no-op under a semaphore and, beside SQLite,
commits and syncs as often. Both are measured in turn, and the lowest of the rounds counts.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sqlite3
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loopagent import Agent, App, action
from loopagent.models.scripted import ScriptedModel
from loopagent.stores import MemoryStore
from loopagent.stores.sqlite import SqliteStore


if TYPE_CHECKING:
    from loopagent.ports import Commit, Store


@action(effects="read")
async def check(item: int) -> int:
    """Check one item."""
    return item


def agent(width: int) -> Agent[Any]:
    """An agent whose model asks for one loop and then completes."""
    each = {
        "collectionPath": "rows",
        "executionMode": "parallel",
        "maxConcurrency": width,
        "action": {"name": "check", "params": {"item": "{{ item }}"}},
    }
    script = [
        {"taskComplete": False, "nextStep": {"type": "ForEach", "forEach": each}},
        {"taskComplete": True, "message": "Done."},
    ] * 2
    return Agent(
        "bench",
        model=ScriptedModel(script),
        actions=[check],
    )


class Counted(SqliteStore):
    """Counts its transactions."""

    transactions = 0

    async def commit(self, commit: Commit, *later: Commit) -> int:
        """Append transitions, in one transaction."""
        self.transactions += 1
        return await super().commit(commit, *later)


async def ours(store: Store, count: int, width: int) -> dict[str, Any]:
    """One run of the loop, after a short one that makes what is made once, as the prompt is."""
    async with App(agents=[agent(width)], store=store) as app:
        first = await app.start("bench", "Check some.", payload={"rows": [0] * width})
        await app.wait(first.id)
        before = getattr(store, "transactions", 0)
        began = time.process_time()
        run = await app.start("bench", "Check them all.", payload={"rows": list(range(count))})
        run = await app.wait(run.id)
        spent = time.process_time() - began
        commits = getattr(store, "transactions", 0) - before
        assert run.state.status == "completed", run
    return {"us_per_item": round(spent * 1e6 / count, 1), "commits": commits}


def floor(path: Path, count: int, width: int, commits: int) -> float:
    """The same no-op under a semaphore, committing as often (never for 0); CPU microseconds an item."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE result (item INTEGER, body TEXT)")
    per_commit = max(1, count // commits) if commits else count + 1

    async def main() -> None:
        gate, ready = asyncio.Semaphore(width), []

        async def one(item: int) -> None:
            async with gate:
                ready.append((item, json.dumps({"item": item})))
                await asyncio.sleep(0)
            if len(ready) >= per_commit:
                rows, ready[:] = list(ready), []
                connection.execute("BEGIN")
                connection.executemany("INSERT INTO result VALUES (?, ?)", rows)
                connection.execute("COMMIT")

        await asyncio.gather(*[one(item) for item in range(count)])

    began = time.process_time()
    asyncio.run(main())
    return (time.process_time() - began) * 1e6 / count


def measured(name: str, count: int, width: int) -> tuple[dict[str, Any], float]:
    """One round: ours, and the bare loop that commits as often to the same kind of store."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "runs.db"
        store: Store = MemoryStore()
        if name != "memory":
            store = Counted(file, durability="turn" if name == "turn" else "effect")
        result = asyncio.run(ours(store, count, width))
        return result, floor(Path(folder) / "floor.db", count, width, result["commits"])


def main() -> None:
    """Measure and print one JSON object a line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=1000)
    parser.add_argument("--width", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    for name in ("memory", "effect", "turn"):
        measured(name, 50, options.width)
        rounds = [measured(name, options.items, options.width) for _ in range(options.rounds)]
        result = min((one for one, _ in rounds), key=lambda one: float(one["us_per_item"]))
        bare = min(one for _, one in rounds)
        ratio = round(result["us_per_item"] / bare, 2)
        print(json.dumps({"store": name, **result, "floor_us": round(bare, 1), "ratio": ratio}))


if __name__ == "__main__":
    main()
