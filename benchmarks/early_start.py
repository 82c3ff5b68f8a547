"""What it saves to let calls that only read begin while the reply still arrives (`earlyStart`).

`python benchmarks/early_start.py`: a scripted model whose reply streams at 60 tokens a second (about 4 characters
each) asks for lookups that wait for something. Each job runs with early start and without. What can be saved is the
time from the moment a call is complete in the text to the end of the reply, and no more than the call takes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from dataclasses import dataclass
from typing import Any

from loopagent import Agent, App, action
from loopagent.models.scripted import ScriptedModel


TOKENS_PER_SECOND = 60.0
TOKEN_CHARS = 4
REASONING = (
    "The order, its customer and the stock have to be looked at before anything can be said. "
)


@dataclass(frozen=True)
class Job:
    """A reply that asks for lookups of so many seconds each, with so many characters of text behind them."""

    name: str
    seconds: tuple[float, ...]
    behind_chars: int


JOBS = (
    Job("one call of 0.5 s, nothing behind it", (0.5,), 0),
    Job("one call of 0.5 s, 200 characters behind it", (0.5,), 200),
    Job("one call of 2 s, 400 characters behind it", (2.0,), 400),
    Job("four calls of 0.5 s, nothing behind them", (0.5,) * 4, 0),
    Job("four calls, the first of 2 s, nothing behind them", (2.0, 0.5, 0.5, 0.5), 0),
    Job("four calls, the first of 2 s, 200 characters behind them", (2.0, 0.5, 0.5, 0.5), 200),
)


@action(effects="read")
async def lookup(key: str, seconds: float) -> str:
    """Look something up."""
    await asyncio.sleep(seconds)
    return f"value of {key}"


def _reply(job: Job) -> dict[str, Any]:
    calls = [
        {"name": "lookup", "params": {"key": f"order-{at}", "seconds": seconds}}
        for at, seconds in enumerate(job.seconds)
    ]
    body: dict[str, Any] = {
        "taskComplete": False,
        "reasoning": REASONING,
        "nextStep": {"type": "Actions", "actions": calls},
    }
    if job.behind_chars:
        body["message"] = ("I look it up. " * job.behind_chars)[: job.behind_chars]
    text = json.dumps(body)
    seconds = len(text) / TOKEN_CHARS / TOKENS_PER_SECOND
    return {"raw": text, "chunks": TOKEN_CHARS, "delayMs": seconds * 1000}


async def run(job: Job, *, early: bool) -> tuple[float, float]:
    """Seconds of the whole run, and by how much its calls began early, together."""
    model = ScriptedModel([_reply(job), {"taskComplete": True, "message": "Done."}])
    agent: Agent[Any] = Agent("clerk", model=model, actions=[lookup], early_start=early)
    async with App(agents=[agent]) as app:
        began = time.perf_counter()
        view = await app.start("clerk", "Go.")
        view = await app.wait(view.id)
        seconds = time.perf_counter() - began
        assert view.state.status == "completed", view.state.result
        events = [one async for one in app.events(view.id, live=False)]
    ended = [one["data"] for one in events if one["type"] == "action.completed"]
    assert len(ended) == len(job.seconds)
    return seconds, sum(one.get("startedEarlyMs", 0.0) for one in ended) / 1000.0


async def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reps", type=int, default=3)
    reps = parser.parse_args().reps
    print("| job | plain | early start | saved | calls began early by, on average |")
    print("| --- | --- | --- | --- | --- |")
    for job in JOBS:
        plain = min([await run(job, early=False) for _ in range(reps)])[0]
        early, by = min([await run(job, early=True) for _ in range(reps)])
        share = (plain - early) / plain
        each = by / len(job.seconds)
        print(f"| {job.name} | {plain:.2f} s | {early:.2f} s | {share:.0%} | {each:.2f} s |")


if __name__ == "__main__":
    asyncio.run(main())
