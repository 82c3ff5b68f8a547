"""Worker processes beside a server: started with it, replaced when they die, stopped with it."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from loopagent.cli.output import err


if TYPE_CHECKING:
    from loopagent.app import App

STEADY_SECONDS: Final = 60.0
"""A worker that lived so long is replaced at once; one that dies sooner, after a pause."""
MAX_PAUSE_SECONDS: Final = 30.0
PATIENCE_SECONDS: Final = 40.0
"""How long a worker may take to stop: longer than calls under way may go on."""


@dataclass(frozen=True, slots=True)
class Workforce:
    """So many workers on the database of a server.

    They hold the reading end of a pipe from here: when this process is gone, however it went, they stop.
    """

    count: int
    project: Path
    url: str
    """Of the database; given through the environment, since it may hold a password."""

    async def __call__(self, app: App, site: str) -> None:
        """Keep them at work until this is cancelled."""
        del app, site
        await asyncio.gather(*(self._keep() for _ in range(self.count)))

    async def _keep(self) -> None:
        loop, deaths = asyncio.get_running_loop(), 0
        while True:
            began = loop.time()
            code = await self._one()
            deaths = 0 if loop.time() - began >= STEADY_SECONDS else deaths + 1
            pause = min(MAX_PAUSE_SECONDS, 2.0 ** (deaths - 1)) if deaths else 0.0
            err.print(f"a worker ended with {code}; another one follows in {pause:g} s")
            await asyncio.sleep(pause)

    async def _one(self) -> int:
        """One worker, from its start to its end; cancelling stops it, and kills it if it will not."""
        words = ("-m", "loopagent", "worker", "--project", str(self.project), "--until-eof")
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *words,
            stdin=asyncio.subprocess.PIPE,
            env={**os.environ, "LOOPAGENT_DB": self.url},
            start_new_session=True,  # Ctrl-C is for the server, which stops them when it has stopped
        )
        try:
            return await process.wait()
        finally:
            if process.returncode is None:
                process.terminate()
                with suppress(TimeoutError):
                    async with asyncio.timeout(PATIENCE_SECONDS):
                        await process.wait()
            if process.returncode is None:
                process.kill()
