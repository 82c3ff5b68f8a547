"""A server process: starts, tells where it listens, and stops cleanly while streams are open."""

from __future__ import annotations

import asyncio
import signal
from types import FrameType
from typing import Any

import uvicorn

from loopagent.app import App
from loopagent.http.api import create_api


GRACE_SECONDS = 10


class Server(uvicorn.Server):
    """uvicorn, with open streams ended as soon as a stop signal comes instead of holding the process."""

    def __init__(self, config: uvicorn.Config, app: App) -> None:
        super().__init__(config)
        self._host = app
        self._loop: asyncio.AbstractEventLoop | None = None

    async def serve(self, sockets: Any = None) -> None:
        """Open the app and serve until a stop signal comes.

        Raises:
            StoreError: The store could not be opened; nothing was served.
        """
        self._loop = asyncio.get_running_loop()
        # Left last, and there a stop signal ends the process: the app has to be closed by then.
        with self.capture_signals():
            async with self._host:
                await self._serve(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End the streams, then stop; a second Ctrl-C does not wait for anything.

        The process ends by itself with code 0: uvicorn's own handler would have the signal kill it at the end.
        """
        del frame
        self._host.closing = True
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._host.bus.wake_all)
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.should_exit = True


def make_server(app: App, *, host: str, port: int, token: str | None = None) -> Server:
    """A server for an app; `port` 0 takes any free one."""
    config = uvicorn.Config(
        create_api(app, token=token, manage=False),
        host=host,
        port=port,
        log_config=None,  # it speaks through the process's own log
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
        server_header=False,
    )
    return Server(config, app)
