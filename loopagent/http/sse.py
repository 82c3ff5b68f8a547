"""Events as a server-sent stream: `id` is the event's number, so a client that reconnects misses nothing."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

from loopagent.app import App
from loopagent.errors import RequestError


KEEP_ALIVE_SECONDS = 15.0
HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}


def position(last_event_id: str | None, after: int | None) -> int:
    """Where to go on: the header of a reconnecting client counts more than the query.

    Raises:
        RequestError: `bad_event_id` (400).
    """
    if last_event_id is None or not last_event_id.strip():
        return after or 0
    text = last_event_id.strip()
    if not (text.isascii() and text.isdigit() and len(text) <= 18):  # noqa: PLR2004 - digits of a 64-bit number
        raise RequestError(
            "bad_event_id", "Last-Event-ID must be the number of an event.", status=400
        )
    return int(text)


async def stream(app: App, run_id: str, after: int) -> AsyncIterator[str]:
    """The events after `after` as text of the stream, until the run ends or the server stops.

    A position that lies behind the run's last event belongs to another run: the client gets `stream.reset` with
    a snapshot, and the events from the start.
    """
    view = await app.get(run_id)
    if after > view.seq:
        yield _reset(view.public())
        after = 0
    queue: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue(maxsize=1)
    pump = asyncio.create_task(_pump(app, run_id, after, queue))
    try:
        while True:
            try:
                async with asyncio.timeout(KEEP_ALIVE_SECONDS):
                    event = await queue.get()
            except TimeoutError:
                yield ": keep-alive\n\n"
                continue
            if event is None:
                return
            yield frame(event)
    finally:
        pump.cancel()
        await asyncio.gather(pump, return_exceptions=True)


async def _pump(
    app: App, run_id: str, after: int, queue: asyncio.Queue[dict[str, Any] | None]
) -> None:
    async with aclosing(app.events(run_id, after=after)) as events:
        async for event in events:
            await queue.put(event)
    await queue.put(None)


def frame(event: dict[str, Any]) -> str:
    """One event as text of the stream; ephemeral ones have no id and are never replayed."""
    number = f"id: {event['seq']}\n" if "seq" in event else ""
    return f"{number}event: {event['type']}\ndata: {json.dumps(event, ensure_ascii=False)}\n\n"


def _reset(run: dict[str, Any]) -> str:
    body = json.dumps({"type": "stream.reset", "after": 0, "run": run}, ensure_ascii=False)
    return f"event: stream.reset\ndata: {body}\n\n"
