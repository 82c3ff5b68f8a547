"""Pausing, resuming, raising limits, forking and comparing over HTTP, at the real server and over a kill."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from loopagent import loop_state
from tests.http.server import make_project, serving


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx2.Client]:
    """A client of one server."""
    folder = tmp_path_factory.mktemp("control")
    with serving(make_project(folder / "project"), folder / "runs.db") as (found, _):
        yield found


def start(client: httpx2.Client, agent: str, **more: Any) -> dict[str, Any]:
    """Start a run and wait for its end or its question."""
    body = {"agent": agent, "message": "Go.", **more}
    run: dict[str, Any] = client.post("/runs", json=body, params={"wait": 10}).json()
    return run


def until(client: httpx2.Client, run_id: str, state: str) -> dict[str, Any]:
    """The run once it is in a loop state."""
    for _ in range(600):
        run: dict[str, Any] = client.get(f"/runs/{run_id}", params={"wait": 1}).json()
        if run["state"]["state"] == state:
            return run
        time.sleep(0.02)
    raise AssertionError(f"it never was {state}")


def code(answer: httpx2.Response) -> tuple[int, str]:
    """Status and code of a refusal."""
    return answer.status_code, answer.json()["code"]


def test_pause_and_resume(client: httpx2.Client) -> None:
    run = start(client, "mailer")
    where = f"/runs/{run['id']}"
    paused = client.post(f"{where}/pause", json={"reason": "lunch"}).json()
    assert (paused["state"]["state"], paused["state"]["reason"]) == ("resumable", "paused")
    assert paused["paused"]["reason"] == "lunch"
    ask = paused["state"]["ask"]
    assert (ask["requestId"], ask["primary"]["decision"]) == (None, "resume")
    (request,) = paused["requests"]
    answer = f"/requests/{request['requestId']}/answer"
    assert client.post(answer, json={"decision": "approve"}).status_code == 200
    assert code(client.post(answer, json={"decision": "reject"})) == (409, "already_resolved")
    assert client.get(f"{where}/state").json()["state"] == "resumable"
    assert client.post(f"{where}/resume").json()["paused"] is None
    assert until(client, run["id"], "idle")["status"] == "completed"
    assert code(client.post(f"{where}/pause")) == (409, "run_ended")
    assert code(client.post("/runs/nobody/pause")) == (404, "unknown_run")


def test_a_raised_limit_lets_a_run_go_on(client: httpx2.Client) -> None:
    run = start(client, "looker", limits={"maxTurns": 1})
    where = f"/runs/{run['id']}"
    assert (run["status"], run["reason"], run["limits"]["maxTurns"]) == ("failed", "limit", 1)
    assert run["state"]["ask"]["primary"]["decision"] == "raise"
    assert code(client.post(f"{where}/resume")) == (409, "limit_reached")
    assert code(client.post(f"{where}/limits", json={})) == (422, "invalid_limits")
    refused = client.post(f"{where}/limits", json={"maxTurns": 1})
    assert code(refused) == (422, "invalid_limits")
    assert refused.json()["errors"][0]["pointer"] == "/maxTurns"
    assert client.post(f"{where}/limits", json={"maxDepth": 1}).status_code == 422
    raised = client.post(f"{where}/limits", json={"maxTurns": 5, "maxTokens": None})
    assert (raised.status_code, raised.json()["limits"]["maxTurns"]) == (200, 5)
    run = until(client, run["id"], "idle")
    assert (run["status"], run["turn"]) == ("completed", 2)
    assert code(client.post(f"{where}/limits", json={"maxTurns": 9})) == (409, "run_ended")


def test_a_person_is_asked_to_raise_a_limit(client: httpx2.Client) -> None:
    run = start(client, "looker", limits={"maxTurns": 1, "whenReached": "ask"})
    assert run["state"]["state"] == "interactive"
    (ask,) = run["requests"]
    assert (ask["kind"], ask["title"]) == ("limit", "Raise maxTurns?")
    where = f"/requests/{ask['requestId']}/answer"
    low = client.post(where, json={"decision": "approve", "edited": {"maxTurns": 1}})
    assert code(low) == (422, "invalid_answer")
    done = client.post(where, json={"decision": "approve", "edited": {"maxTurns": 3}})
    assert done.status_code == 200
    run = until(client, run["id"], "idle")
    assert (run["status"], run["limits"]["maxTurns"]) == ("completed", 3)


def test_fork(client: httpx2.Client) -> None:
    run = start(client, "looker")
    key = {"Idempotency-Key": f"fork-{run['id']}"}
    body = {"turn": 2, "message": "Once more.", "metadata": {"try": 2}}
    made = client.post(f"/runs/{run['id']}/fork", json=body, headers=key)
    copy = made.json()
    assert (made.status_code, made.headers["location"]) == (201, f"/api/v1/runs/{copy['id']}")
    again = client.post(f"/runs/{run['id']}/fork", json=body, headers=key).json()
    assert again["id"] == copy["id"]
    assert copy["forkedFrom"] == {"runId": run["id"], "turn": 2}
    copy = until(client, copy["id"], "idle")
    assert (copy["status"], copy["turn"], copy["payload"]) == ("completed", 2, run["payload"])
    events = client.get(f"/runs/{copy['id']}/events", params={"limit": 1000}).json()["events"]
    assert [one["seq"] for one in events] == list(range(1, len(events) + 1))
    assert events[0]["forkedFrom"] == f"{run['id']}.1"
    assert "forkedFrom" not in events[-1]
    assert loop_state(events).public() == copy["state"]
    refused = client.post(f"/runs/{run['id']}/fork", json={"turn": 3})
    assert code(refused) == (404, "unknown_turn")
    assert client.post(f"/runs/{run['id']}/fork", json={"turn": 0}).status_code == 422
    assert client.post(f"/runs/{run['id']}/fork").status_code == 201


def test_compare(client: httpx2.Client) -> None:
    run = start(client, "looker")
    made = client.post(f"/runs/{run['id']}/fork", json={"turn": 2, "message": "Once more."})
    copy = until(client, made.json()["id"], "idle")
    found = client.get(f"/runs/{run['id']}/compare/{copy['id']}").json()
    assert (found["shared"], found["payload"]) == (2, [])
    assert [one["same"] for one in found["turns"]] == [True, True]
    other = start(client, "mailer")
    found = client.get(f"/runs/{run['id']}/compare/{other['id']}").json()
    assert found["shared"] == 0
    first = found["turns"][0]
    assert {"decision", "outcome"} <= set(first["differs"])
    assert first["a"]["calls"] == [{"name": "look", "ok": True}]
    assert first["b"]["step"]["actions"][0]["name"] == "mail"
    assert found["turns"][1]["b"] is None
    assert found["payload"] == [{"op": "delete", "path": ["seen"]}]
    assert code(client.get(f"/runs/{run['id']}/compare/nobody")) == (404, "unknown_run")


def test_a_killed_server_leaves_a_paused_run_paused(tmp_path: Path) -> None:
    project, db = make_project(tmp_path / "project"), tmp_path / "runs.db"
    with serving(project, db) as (client, process):
        run = client.post("/runs", json={"agent": "sleeper", "message": "Go."}).json()
        for _ in range(600):
            events = client.get(f"/runs/{run['id']}/events").json()["events"]
            if any(one["type"] == "action.started" for one in events):
                break
            time.sleep(0.02)
        client.post(f"/runs/{run['id']}/pause")
        process.send_signal(signal.SIGKILL)
        process.wait()
    with serving(project, db) as (client, _):
        state = client.get(f"/runs/{run['id']}/state").json()
        assert (state["state"], state["reason"]) == ("resumable", "paused")
        copy = client.post(f"/runs/{run['id']}/fork", json={"turn": 1}).json()
        assert client.get(f"/runs/{run['id']}/state").json()["state"] == "resumable"
        assert client.post(f"/runs/{copy['id']}/cancel").json()["status"] == "cancelled"
        cancelled = client.post(f"/runs/{run['id']}/cancel").json()
        assert (cancelled["status"], cancelled["paused"]) == ("cancelled", None)
