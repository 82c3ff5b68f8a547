"""An app with triggers, whose clock is turned by hand."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from loopagent import Agent, App, TriggerSpec
from loopagent.models.scripted import ScriptedModel
from loopagent.ports import Store
from loopagent.triggers.incoming import Call


BEGIN = 1_800_000_000.0
"""2027-01-15 08:00:00 UTC, a Friday."""
DONE = {"taskComplete": True, "message": "Done."}
ASK = {"taskComplete": False, "nextStep": {"type": "Chat", "message": "Which one?"}}


class Clock:
    def __init__(self, now: float = BEGIN) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def trigger(**about: Any) -> TriggerSpec:
    """A webhook that anybody may call, unless said otherwise."""
    made: dict[str, Any] = {"name": "t", "agent": "clerk", "message": "Do {{ event.id }}"}
    if "schedule" not in about:
        made["webhook"] = {"auth": {"type": "none"}}
    return TriggerSpec.model_validate({**made, **about})


@asynccontextmanager
async def playing(
    *specs: TriggerSpec,
    clock: Clock | None = None,
    store: Store | str = "memory://",
    reply: dict[str, Any] = DONE,
    **more: Any,
) -> AsyncIterator[App]:
    """An app whose sweep is done by the test."""
    model = ScriptedModel([reply] * 100)
    app = App(
        agents=[Agent("clerk", model=model)],
        store=store,
        clock=clock or Clock(),
        triggers=specs,
        recover=False,
        env=more.pop("env", {}),
        **more,
    )
    async with app:
        await app.triggers.adopt()
        yield app


def call(body: Any = None, **headers: str) -> Call:
    """A call with a body of JSON; `_` in names of headers stands for `-`."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Call(named, {}, json.dumps(body).encode())


async def tasks(app: App) -> list[str]:
    """What runs were asked for, oldest first."""
    rows, _ = await app.runs(limit=200)
    return [one.title for one in reversed(rows)]


async def log(app: App, *fields: str) -> list[Any]:
    """The deliveries, oldest first, each by these of its fields."""
    rows, _ = await app.triggers.deliveries()
    return [tuple(getattr(row, one) for one in fields) for row in reversed(rows)]
