"""What runs that wait cost: memory of the process while 10,000 of them do, and how fast one goes on in a fresh process.

python benchmarks/waiting.py [--runs 10000] [--db sqlite:///FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from loopagent import Agent, App
from loopagent.ports import DeltaSink, ModelReply, ModelRequest


ASK = {"taskComplete": False, "message": "Which one?", "nextStep": {"type": "Chat"}}
DONE = {"taskComplete": True, "message": "Done."}
RESUME = "resume"


def memory_mib() -> float:
    """Resident memory of this process, in MiB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


class Says:
    """A model that always says the same, and keeps nothing."""

    name = "says:same"

    def __init__(self, reply: dict[str, Any]) -> None:
        self._text = json.dumps(reply)

    async def generate(
        self, request: ModelRequest, *, on_delta: DeltaSink | None = None
    ) -> ModelReply:
        """Say it."""
        del request, on_delta
        return ModelReply(self._text, model=self.name)

    async def aclose(self) -> None:
        """Nothing to give back."""


def opened(db: str, reply: dict[str, Any]) -> App:
    """An app with an agent that asks."""
    return App(agents=[Agent("asker", model=Says(reply))], store=db, recover=False)


async def fill(db: str, runs: int) -> None:
    """Have so many runs wait, fifty at a time, and say what that costs."""
    async with opened(db, ASK) as app:
        before = memory_mib()
        began = time.perf_counter()
        for first in range(0, runs, 50):
            some = range(first, min(first + 50, runs))
            views = await asyncio.gather(*[app.start("asker", f"Task {one}") for one in some])
            await asyncio.gather(*[app.wait(view.id) for view in views])
        seconds = time.perf_counter() - began
        after = memory_mib()
        print(f"{runs} runs wait: {after:.0f} MiB, {after - before:.1f} more than before them")
        print(f"{seconds / runs * 1000:.2f} ms to start one and have it ask")
        idle = time.process_time()
        await asyncio.sleep(5)
        print(f"{(time.process_time() - idle) / 5:.1%} of a core while they wait")


async def resume(db: str) -> None:
    """Answer one of them and wait for its end; print the times of the parts in milliseconds."""
    opened("memory://", DONE)  # loads what a first app needs: that is part of starting a process
    began = time.perf_counter()
    async with opened(db, DONE) as app:
        open_ms = (time.perf_counter() - began) * 1000
        (request,), _ = await app.requests(limit=1)
        began = time.perf_counter()
        view = await app.answer(request.id, decision="answer", feedback="That one.")
        view = await app.wait(view.id)
        assert view.state.status == "completed", view.public()
        resume_ms = (time.perf_counter() - began) * 1000
    print(json.dumps({"open_ms": open_ms, "resume_ms": resume_ms}))


def main() -> None:
    """Fill a database, then answer some of its runs in fresh processes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--db")
    parser.add_argument("part", nargs="?", choices=[RESUME])
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        db = asked.db or f"sqlite:///{folder}/runs.db"
        if asked.part == RESUME:
            asyncio.run(resume(db))
            return
        asyncio.run(fill(db, asked.runs))
        command = [sys.executable, __file__, RESUME, "--db", db]
        times = [json.loads(subprocess.check_output(command)) for _ in range(7)]  # noqa: S603
        for name in ("open_ms", "resume_ms"):
            print(f"fresh process, {name}: {sorted(one[name] for one in times)[3]:.1f} (median)")


if __name__ == "__main__":
    main()
