"""Public events as they go over the wire."""

from __future__ import annotations

from typing import Literal

from pydantic import JsonValue

from loopagent.http.body import View


class EventView(View):
    """One public event."""

    seq: int
    id: str
    run_id: str
    root_run_id: str
    parent_run_id: str | None = None
    turn: int | None = None
    path: str | None = None
    ts: float
    """Seconds since the epoch."""
    type: str
    decided_by: Literal["model", "engine", "human", "policy", "client", "trigger"]
    data: dict[str, JsonValue]
    forked_from: str | None = None
    """Id of the event of another run that this one is a copy of."""


class EventPage(View):
    """Events in order."""

    events: list[EventView]
    next_after: int
    """Pass as `after` for the next page."""
