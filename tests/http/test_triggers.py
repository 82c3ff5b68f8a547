"""Triggers of a project folder, served by real processes: who gets in, what fires, what survives a kill."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx2
import pytest

from loopagent.triggers.signatures import sign
from tests.http.server import make_project, serving


Json = dict[str, Any]
SECRET = b"0123456789abcdef01234567"
ENV = {
    "LOOPAGENT_API_TOKEN": "server-token",
    "HOOK_SECRET": "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3",
}
SIGNED = """
apiVersion: loopagent/v1
kind: Trigger
agent: looker
message: "Look at {{ body.issue.title }}"
match: {body.action: [opened]}
webhook:
  auth: {type: standard, secretEnv: [HOOK_SECRET]}
  maxBodyBytes: 1000
"""
PLAIN = """
agent: looker
message: "Look {{ body.n ?? 0 }}"
webhook: {}
"""
TICKER = """
agent: looker
message: "Look at {{ event.dueAt }}"
schedule: {everySeconds: 1}
"""


def project(folder: Path, **triggers: str) -> Path:
    made = make_project(folder)
    (made / "triggers").mkdir()
    for name, text in triggers.items():
        (made / "triggers" / f"{name}.trigger.yaml").write_text(text)
    lines = (made / "scripts" / "looker.jsonl").read_text()
    (made / "scripts" / "looker.jsonl").write_text(lines * 2)
    return made


def signed(body: Json, event: str, at: int | None = None) -> Json:
    data = json.dumps(body).encode()
    now = int(time.time()) if at is None else at
    headers = {
        "webhook-id": event,
        "webhook-timestamp": str(now),
        "webhook-signature": sign(SECRET, event, now, data),
        "content-type": "application/json",
    }
    return {"content": data, "headers": headers}


OPENED: Json = {"action": "opened", "issue": {"title": "Leak"}}
OWNER = {"authorization": "Bearer server-token"}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx2.Client]:
    folder = tmp_path_factory.mktemp("triggers")
    with serving(project(folder / "p", signed=SIGNED, plain=PLAIN), folder / "db", **ENV) as found:
        yield found[0]


def test_a_signed_webhook(client: httpx2.Client) -> None:
    first = client.post("/triggers/signed", **signed(OPENED, "e1"))
    assert (first.status_code, first.json()["status"]) == (202, "fired")
    run = first.json()["runId"]
    assert first.headers["location"] == f"/api/v1/runs/{run}"
    again = client.post("/triggers/signed", **signed(OPENED, "e1")).json()
    assert (again["status"], again["runId"]) == ("duplicate", run)
    closed = client.post("/triggers/signed", **signed({"action": "closed"}, "e2"))
    assert (closed.status_code, closed.json()["status"]) == (200, "filtered")
    page = client.get("/triggers/signed/deliveries", params={"limit": 2}, headers=OWNER).json()
    assert [one["status"] for one in page["deliveries"]] == ["filtered", "duplicate"]
    more = {"cursor": page["nextCursor"]}
    rest = client.get("/triggers/signed/deliveries", params=more, headers=OWNER).json()
    assert rest["deliveries"][0]["status"] == "fired"
    event = client.get(f"/runs/{run}/events", headers=OWNER).json()["events"][0]
    assert (event["decidedBy"], event["data"]["trigger"]["eventId"]) == ("trigger", "e1")


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (signed(OPENED, "e3", at=1_700_000_000), 401),
        ({**signed(OPENED, "e3"), "content": b"{}"}, 401),
        ({"json": OPENED, "headers": OWNER}, 401),
        (signed({"x": "y" * 2_000}, "e3"), 413),
    ],
    ids=["old", "changed", "another token", "too large"],
)
def test_calls_that_are_refused(client: httpx2.Client, sent: Json, status: int) -> None:
    refused = client.post("/triggers/signed", **sent)
    assert refused.status_code == status, refused.text
    page = client.get("/triggers/signed/deliveries", headers=OWNER).json()
    assert all(one["eventId"] != "e3" for one in page["deliveries"])  # nothing of it is kept


def test_without_auth_the_token_of_the_server_opens(client: httpx2.Client) -> None:
    assert client.post("/triggers/plain", json={}).status_code == 401
    keyed = {**OWNER, "idempotency-key": "k1"}
    one = client.post("/triggers/plain", json={"n": 1}, headers=keyed)
    two = client.post("/triggers/plain", json={"n": 1}, headers=keyed)
    assert (one.json()["status"], two.json()["status"]) == ("fired", "duplicate")
    assert client.get("/triggers").status_code == 401
    assert client.post("/triggers/plain/fire", json={}).status_code == 401


def test_triggers_are_looked_after(client: httpx2.Client) -> None:
    found = client.get("/triggers", headers=OWNER).json()["triggers"]
    assert {one["name"]: one["kind"] for one in found} == {"plain": "webhook", "signed": "webhook"}
    assert client.get("/triggers/plain", headers=OWNER).json()["agent"] == "looker"
    fired = client.post("/triggers/signed/fire", json={"body": OPENED}, headers=OWNER)
    assert (fired.status_code, fired.json()["source"]) == (202, "manual")
    missing = client.post("/triggers/sined", headers=OWNER)
    assert (missing.status_code, missing.json()["code"]) == (404, "unknown_trigger")
    assert "did you mean signed" in missing.json()["detail"]


def moments(client: httpx2.Client) -> list[Json]:
    found: list[Json] = []
    cursor: str | None = None
    while True:
        params = {"limit": 200, **({"cursor": cursor} if cursor else {})}
        page = client.get("/triggers/ticker/deliveries", params=params).json()
        found += page["deliveries"]
        cursor = page["nextCursor"]
        if cursor is None:
            return found


@pytest.mark.timeout(240)
def test_several_servers_and_kills_fire_each_moment_once(tmp_path: Path) -> None:
    made, db = project(tmp_path / "p", ticker=TICKER), tmp_path / "runs.db"
    for count in (2, 1):
        with ExitStack() as stack:
            servers = [stack.enter_context(serving(made, db)) for _ in range(count)]
            before = len(moments(servers[0][0]))
            deadline = time.monotonic() + 30
            while len(moments(servers[0][0])) < before + 2:
                assert time.monotonic() < deadline
                time.sleep(0.05)
            for _, process in servers:
                process.kill()
    (made / "triggers" / "ticker.trigger.yaml").write_text(TICKER + "enabled: false\n")
    with serving(made, db) as (client, _):
        deadline = time.monotonic() + 40
        while any(one["status"] == "starting" for one in moments(client)):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        fired = [one for one in moments(client) if one["status"] == "fired"]
        assert len(fired) >= 4
        assert {one["status"] for one in moments(client)} <= {"fired", "duplicate"}
        assert Counter(one["eventId"] for one in fired).most_common(1)[0][1] == 1
        runs = client.get("/runs", params={"limit": 200}).json()["runs"]
        assert sorted(one["id"] for one in runs) == sorted(one["runId"] for one in fired)
        assert len({one["title"] for one in runs}) == len(runs)
