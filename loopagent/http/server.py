"""A server process: starts, tells where it listens, and stops cleanly while streams are open."""

from __future__ import annotations

import asyncio
import signal
from types import FrameType
from typing import Any

import uvicorn

from loopagent.access import AccessSettings
from loopagent.app import App
from loopagent.egress import EgressSettings
from loopagent.errors import ConfigError
from loopagent.http.api import create_api
from loopagent.oidc.spec import OidcSettings


GRACE_SECONDS = 10
NO_KEYS = (
    "Other machines could call without a key: make one with `loopagent keys create NAME` on this database, set"
    " LOOPAGENT_API_TOKEN, or listen on 127.0.0.1."
)


class Server(uvicorn.Server):
    """uvicorn, with open streams ended as soon as a stop signal comes instead of holding the process."""

    def __init__(self, config: uvicorn.Config, app: App, *, must_have_keys: bool = False) -> None:
        super().__init__(config)
        self._must_have_keys = must_have_keys
        self._host = app
        self._loop: asyncio.AbstractEventLoop | None = None

    async def serve(self, sockets: Any = None) -> None:
        """Open the app and serve until a stop signal comes.

        Raises:
            StoreError: The store could not be opened; nothing was served.
            ConfigError: There has to be a key, and there is none.
        """
        self._loop = asyncio.get_running_loop()
        # Left last, and there a stop signal ends the process: the app has to be closed by then.
        with self.capture_signals():
            async with self._host:
                if self._must_have_keys and not await self._host.keys.any():
                    raise ConfigError(NO_KEYS)
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


def make_server(
    app: App,
    *,
    host: str,
    port: int,
    token: str | None = None,
    access: AccessSettings | None = None,
    anybody: bool = False,
    oidc: OidcSettings | None = None,
    egress: EgressSettings | None = None,
    must_have_keys: bool = False,
) -> Server:
    """A server for an app.

    Args:
        app: What to serve.
        host: Address to listen on.
        port: Where to listen; 0 takes any free one.
        token: See `create_api`.
        access: See `create_api`.
        anybody: See `create_api`.
        oidc: See `create_api`.
        egress: See `create_api`.
        must_have_keys: Refuse to serve as long as nobody has made an API key.
    """
    config = uvicorn.Config(
        create_api(
            app,
            token=token,
            access=access,
            anybody=anybody,
            oidc=oidc,
            egress=egress,
            manage=False,
        ),
        host=host,
        port=port,
        log_config=None,  # it speaks through the process's own log
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
        server_header=False,
    )
    return Server(config, app, must_have_keys=must_have_keys)
