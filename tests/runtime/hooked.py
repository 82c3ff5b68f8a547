"""A run with hooks around it: actions, a model that listens, and what the hooks did."""

from __future__ import annotations

import json
from typing import Any

from loopagent import Agent, App, action
from loopagent.ports import ModelReply, ModelRequest


Json = dict[str, Any]
DONE: Json = {"taskComplete": True, "message": "Done."}
SENT: list[str] = []


class Listening:
    """Gives replies in order and keeps what it was asked."""

    name = "object:listening"

    def __init__(self, *replies: Json) -> None:
        self._replies = list(replies)
        self.asked: list[ModelRequest] = []

    async def generate(self, request: ModelRequest, *, on_delta: Any = None) -> ModelReply:
        del on_delta
        self.asked.append(request)
        return ModelReply(json.dumps(self._replies.pop(0) if self._replies else DONE))

    async def aclose(self) -> None:
        """Nothing to give back."""

    def then(self, *replies: Json) -> None:
        """What it says next."""
        self._replies += replies

    def text(self, at: int = -1) -> str:
        """Everything one request said."""
        request = self.asked[at]
        return "\n".join([request.system, *(one.text for one in request.messages)])


@action(effects="external", approval="auto")
async def send(to: str) -> str:
    """Send a letter."""
    SENT.append(to)
    return f"sent to {to}, key sk-live-123"


@action(effects="external", approval="ask")
async def mail(to: str) -> str:
    """Send a mail after approval."""
    return f"mailed {to}"


@action(effects="read")
async def fetch() -> str:
    """Fetch a long text."""
    return "top secret " * 2000


def act(*calls: tuple[str, Json]) -> Json:
    listed = [{"name": name, "params": params} for name, params in calls]
    return {"taskComplete": False, "nextStep": {"type": "Actions", "actions": listed}}


async def run(model: Listening, *hooks: Any, **options: Any) -> tuple[App, Any, list[Json]]:
    agent = Agent("clerk", model=model, actions=[send, mail, fetch])
    app = App(agents=[agent], hooks=hooks, store=options.pop("store", "memory://"))
    async with app:
        view = await app.wait((await app.start("clerk", "Write.", user="ann", **options)).id)
        return app, view, [one async for one in app.events(view.id, live=False)]


def decided(events: list[Json]) -> list[tuple[str, str, str]]:
    found = [one for one in events if one["type"] == "hook.decided"]
    assert {one["decidedBy"] for one in found} <= {"policy"}
    return [(one["data"]["hook"], one["data"]["point"], one["data"]["decision"]) for one in found]
