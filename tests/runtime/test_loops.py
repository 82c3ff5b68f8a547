"""Long loops in a real process: a thousand items survive `kill -9`; progress is seen; waits go on after a restart."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from loopagent import Agent, App, action
from loopagent.models.scripted import ScriptedModel
from loopagent.ports import Commit
from loopagent.runtime.workers import SLICE_SECONDS
from loopagent.stores import MemoryStore, open_store


pytestmark = pytest.mark.anyio
ROOT = Path(__file__).parent.parent.parent
COUNT = 1000
WORKER = textwrap.dedent("""
    import asyncio, os, signal, sys
    from pathlib import Path
    from loopagent import Agent, App, action
    from loopagent.models.scripted import ScriptedModel

    folder, fatal, count = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    lines = os.open(folder / "effects.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    @action(effects="write", approval="auto")
    async def charge(item: int) -> int:
        os.write(lines, f"{item}\\n".encode())
        if item == fatal:
            os.kill(os.getpid(), signal.SIGKILL)
        return item * 2

    each = {"collectionPath": "rows", "executionMode": "parallel", "continueOnError": True,
            "action": {"name": "charge", "params": {"item": "{{ item }}"}, "outputMapping": {"*": "out[]"}}}
    SCRIPT = [
        {"taskComplete": False, "nextStep": {"type": "ForEach", "forEach": each}},
        {"taskComplete": True, "message": "finished"},
    ]

    async def main():
        agent = Agent("clerk", model=ScriptedModel(SCRIPT), actions=[charge])
        async with App(agents=[agent], store=f"sqlite:///{folder}/runs.db") as app:
            rows, _ = await app.runs()
            start = app.start("clerk", "charge them", payload={"rows": list(range(count))})
            run_id = rows[0].id if rows else (await start).id
            if rows:
                start.close()
            view = await app.wait(run_id, timeout_seconds=60)
            print(view.state.status, view.state.turn, flush=True)

    asyncio.run(main())
""")


def work(folder: Path, fatal: int) -> subprocess.CompletedProcess[str]:
    script = folder / "worker.py"
    script.write_text(WORKER)
    return subprocess.run(
        [sys.executable, str(script), str(folder), str(fatal), str(COUNT)],
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


async def test_a_thousand_items_survive_kill_9_and_none_runs_twice(tmp_path: Path) -> None:
    for fatal in (400, 700):
        dead = work(tmp_path, fatal)
        assert dead.returncode == -signal.SIGKILL, dead.stderr
    alive = work(tmp_path, -1)
    assert alive.returncode == 0, alive.stderr
    assert alive.stdout.split() == ["completed", "2"]
    done = Counter((tmp_path / "effects.txt").read_text().split())
    assert max(done.values()) == 1, "an item ran twice"
    store = open_store(f"sqlite:///{tmp_path}/runs.db")
    await store.open()
    rows, _ = await store.runs()
    snapshot = await store.load(rows[0].id)
    transcript = await store.transcript(rows[0].id)
    await store.aclose()
    told = next(one.text for one in transcript if one.kind == "results")
    (entry,) = json.loads(told)["results"]
    report = entry["result"]
    assert report["done"] + report["failed"] == COUNT
    assert 1 <= report["failed"] <= 2 * 8, "only what was under way at a crash is in doubt"
    assert {one["error"]["code"] for one in report["failures"]} == {"interrupted"}
    assert snapshot is not None
    assert len(snapshot.state.payload["out"]) == report["done"]
    assert len(done) >= report["done"]
    assert entry["all"]["artifact"] == "A"


class SlowStore(MemoryStore):
    """A store that takes a few rounds of the event loop for a commit."""

    async def commit(self, commit: Commit, *later: Commit) -> int:
        for _ in range(5):
            await asyncio.sleep(0)
        return await super().commit(commit, *later)


@pytest.mark.parametrize("effects", ["read", "write"])
async def test_outcomes_that_end_while_others_are_committed_are_followed_up(effects: Any) -> None:
    @action(effects=effects, approval="auto")
    async def charge(item: int) -> int:
        for _ in range(item % 7):
            await asyncio.sleep(0)
        return item

    body = {
        "collectionPath": "rows",
        "executionMode": "parallel",
        "action": {
            "name": "charge",
            "params": {"item": "{{ item }}"},
            "outputMapping": {"*": "out[]"},
        },
    }
    script: list[Any] = [
        {"taskComplete": False, "nextStep": {"type": "ForEach", "forEach": body}},
        {"taskComplete": True, "message": "finished"},
    ]
    agent = Agent("clerk", model=ScriptedModel(script), actions=[charge])
    async with App(agents=[agent], store=SlowStore()) as app:
        run = await app.start("clerk", "charge them", payload={"rows": list(range(60))})
        view = await app.wait(run.id, timeout_seconds=20)
    assert view.state.status == "completed"
    assert view.state.payload["out"] == list(range(60))


async def test_full_results_and_progress_can_be_seen() -> None:
    @action(effects="read")
    async def check(item: int) -> int:
        return item + 1

    body = {
        "collectionPath": "rows",
        "executionMode": "parallel",
        "action": {"name": "check", "params": {"item": "{{ item }}"}},
    }
    script: list[Any] = [
        {"taskComplete": False, "nextStep": {"type": "ForEach", "forEach": body}},
        {"taskComplete": True, "message": "finished"},
    ]
    agent = Agent("clerk", model=ScriptedModel(script), actions=[check])
    async with App(agents=[agent]) as app:
        run = await app.start("clerk", "check them", payload={"rows": list(range(100))})
        seen = [event async for event in app.events(run.id)]
        view = await app.get(run.id)
        (artifact,) = view.state.artifacts
        stored = await app.store.artifact(run.id, artifact.artifact_id)
    assert stored is not None
    rows = json.loads(stored.content)
    assert [one["result"] for one in rows] == list(range(1, 101))
    progress = [one["data"] for one in seen if one["type"] == "loop.progress"]
    assert progress[-1] == {"done": 100, "failed": 0, "passes": 100}
    assert [one["done"] for one in progress] == sorted({one["done"] for one in progress})
    assert all("seq" not in one for one in seen if one["type"] == "loop.progress")
    assert [
        (one["type"], one["path"])
        for one in seen
        if one["type"].startswith("loop.") and "seq" in one
    ] == [("loop.started", "turn/1/each"), ("loop.completed", "turn/1/each")]


async def test_a_pause_goes_on_to_the_same_moment_after_a_restart(tmp_path: Path) -> None:
    @action(effects="read")
    async def check(item: int) -> int:
        return item

    body = {
        "condition": "attempt <= 2",
        "delayBetweenIterationsMs": 1500,
        "action": {"name": "check", "params": {"item": "{{ attempt }}"}},
    }
    script: list[Any] = [
        {"taskComplete": False, "nextStep": {"type": "While", "while": body}},
        {"taskComplete": True, "message": "finished"},
    ]

    def app() -> App:
        agent = Agent("clerk", model=ScriptedModel(script), actions=[check])
        return App(agents=[agent], store=f"sqlite:///{tmp_path}/runs.db")

    began = time.time()
    async with app() as first:
        run = await first.start("clerk", "wait")
        await first.wait(run.id, timeout_seconds=0.5)
    async with app() as second:
        view = await second.wait(run.id, timeout_seconds=30)
    assert view.state.status == "completed"
    assert view.state.result is not None
    assert time.time() - began >= 1.5
    assert view.state.succeeded == {"check": 2}


async def test_a_run_whose_calls_never_wait_leaves_others_their_turn() -> None:
    seen: list[str] = []

    @action(effects="read")
    async def look(item: int) -> int:
        """Look at one, for long enough to be noticed."""
        began = time.perf_counter()
        while time.perf_counter() - began < 2 * SLICE_SECONDS:
            pass
        seen.append("run")
        return item

    each = {
        "collectionPath": "rows",
        "executionMode": "sequential",
        "action": {"name": "look", "params": {"item": "{{ item }}"}},
    }
    script = [
        {"taskComplete": False, "nextStep": {"type": "ForEach", "forEach": each}},
        {"taskComplete": True, "message": "finished"},
    ]

    async def other() -> None:
        while True:
            seen.append("other")
            await asyncio.sleep(0)

    agent = Agent("clerk", model=ScriptedModel(script), actions=[look])
    async with App(agents=[agent]) as app:
        beside = asyncio.create_task(other())
        run = await app.start("clerk", "look", payload={"rows": list(range(20))})
        await app.wait(run.id)
        beside.cancel()
    calls = [index for index, one in enumerate(seen) if one == "run"]
    assert all("other" in seen[one:next_] for one, next_ in pairwise(calls))
