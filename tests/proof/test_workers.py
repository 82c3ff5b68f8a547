"""Workers are killed at random while a hundred runs go on, and the database server is restarted under them."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from loopagent import App
from loopagent.errors import StoreError
from loopagent.project import load_project
from tests.http.server import ROOT
from tests.postgres import PostgresServer


pytestmark = [pytest.mark.anyio, pytest.mark.timeout(400)]

ACTIONS = '''
import asyncio
import os
from loopagent import ActionContext, action

@action(effects="write")
async def book(item: str, context: ActionContext) -> str:
    """Book an item: outside it can be seen how often."""
    await asyncio.sleep(0.005)
    line = os.open(os.environ["BOOKED"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(line, f"{context.run_id} {item}\\n".encode())
    os.close(line)
    return f"booked {item}"

@action(effects="read")
async def look(item: str) -> str:
    """Look at an item."""
    await asyncio.sleep(0.005)
    return f"seen {item}"
'''
AGENTS = {
    "keeper": "actions: [book, look]\nsubAgents: [helper]\napproval: {write: auto}\n",
    "helper": "actions: [book]\napproval: {write: auto}\n",
}
SCRIPT = """
- agent: keeper
  taskComplete: false
  nextStep:
    type: Actions
    actions:
      - {name: book, params: {item: a}}
      - {name: look, params: {item: b}}
- agent: keeper
  taskComplete: false
  nextStep:
    type: ForEach
    forEach:
      collectionPath: items
      executionMode: parallel
      maxConcurrency: 3
      continueOnError: true
      action: {name: book, params: {item: "{{ item }}"}}
- agent: keeper
  taskComplete: false
  nextStep: {type: Sub-Agent, subAgent: {name: helper, message: Book c.}}
- agent: helper
  taskComplete: false
  nextStep: {type: Actions, actions: [{name: book, params: {item: c}}]}
- agent: helper
  taskComplete: true
  message: Booked c.
- agent: keeper
  taskComplete: false
  message: All right?
  nextStep: {type: Chat}
