"""A process that works on runs and serves nobody: as many as are wanted share one database."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from loopagent.app import App
from loopagent.cli.opening import Database, ProjectDir, open_app
from loopagent.cli.output import out
from loopagent.cli.session import run_async
from loopagent.errors import ConfigError
from loopagent.project import load_project


GRACE_SECONDS = 30.0
MAX_RUNS = 100
INPUT = 0
"""Number of standard input."""
SIGNALS = (signal.SIGTERM, signal.SIGINT)


def worker(
    project: ProjectDir = Path(),
    db: Database = None,
    max_runs: Annotated[
        int, typer.Option(min=1, help="Runs that are worked on at the same time at most.")
    ] = MAX_RUNS,
    lease_seconds: Annotated[
        float | None,
        typer.Option(min=1.0, help="When others take up the runs of a worker that has died."),
    ] = None,
    grace_seconds: Annotated[
        float, typer.Option(min=0.0, help="How long calls under way may go on after SIGTERM.")
    ] = GRACE_SECONDS,
    until_eof: Annotated[
        bool,
        typer.Option("--until-eof", help="Stop when standard input ends, as after a SIGTERM."),
    ] = False,
) -> None:
    """Work on the runs of a shared database, without HTTP, until SIGTERM or Ctrl-C."""
    loaded = load_project(project)
    url = shared(db or loaded.settings.db)
    app = open_app(
        loaded,
        url,
        serving=True,
        max_runs=max_runs,
        lease_seconds=lease_seconds,
        grace_seconds=grace_seconds,
    )
    run_async(work(app, until_eof=until_eof))


def shared(url: str | None) -> str:
    """The address of a database that several processes can use.

    Raises:
        ConfigError: It is none.
    """
    if url is None or url.startswith(("memory:", "sqlite://?")) or url == "sqlite://":
        raise ConfigError(
            "A worker needs the database of the server that takes its runs: --db postgresql://… (or --db FILE)."
        )
    return url


async def work(app: App, *, until_eof: bool = False) -> int:
    """Work until a stop signal comes. A second one ends the process at once: others take its runs up."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    earlier = [(one, signal.getsignal(one)) for one in SIGNALS]

    def handle(number: int, frame: FrameType | None) -> None:
        del number, frame
        for one in SIGNALS:
            signal.signal(one, signal.SIG_DFL)
        loop.call_soon_threadsafe(stop.set)

    def look() -> None:
        if not os.read(INPUT, 4096):
            loop.remove_reader(INPUT)
            stop.set()

    for one in SIGNALS:
        signal.signal(one, handle)
    if until_eof:
        loop.add_reader(INPUT, look)
    try:
        async with app:
            out.print(f"working as {app.owner}", markup=False)
            await stop.wait()
            out.print("stopping: calls under way may end, the rest is left to others")
    finally:
        for one, handler in earlier:
            signal.signal(one, handler)
    return 0
