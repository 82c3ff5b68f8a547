"""Runs that wait for somebody, for tests of what somebody then does."""

from __future__ import annotations

from typing import Any

import httpx2


Json = dict[str, Any]


def asked(client: httpx2.Client, agent: str, **more: Any) -> Json:
    """The request of a new run that waits."""
    body = {"agent": agent, "message": "Go.", **more}
    run = client.post("/runs", params={"wait": 20}, json=body).json()
    return looked_at(client, run["requests"][0]["requestId"])


def looked_at(client: httpx2.Client, request_id: str) -> Json:
    """A request as it is now."""
    found: Json = client.get(f"/requests/{request_id}").json()
    return found


def ended(client: httpx2.Client, request: Json) -> Json:
    """The run of a request once it has ended or waits again."""
    run: Json = client.get(f"/runs/{request['runId']}", params={"wait": 20}).json()
    return run


def told(client: httpx2.Client, request: Json, kind: str) -> list[Json]:
    """What the log says of a kind."""
    query = {"limit": 1000}
    events = client.get(f"/runs/{request['runId']}/events", params=query).json()["events"]
    return [one["data"] for one in events if one["type"] == kind]
