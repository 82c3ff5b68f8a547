"""Conversations over HTTP and at the command line, in one database, across a kill of the server."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import httpx2
from typer.testing import CliRunner

from loopagent.cli.main import cli
from loopagent.errors import LoopAgentError
from tests.cli.commands import loopagent
from tests.http.server import make_project, serving


Json = dict[str, Any]


def start(client: httpx2.Client, agent: str = "looker", **more: Any) -> httpx2.Response:
    body = {"agent": agent, "message": "Go.", "conversationId": "c1", **more}
    return client.post("/runs", params={"wait": 10}, json=body)


def test_conversations_over_http(tmp_path: Path) -> None:
    with serving(make_project(tmp_path / "project"), tmp_path / "runs.db") as (client, _):
        for user in ("ann", "ann", "bob"):
            run = start(client, user=user).json()
            assert (run["status"], run["conversationId"], run["user"]) == ("completed", "c1", user)
            [first] = client.get(f"/runs/{run['id']}/events", params={"limit": 1}).json()["events"]
            assert first["data"]["conversationId"] == "c1", "what follows is sorted by it"
        [row] = client.get("/conversations", params={"user": "ann"}).json()["conversations"]
        assert (row["id"], row["messages"], row["title"]) == ("c1", 4, "Go.")
        assert client.get("/conversations").json()["conversations"] == []
        for path in ("/conversations/c1", "/conversations/c1/messages"):
            missing = client.get(path, params={"user": "eve"})
            assert (missing.status_code, missing.json()["code"]) == (404, "unknown_conversation")
        page = client.get("/conversations/c1/messages", params={"user": "ann", "after": 1}).json()
        assert [(one["sequence"], one["role"]) for one in page["messages"]] == [
            (2, "AI"),
            (3, "User"),
            (4, "AI"),
        ]
        assert page["nextAfter"] == 4
        start(client, user="ann", tenant="acme", message="A secret of acme.")
        assert client.get("/conversations/c1", params={"user": "ann"}).json()["messages"] == 4
        inside = {"user": "ann", "tenant": "acme"}
        assert client.get("/conversations/c1", params=inside).json()["messages"] == 2
        said = client.get("/conversations/c1/messages", params=inside).json()["messages"]
        assert said[0]["text"] == "A secret of acme."
        [only] = client.get("/conversations", params=inside).json()["conversations"]
        assert (only["tenant"], only["messages"]) == ("acme", 2)
        for status in (204, 404):
            gone = client.delete("/conversations/c1", params={"user": "ann"})
            assert gone.status_code == status
        left = client.get("/conversations/c1", params={"user": "bob"}).json()
        assert left["messages"] == 2
        assert client.get("/conversations/c1", params=inside).json()["messages"] == 2
        bad = start(client, conversationId="no/way")
        assert (bad.status_code, bad.json()["code"]) == (422, "invalid_conversation")


def test_a_busy_conversation_over_http_and_a_kill(tmp_path: Path) -> None:
    project, db = make_project(tmp_path / "project"), tmp_path / "runs.db"
    with serving(project, db) as (client, process):
        first = start(client, "mailer").json()
        assert first["state"]["state"] == "interactive"
        refused = start(client)
        assert (refused.status_code, refused.json()["code"]) == (409, "conversation_busy")
        assert first["id"] in refused.json()["detail"]
        assert client.delete("/conversations/c1").status_code == 409
        waiting = start(client, onBusy="enqueue").json()
        assert waiting["state"]["state"] == "queued"
        process.kill()
        process.wait()
    with serving(project, db) as (client, _):
        client.post(f"/runs/{first['id']}/cancel")
        until = time.monotonic() + 20
        while (run := client.get(f"/runs/{waiting['id']}").json())["status"] == "running":
            assert time.monotonic() < until, run
            time.sleep(0.05)
        assert run["status"] == "completed"
        start(client, "mailer")
        assert start(client, onBusy="interrupt").json()["status"] == "completed"
        assert client.get("/conversations/c1").json()["active"] == []


def command(*arguments: str) -> tuple[int, str]:
    """Exit code and output of a command."""
    done = CliRunner().invoke(cli, list(arguments))
    if isinstance(done.exception, LoopAgentError):
        return 2, str(done.exception)
    return done.exit_code, done.output


def test_conversations_at_the_command_line(tmp_path: Path) -> None:
    where = ("--project", str(make_project(tmp_path / "p")), "--db", str(tmp_path / "runs.db"))
    mine = ("--conversation", "c1", "--user", "ann")
    for _ in range(2):
        assert command("run", "looker", "Go.", *mine, *where)[0] == 0
    assert command("run", "mailer", "Mail.", *mine, "--json", *where)[0] == 3
    code, said = command("run", "looker", "Go.", *mine, *where)
    assert code != 0
    assert "has not ended" in said
    assert command("run", "looker", "Go.", *mine, "--on-busy", "interrupt", *where)[0] == 0

    _, shown = command("conversations", "show", "c1", "--user", "ann", *where)
    assert "#1 User: Go." in shown
    assert "#2 AI: Seen." in shown
    [listed] = json.loads(command("conversations", "list", "--user", "ann", "--json", *where)[1])
    assert (listed["id"], listed["messages"]) == ("c1", 8)
    whole = json.loads(command("conversations", "show", "c1", "--user", "ann", "--json", *where)[1])
    assert [one["sequence"] for one in whole["said"]] == list(range(1, 9))
    assert "c1" in command("conversations", "list", "--user", "ann", *where)[1]
    code, said = command("conversations", "show", "c1", *where)
    assert (code, "no conversation" in said) == (2, True)
    _, said = command("conversations", "delete", "c1", "--user", "ann", *where)
    assert "c1 removed" in said
    assert command("conversations", "delete", "c1", "--user", "ann", *where)[0] == 2


def test_a_real_process_says_what_is_busy(tmp_path: Path) -> None:
    where = ("--project", str(make_project(tmp_path / "p")), "--db", str(tmp_path / "runs.db"))
    assert loopagent("run", "mailer", "Mail.", "--conversation", "c1", *where).returncode == 3
    refused = loopagent("run", "looker", "Go.", "--conversation", "c1", *where)
    assert refused.returncode not in {0, 3}
    assert "has not ended" in " ".join(refused.stderr.split())
