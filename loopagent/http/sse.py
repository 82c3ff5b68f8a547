"""Events as a server-sent stream: `id` is the event's number, so a client that reconnects misses nothing."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

from loopagent.app import App
from loopagent.errors import RequestError
from loopagent.http.attendance import Attendance
from loopagent.http.still import Still


KEEP_ALIVE_SECONDS = 15.0
ENDED = "access.ended"
"""The last event of a stream whose reader's key or session counts no more."""
OPEN_CALLS = 200
"""Most open calls, in the whole tree, that are looked for when a client reconnects."""
LOOK_BACK = 200
"""Events read at a time to find the calls that are still open."""
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


async def stream(app: App, run_id: str, after: int, still: Still) -> AsyncIterator[str]:
    """The events after `after` as text of the stream, until the run ends, the server stops, or access does."""
    for asked in await unanswered(app, run_id, after):
        yield _without_number(asked)
    queue: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue(maxsize=1)
    pump = asyncio.create_task(_pump(app, run_id, after, queue))
    attendance = Attendance(app, run_id)
    try:
        while True:
            try:
                async with asyncio.timeout(min(KEEP_ALIVE_SECONDS, still.seconds_left())):
                    event = await queue.get()
                attendance.moved()
                text = None if event is None else frame(event)
            except TimeoutError:
                news = await attendance.news()
                text = ": keep-alive\n\n" if news is None else frame(news)
            if text is None:
                return
            if await still.over():
                yield frame({"type": ENDED, "runId": run_id})
                return
            yield text
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


async def unanswered(app: App, run_id: str, after: int) -> list[dict[str, Any]]:
    """The events of open client tool calls that a reconnecting client has had before, oldest first.

    It may have lost them with its memory; answering is exactly-once, so hearing of a call again does no harm. Reads
    back from `after` only as far as the oldest open call.
    """
    if not after:
        return []
    asks = [one for one in (await app.get(run_id)).asks if one["kind"] == "client_tool"]
    rows = [await app.store.request(one["requestId"]) for one in asks[:OPEN_CALLS]]
    since = {one.id: one.created_at for one in rows if one is not None and one.status == "open"}
    found: list[dict[str, Any]] = []
    last = after
    while since and last > 0:
        first = max(0, last - LOOK_BACK)
        page = await app.store.events(run_id, after=first, limit=last - first)
        asked = [one for one in page if one["type"] == "client_tool.requested"]
        found = [one for one in asked if one["data"]["requestId"] in since] + found
        last = first if page and page[0]["ts"] >= min(since.values()) else 0
    return found


def _without_number(event: dict[str, Any]) -> str:
    """An event that is sent again: without an id, so that the client's position stays where it is."""
    number, _, rest = frame(event).partition("\n")
    return rest if number.startswith("id: ") else f"{number}\n{rest}"


def frame(event: dict[str, Any]) -> str:
    """One event as text of the stream; ephemeral ones have no id and are never replayed."""
    number = f"id: {event['seq']}\n" if "seq" in event else ""
    return f"{number}event: {event['type']}\ndata: {json.dumps(event, ensure_ascii=False)}\n\n"
