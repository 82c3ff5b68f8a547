"""The API over a real socket, against a real server process."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx2
import pytest

from loopagent import loop_state
from tests.http.server import ROOT, SCRIPTS, make_project, serving


Json = dict[str, Any]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_project(tmp_path_factory.mktemp("api") / "project")


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[httpx2.Client]:
    with serving(folder, folder.parent / "runs.db") as (made, _):
        yield made


def start(client: httpx2.Client, agent: str, **more: Any) -> Json:
    answer = client.post(
        "/runs", params={"wait": 10}, json={"agent": agent, "message": "Go.", **more}
    )
    assert answer.status_code == 201, answer.text
    assert answer.headers["location"].endswith(answer.json()["id"])
    run: Json = answer.json()
    return run


def read(
    client: httpx2.Client, url: str, last: str | None = None, most: int = 1000
) -> list[tuple[str | None, Json]]:
    """Events of a stream: id and data."""
    found: list[tuple[str | None, Json]] = []
    headers = {"Last-Event-ID": last} if last else {}
    with client.stream("GET", url, headers=headers) as response:
        number = None
        for line in response.iter_lines():
            if line.startswith("id: "):
                number = line[4:]
            elif line.startswith("data: "):
                found.append((number, json.loads(line[6:])))
                number = None
                if len(found) >= most:
                    break
    return found


def test_a_run_from_start_to_end(client: httpx2.Client) -> None:
    run = start(client, "looker")
    assert (run["status"], run["message"], run["payload"]) == ("completed", "Seen.", {"seen": 1})
    assert run["state"] == {
        "state": "idle",
        "reason": "completed",
        "ask": None,
        "primary": {"decision": "new_run", "label": "New run"},
        "secondary": {"decision": "continue", "label": "Continue the conversation"},
    }
    page = client.get(f"/runs/{run['id']}/events", params={"limit": 1000}).json()
    assert [one["seq"] for one in page["events"]] == list(range(1, run["seq"] + 1))
    assert page["events"][-1]["type"] == "run.completed"
    assert loop_state(page["events"]).public() == run["state"]
    assert client.get(f"/runs/{run['id']}").json() == run
    assert client.get(f"/runs/{run['id']}/state").json()["state"] == "idle"


def test_the_stream_resumes_exactly(client: httpx2.Client) -> None:
    run = start(client, "looker")
    whole = read(client, f"/runs/{run['id']}/stream")
    assert [number for number, _ in whole] == [str(one) for one in range(1, run["seq"] + 1)]
    rest = read(client, f"/runs/{run['id']}/stream", last="4")
    assert rest == whole[4:]
    reset = read(client, f"/runs/{run['id']}/stream", last="9999")
    assert reset[0][1]["type"] == "stream.reset"
    assert [number for number, _ in reset[1:]] == [number for number, _ in whole]
    assert (
        client.get(f"/runs/{run['id']}/stream", headers={"Last-Event-ID": "x"}).status_code == 400
    )


def test_of_a_removed_log_a_client_gets_the_run_instead(
    folder: Path, client: httpx2.Client
) -> None:
    db = folder.parent / "runs.db"
    run = start(client, "looker")
    command = [
        "-m",
        "loopagent",
        "runs",
        "prune",
        "--json",
        "--logs-only",
        "--older-than",
        "0.001",
        "--db",
    ]
    with closing(sqlite3.connect(db)) as connection, connection:
        connection.execute(
            "UPDATE run SET updated_at = updated_at - 1000 WHERE id = ?", (run["id"],)
        )
    pruned = subprocess.run(
        [sys.executable, *command, str(db)],
        capture_output=True,
        check=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert json.loads(pruned.stdout) == {"runs": 0, "logs": 1, "definitions": 0}
    ((number, reset),) = read(client, f"/runs/{run['id']}/stream", last="4")
    assert (number, reset["type"], reset["after"]) == (None, "stream.reset", run["seq"])
    assert reset["run"]["payload"] == {"seen": 1}
    for gone in ("events", "events?after=3", "turns/1"):
        assert client.get(f"/runs/{run['id']}/{gone}").json()["code"] == "log_gone"
    assert client.get(f"/runs/{run['id']}/events?after={run['seq']}").json()["events"] == []


def test_create_and_stream_shows_the_message_as_it_grows(client: httpx2.Client) -> None:
    events: list[Json] = []
    with client.stream(
        "POST", "/runs/stream", json={"agent": "looker", "message": "Go."}
    ) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        for line in response.iter_lines():
            if line.startswith("data: "):
                events.append(json.loads(line[6:]))
    numbered = [one["seq"] for one in events if "seq" in one]
    assert numbered == list(range(1, len(numbered) + 1))
    assert events[-1]["type"] == "run.completed"


def test_an_approval_by_its_exact_content_and_only_once(client: httpx2.Client) -> None:
    run = start(client, "mailer")
    ask = run["state"]["ask"]
    assert (run["state"]["state"], ask["kind"], ask["primary"]["decision"]) == (
        "interactive",
        "approval",
        "approve",
    )
    request = client.get(f"/requests/{ask['requestId']}").json()
    assert request["body"]["subject"]["params"] == {"to": "ann"}
    url = f"/requests/{ask['requestId']}/answer"
    stale = client.post(url, json={"decision": "approve", "revision": 7})
    assert (stale.status_code, stale.json()["code"]) == (409, "stale")
    assert stale.json()["current"] == request
    wrong = client.post(url, json={"decision": "approve", "edited": {"to": 5}})
    assert (wrong.status_code, wrong.json()["code"]) == (422, "invalid_answer")
    assert client.get("/requests").json()["requests"]
    body = {
        "decision": "approve",
        "edited": {"to": "bob"},
        "contentHash": request["body"]["contentHash"],
    }
    assert client.post(url, json=body).status_code == 200
    late = client.post(url, json=body)
    assert (late.status_code, late.json()["code"]) == (409, "already_resolved")
    done = client.get(f"/runs/{run['id']}", params={"wait": 10}).json()
    assert done["status"] == "completed"
    events = client.get(f"/runs/{run['id']}/events", params={"limit": 1000}).json()["events"]
    completed = [one["data"]["result"] for one in events if one["type"] == "action.completed"]
    assert completed == ["sent to bob"]
    assert [one["decidedBy"] for one in events if one["type"] == "request.resolved"] == ["human"]


def test_cancel_really_stops_and_closes_requests(client: httpx2.Client) -> None:
    run = start(client, "mailer")
    request = run["requests"][0]["requestId"]
    assert (
        client.post(f"/runs/{run['id']}/cancel", json={"reason": "no"}).json()["status"]
        == "cancelled"
    )
    assert (
        client.post(f"/requests/{request}/answer", json={"decision": "approve"}).status_code == 410
    )
    slow = client.post("/runs", json={"agent": "sleeper", "message": "Go."}).json()
    started = time.monotonic()
    assert client.post(f"/runs/{slow['id']}/cancel").json()["status"] == "cancelled"
    assert time.monotonic() - started < 5
    assert client.post(f"/runs/{slow['id']}/messages", json={"text": "hello"}).status_code == 409
    assert client.delete(f"/runs/{slow['id']}").status_code == 204
    assert client.get(f"/runs/{slow['id']}").status_code == 404


def test_messages_wait_for_the_turn(client: httpx2.Client) -> None:
    slow = client.post("/runs", json={"agent": "sleeper", "message": "Go."}).json()
    time.sleep(0.3)
    assert client.post(f"/runs/{slow['id']}/messages", json={"text": "hello"}).status_code == 202
    busy = client.delete(f"/runs/{slow['id']}")
    assert (busy.status_code, busy.json()["code"]) == (409, "run_active")
    client.post(f"/runs/{slow['id']}/cancel")


def test_the_same_key_gets_the_same_answer(client: httpx2.Client) -> None:
    body = {"agent": "looker", "message": "Once."}
    answers = [client.post("/runs", json=body, headers={"Idempotency-Key": "k1"}) for _ in range(3)]
    assert len({one.json()["id"] for one in answers}) == 1
    assert [one.headers.get("idempotency-replayed") for one in answers] == [None, "true", "true"]
    other = client.post(
        "/runs", json={**body, "message": "Twice."}, headers={"Idempotency-Key": "k1"}
    )
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_key_reused")


def test_the_same_key_gets_the_stream_of_the_same_run(client: httpx2.Client) -> None:
    body, key = {"agent": "sleeper", "message": "Once."}, {"Idempotency-Key": "s1"}
    with client.stream("POST", "/runs/stream", json=body, headers=key) as first:
        place = first.headers["location"]
        with client.stream("POST", "/runs/stream", json=body, headers=key) as again:
            assert again.headers["location"] == place
            assert again.headers["idempotency-replayed"] == "true"
            assert next(again.iter_lines()) == "id: 1"
    other = client.post("/runs/stream", json={**body, "message": "Twice."}, headers=key)
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_key_reused")
    run = place.rsplit("/", 1)[-1]
    client.post(f"/runs/{run}/cancel")
    assert client.get(f"/runs/{run}", params={"wait": 60}).json()["status"] == "cancelled"
    assert client.delete(f"/runs/{run}").status_code == 204
    gone = client.post("/runs/stream", json=body, headers=key)
    assert (gone.status_code, gone.json()["code"]) == (404, "unknown_run")


BAD: list[tuple[str, str, Any, int, str]] = [
    ("POST", "/runs", {"agent": "nobody", "message": "x"}, 404, "unknown_agent"),
    ("POST", "/runs", {"agent": "looker"}, 422, "invalid_request"),
    ("POST", "/runs", {"agent": "looker", "message": "   "}, 422, "invalid_message"),
    ("POST", "/runs", {"agent": "looker", "message": "x", "paylod": {}}, 422, "invalid_request"),
    (
        "POST",
        "/runs",
        {"agent": "looker", "message": "x", "limits": {"maxTurns": 0}},
        422,
        "invalid_limits",
    ),
    ("POST", "/runs", {"agent": "looker", "message": "x", "model": "nope"}, 422, "no_model"),
    ("GET", "/runs/run_nope", None, 404, "unknown_run"),
    ("GET", "/runs?cursor=%00", None, 400, "bad_cursor"),
    ("GET", "/runs?limit=0", None, 422, "invalid_request"),
    ("GET", "/requests/nope", None, 404, "unknown_request"),
    ("POST", "/requests/nope/answer", {"decision": "approve"}, 404, "unknown_request"),
    ("POST", "/runs/run_nope/cancel", {}, 404, "unknown_run"),
    ("GET", "/nowhere", None, 404, "not_found"),
    ("PUT", "/runs", {}, 405, "method_not_allowed"),
    ("GET", "/agents/nobody", None, 404, "unknown_agent"),
]


@pytest.mark.parametrize(("method", "url", "body", "status", "code"), BAD)
def test_bad_requests_are_problems(
    client: httpx2.Client, method: str, url: str, body: Any, status: int, code: str
) -> None:
    answer = (
        client.request(method, url, json=body) if body is not None else client.request(method, url)
    )
    problem = answer.json()
    assert (answer.status_code, problem["code"], problem["status"]) == (status, code, status), (
        problem
    )
    assert answer.headers["content-type"] == "application/problem+json"
    assert problem["detail"]


def test_what_no_store_can_hold_is_replaced_on_the_way_in(client: httpx2.Client) -> None:
    """As in the library, and not refused or, worse, a failure of the store."""
    body = r'{"agent":"looker","message":"a\ud83db\u0000c \ud83d\ude00","metadata":{"k\ud800":"\udfff"}}'
    answer = client.post("/runs", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 201, answer.text
    (events,) = client.get(f"/runs/{answer.json()['id']}/events").json()["events"][:1]
    assert events["data"]["message"] == "a\ufffdb\ufffdc \U0001f600"


def test_broken_and_large_bodies(client: httpx2.Client) -> None:
    broken = client.post(
        "/runs", content=b'{"agent": ', headers={"content-type": "application/json"}
    )
    assert (broken.status_code, broken.json()["code"]) == (422, "invalid_request")
    assert broken.json()["detail"].startswith("the body is not JSON: Expecting value")
    form = client.post("/runs", data={"agent": "looker"})
    assert form.json()["detail"].startswith("Send application/json, or multipart/form-data")
    large = client.post(
        "/runs",
        content=b'{"agent": "' + b"x" * 11_000_000,
        headers={"content-type": "application/json"},
    )
    assert (large.status_code, large.json()["code"]) == (413, "too_large")


def test_lists_page_with_cursors(client: httpx2.Client) -> None:
    for _ in range(4):
        start(client, "looker")
    first = client.get("/runs", params={"limit": 2, "agent": "looker"}).json()
    second = client.get(
        "/runs", params={"limit": 2, "agent": "looker", "cursor": first["nextCursor"]}
    ).json()
    ids = [one["id"] for one in (*first["runs"], *second["runs"])]
    assert len(ids) == len(set(ids)) == 4
    assert {one["name"] for one in client.get("/agents").json()["agents"]} == set(SCRIPTS)
    mailer = client.get("/agents/mailer").json()
    assert (mailer["actions"][1]["effects"], mailer["inputSchema"]) == ("external", None)


def test_sigterm_ends_open_streams_and_the_next_start_goes_on(tmp_path: Path) -> None:
    project, db = make_project(tmp_path / "p"), tmp_path / "runs.db"
    with serving(project, db) as (client, process):
        run = client.post("/runs", json={"agent": "sleeper", "message": "Go."}).json()
        with client.stream("GET", f"/runs/{run['id']}/stream") as response:
            lines = response.iter_lines()
            assert next(lines).startswith("id: 1")
            process.send_signal(signal.SIGTERM)
            assert list(lines)
        assert process.wait(timeout=60) in (0, -signal.SIGTERM)
    (project / "actions" / "tools.py").write_text(
        (project / "actions" / "tools.py")
        .read_text()
        .replace("asyncio.sleep(seconds)", "asyncio.sleep(0)")
    )
    with serving(project, db) as (client, process):
        done = client.get(f"/runs/{run['id']}", params={"wait": 15}).json()
        assert (done["status"], done["message"]) == ("completed", "Woke.")


def test_a_killed_server_loses_nothing(tmp_path: Path) -> None:
    project, db = make_project(tmp_path / "p"), tmp_path / "runs.db"
    with serving(project, db) as (client, process):
        waiting = start(client, "mailer")
        process.kill()
        process.wait()
    with serving(project, db) as (client, process):
        request = waiting["requests"][0]["requestId"]
        assert (
            client.post(f"/requests/{request}/answer", json={"decision": "approve"}).status_code
            == 200
        )
        assert (
            client.get(f"/runs/{waiting['id']}", params={"wait": 10}).json()["status"]
            == "completed"
        )


def test_a_token_is_needed_where_one_is_set(tmp_path: Path) -> None:
    project = make_project(tmp_path / "p")
    with serving(project, tmp_path / "runs.db", LOOPAGENT_API_TOKEN="s3cret") as (client, _):
        assert client.get("/agents").status_code == 401
        assert client.get("/agents", headers={"Authorization": "Bearer s3cret"}).status_code == 200
        assert client.get(str(client.base_url).replace("/api/v1/", "/healthz")).json() == {
            "status": "ok"
        }


def test_the_server_says_what_is_wrong_with_a_project(tmp_path: Path) -> None:
    project = make_project(tmp_path / "p")
    (project / "agents" / "bad.agent.yaml").write_text(
        "name: Bad Name\nactions: [lok]\nlimit: {}\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "loopagent", "serve", "--project", str(project)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "bad.agent.yaml:3:1: limit: unknown key; did you mean limits" in done.stderr
    assert "did you mean look" in done.stderr


def test_a_turn_can_be_read(client: httpx2.Client) -> None:
    run = start(client, "planner")
    turn = client.get(f"/runs/{run['id']}/turns/1").json()
    assert turn["turn"] == 1
    assert turn["reply"] == "accepted"
    assert turn["prompt"]["exact"] is True
    task = {"role": "user", "text": "Go.", "kind": "task", "number": 1, "turn": 0}
    assert turn["prompt"]["messages"][0] == task
    assert client.get(f"/runs/{run['id']}/turns/99").status_code == 404
    assert client.get("/runs/run_nobody/turns/1").json()["code"] == "unknown_run"