- {agent: keeper, taskComplete: true, message: All booked.}
# Spare ones: a worker that lost a run in the middle of a reply and gets it back has played one more.
- {agent: keeper, taskComplete: true, message: All booked.}
- {agent: keeper, taskComplete: true, message: All booked.}
- {agent: helper, taskComplete: true, message: Booked c.}
- {agent: helper, taskComplete: true, message: Booked c.}
"""
PAUSE_SECONDS = 2.0
MOST_KILLED = 8
ITEMS = [f"item-{number}" for number in range(6)]


def make_project(folder: Path) -> Path:
    """A keeper that books things in every way there is, and asks before it ends."""
    for name in ("agents", "actions"):
        (folder / name).mkdir(parents=True)
    (folder / "actions" / "tools.py").write_text(ACTIONS)
    (folder / "script.yaml").write_text(SCRIPT)
    for name, more in AGENTS.items():
        text = f"name: {name}\nmodel: scripted:script.yaml\n{more}"
        (folder / "agents" / f"{name}.agent.yaml").write_text(text)
    return folder


class Workers:
    """Processes that work on the runs of one database."""

    def __init__(self, project: Path, url: str, booked: Path, count: int) -> None:
        self._command = [sys.executable, "-m", "loopagent", "worker", "--lease-seconds", "4"]
        self._command += ["--project", str(project), "--db", url]
        self._env = {**os.environ, "BOOKED": str(booked)}
        self._log = booked.with_suffix(".log").open("wb")
        self._running = [self._start() for _ in range(count)]
        self.killed = 0

    def _start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self._command, cwd=ROOT, env=self._env, stdout=self._log, stderr=self._log
        )

    def kill_one(self, chance: random.Random) -> None:
        """Kill one with SIGKILL and start another."""
        place = chance.randrange(len(self._running))
        self._running[place].kill()
        self._running[place].wait()
        self._running[place] = self._start()
        self.killed += 1

    def stop(self) -> None:
        """Stop all."""
        for one in self._running:
            one.send_signal(signal.SIGTERM)
        for one in self._running:
            try:
                one.wait(20)
            except subprocess.TimeoutExpired:
                one.kill()
                one.wait()
        self._log.close()


async def begin(app: App, count: int) -> list[str]:
    """Start so many runs, which nobody works on here."""
    return [
        (await app.start("keeper", "Book all.", payload={"items": ITEMS})).id for _ in range(count)
    ]


async def finished(app: App, runs: list[str], each: Callable[[], None]) -> None:
    """Answer whatever is asked until all runs have ended; `each` is called in between."""
    left = set(runs)
    deadline = time.monotonic() + 300
    while left and time.monotonic() < deadline:
        each()
        try:
            await _answer_all(app)
            left = {one for one in left if not (await app.get(one)).state.ended}
        except StoreError:  # the database is away
            await asyncio.sleep(0.05)
    assert not left, f"{len(left)} of {len(runs)} runs have not ended"


async def _answer_all(app: App) -> None:
    rows, _ = await app.requests(limit=200)
    for row in rows:
        await app.answer(row.id, decision="answer", feedback="Yes.")


async def check(app: App, runs: list[str], booked: Path) -> None:
    """Nothing done twice, nothing recorded that was not done, no event missing or doubled."""
    times = Counter(booked.read_text().splitlines())
    assert times
    assert max(times.values()) == 1, [one for one, count in times.items() if count > 1]
    for run_id in runs:
        view = await app.get(run_id)
        assert (view.state.status, view.state.result and view.state.result.message) == (
            "completed",
            "All booked.",
        )
        events = [one async for one in app.events(run_id, live=False)]
        assert [one["seq"] for one in events] == list(range(1, view.seq + 1))
        ends = [one for one in events if one["type"] == "action.completed"]
        assert len({one["data"]["callId"] + one["runId"] for one in ends}) == len(ends)
        recorded = {
            f"{one['runId']} {one['data']['result'].removeprefix('booked ')}"
            for one in ends
            if one["data"]["ok"] and one["data"]["action"] == "book"
        }
        assert recorded <= set(times)


@pytest.mark.parametrize(("kind", "count"), [("postgresql", 100), ("sqlite", 30)])
async def test_workers_are_killed_at_random_and_every_run_ends(
    tmp_path: Path, postgres_url: str, kind: str, count: int
) -> None:
    url = postgres_url if kind == "postgresql" else f"sqlite:///{tmp_path}/runs.db"
    project = load_project(make_project(tmp_path / "project"))
    booked = tmp_path / "booked.txt"
    chance = random.Random(7)  # noqa: S311 - repeatable
    async with AsyncExitStack() as stack:
        app = App(agents=project.agents.values(), store=url, work=False, base_dir=project.folder)
        await stack.enter_async_context(app)
        runs = await begin(app, count)
        workers = Workers(project.folder, url, booked, 3)
        stack.callback(workers.stop)
        last = time.monotonic()

        def kill() -> None:
            nonlocal last
            if time.monotonic() - last > PAUSE_SECONDS and workers.killed < MOST_KILLED:
                workers.kill_one(chance)
                last = time.monotonic()

        await finished(app, runs, kill)
        assert workers.killed
        await check(app, runs, booked)


async def test_the_database_server_is_restarted_under_runs(tmp_path: Path) -> None:
    project = load_project(make_project(tmp_path / "project"))
    booked = tmp_path / "booked.txt"
    server = PostgresServer()
    async with AsyncExitStack() as stack:
        stack.callback(server.remove)
        server.start()
        app = App(
            agents=project.agents.values(), store=server.url(), work=False, base_dir=project.folder
        )
        await stack.enter_async_context(app)
        runs = await begin(app, 50)
        workers = Workers(project.folder, server.url(), booked, 2)
        stack.callback(workers.stop)
        restarts = 0

        def restart() -> None:
            nonlocal restarts
            done = len(booked.read_text().splitlines()) if booked.exists() else 0
            if done > 60 * (restarts + 1) and restarts < 2:
                server.stop(signal.SIGQUIT if restarts else signal.SIGINT)
                server.start()
                restarts += 1

        await finished(app, runs, restart)
        assert restarts == 2
        await check(app, runs, booked)
