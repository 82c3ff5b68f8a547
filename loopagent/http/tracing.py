"""Traces that callers have begun: a run that a call starts belongs to the trace of the call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopagent.telemetry.spans import arriving, standing


if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send


class Traced:
    """Stands in the trace that a call's `traceparent` names, unless the host has looked at that already."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the call on, in its trace."""
        headers = scope["headers"] if scope["type"] == "http" else ()
        place = arriving({key.decode("latin-1"): value.decode("latin-1") for key, value in headers})
        if place is None:
            await self._app(scope, receive, send)
            return
        with standing(place):
            await self._app(scope, receive, send)
