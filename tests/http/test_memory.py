"""Notes over HTTP, from an agent file, across a restart; bound to users on every path."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx2

from tests.http.server import make_project, serving


Json = dict[str, Any]
AGENT = """
name: keeper
model: scripted:scripts/keeper.jsonl
memory: {write: true, types: [Preference, Context], maxPerRun: 3}
"""
NOTES = [
    {"note": "Wants metric units", "type": "Preference"},
    {"note": "Opens at nine", "type": "Context", "scopeHint": "agent"},
]
REPLY = {"taskComplete": True, "message": "Noted.", "memoryWrites": NOTES}


def keeper(folder: Path) -> Path:
    project = make_project(folder)
    (project / "agents" / "keeper.agent.yaml").write_text(AGENT)
    (project / "scripts" / "keeper.jsonl").write_text(json.dumps(REPLY) + "\n")
    return project


def run(client: httpx2.Client, user: str) -> Json:
    body = {"agent": "keeper", "message": "Note it.", "user": user}
    answer = client.post("/runs", params={"wait": 10}, json=body)
    assert answer.status_code == 201, answer.text
    found: Json = answer.json()
    assert found["status"] == "completed"
    return found


def notes(client: httpx2.Client, **params: Any) -> list[Json]:
    answer = client.get("/memory", params=params)
    assert answer.status_code == 200, answer.text
    found: list[Json] = answer.json()["notes"]
    return found


def test_notes_are_looked_after_over_http(tmp_path: Path) -> None:
    project, db = keeper(tmp_path / "project"), tmp_path / "runs.db"
    with serving(project, db) as (client, _):
        made = run(client, "ann")
        assert made["user"] == "ann"
        run(client, "bob")
    with serving(project, db) as (client, _):
        wide, own = notes(client, user="ann")
        assert (own["note"], own["user"], own["runId"]) == ("Wants metric units", "ann", made["id"])
        assert (wide["status"], wide["scope"]) == ("pending", "agent")
        assert own["id"] not in {one["id"] for one in notes(client, user="bob")}
        assert notes(client) == []
        _is_bobs_business_only(client, own)
        _is_changed_by_its_user(client, own)
        _is_made_wide_by_the_operator(client, wide)


def _is_bobs_business_only(client: httpx2.Client, own: Json) -> None:
    for params in ({"user": "bob"}, {}, {"user": "ann", "tenant": "acme"}):
        for call in (
            client.get(f"/memory/{own['id']}", params=params),
            client.patch(f"/memory/{own['id']}", params=params, json={"confirmed": True}),
            client.delete(f"/memory/{own['id']}", params=params),
        ):
            assert (call.status_code, call.json()["code"]) == (404, "unknown_note")
        exported = client.get("/memory/export", params=params).text
        assert own["id"] not in exported


def _is_changed_by_its_user(client: httpx2.Client, own: Json) -> None:
    path, ann = f"/memory/{own['id']}", {"user": "ann"}
    wrong = client.patch(path, params=ann, json={})
    assert (wrong.status_code, wrong.json()["code"]) == (422, "invalid_note")
    done = client.patch(path, params=ann, json={"note": "Wants imperial units"})
    assert done.status_code == 200, done.text
    assert (done.json()["status"], done.json()["expiresAt"]) == ("confirmed", None)
    lines = client.get("/memory/export", params=ann).text.splitlines()
    assert "Wants imperial units" in {json.loads(one)["note"] for one in lines}


def _is_made_wide_by_the_operator(client: httpx2.Client, wide: Json) -> None:
    path = f"/memory/{wide['id']}"
    refused = client.patch(path, params={"user": "ann"}, json={"confirmed": True})
    assert (refused.status_code, refused.json()["code"]) == (403, "not_yours")
    assert (
        client.patch(path, params={"allUsers": True}, json={"confirmed": True}).status_code == 200
    )
    assert client.get(path, params={"user": "bob"}).json()["note"] == "Opens at nine"
