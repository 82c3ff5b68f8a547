"""A model whose replies arrive piece by piece, when the test says so, and somebody who listens."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any

from loopagent import App
from loopagent.ports import DeltaSink, ModelReply, ModelRequest


Json = dict[str, Any]


class Arriving:
    """Plays replies in turn. Of each, pieces are sent on; a number waits until `go` was called so often.

    None lets others go first, so that the pieces before and after it come apart.
    """

    def __init__(self, *replies: Sequence[str | int | Exception | Json | None]) -> None:
        self.name = "arriving:test"
        self.requests: list[ModelRequest] = []
        self._replies = list(replies)
        self._went = 0
        self._go = asyncio.Condition()

    async def generate(
        self, request: ModelRequest, *, on_delta: DeltaSink | None = None
    ) -> ModelReply:
        self.requests.append(request)
        text = ""
        for part in self._replies.pop(0):
            if isinstance(part, Exception):
                raise part
            if part is None:
                await asyncio.sleep(0)
                continue
            if isinstance(part, int):
                await self._reached(part)
                continue
            piece = part if isinstance(part, str) else json.dumps(part)
            text += piece
            if on_delta is not None:
                told = on_delta(piece)
                if told is not None:
                    await told
        return ModelReply(text=text, model=self.name)

    async def go(self) -> None:
        """Let it go on to its next wait."""
        async with self._go:
            self._went += 1
            self._go.notify_all()

    async def aclose(self) -> None:
        """Nothing to give back."""

    async def _reached(self, count: int) -> None:
        async with self._go:
            await self._go.wait_for(lambda: self._went >= count)


class Listener:
    """Keeps what somebody hears of a run."""

    def __init__(self) -> None:
        self.events: list[Json] = []
        self._more = asyncio.Condition()

    async def hear(self, app: App, run_id: str, after: int) -> None:
        async with aclosing(app.events(run_id, after=after)) as events:
            async for event in events:
                async with self._more:
                    self.events.append(event)
                    self._more.notify_all()

    async def until(self, kind: str, count: int = 1, **data: Any) -> Json:
        """Wait for the so-manieth event of a type with such data."""

        def found() -> list[Json]:
            return [one for one in self.of(kind) if data.items() <= one["data"].items()]

        async with self._more:
            await asyncio.wait_for(self._more.wait_for(lambda: len(found()) >= count), 20)
        return found()[count - 1]

    def of(self, kind: str) -> list[Json]:
        """The events of a type."""
        return [one for one in self.events if one["type"] == kind]

    def text(self, field: str = "message", run_id: str = "") -> str:
        """The text of a field as somebody sees it who does as the events say, of one run if it is named."""
        shown = ""
        for one in self.events:
            if run_id and one["runId"] != run_id:
                continue
            data = one["data"]
            if one["type"] == "reply.snapshot":
                shown = next((it["text"] for it in data["fields"] if it["field"] == field), "")
            elif one["type"] == "reply.retracted" and field in data.get("fields", [field]):
                shown = ""
            elif one["type"] == "reply.delta" and data["field"] == field:
                shown += data["text"]
            elif one["type"] == "turn.started":
                shown = ""
        return shown


@asynccontextmanager
async def listening(app: App, run_id: str, after: int = 0) -> AsyncIterator[Listener]:
    """Somebody who listens to a run."""
    listener = Listener()
    task = asyncio.create_task(listener.hear(app, run_id, after))
    await asyncio.sleep(0)
    try:
        yield listener
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def calls(*listed: tuple[str, Json], message: str = "Looking.") -> Json:
    """A reply that asks for calls."""
    actions = [{"name": name, "params": params} for name, params in listed]
    return {
        "taskComplete": False,
        "message": message,
        "nextStep": {"type": "Actions", "actions": actions},
    }


def done(message: str = "Done.") -> Json:
    """A reply that completes the task."""
    return {"taskComplete": True, "message": message}
