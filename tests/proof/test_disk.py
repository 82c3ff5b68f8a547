"""A server whose disk takes nothing any more says so, keeps what it has, and goes on when there is room again."""

from __future__ import annotations

import ctypes
import os
import resource
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx2

from tests.http.server import ROOT, make_project, serving


SERVE = [sys.executable, "-B", "-m", "loopagent", "serve", "--port", "0"]
NO_LIMIT = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)


def whole(db: Path) -> bool:
    """Whether the database is in order."""
    with closing(sqlite3.connect(db)) as connection:
        (said,) = connection.execute("PRAGMA integrity_check").fetchone()
        return str(said) == "ok"


def asked(client: httpx2.Client, agent: str) -> dict[str, Any]:
    """A run that waits for an approval."""
    body = {"agent": agent, "message": "Go."}
    run: dict[str, Any] = client.post("/runs", params={"wait": 20}, json=body).json()
    assert run["state"]["state"] == "interactive", run
    return run


def test_a_full_disk_is_told_and_loses_nothing(tmp_path: Path) -> None:
    db = tmp_path / "runs.db"
    with serving(make_project(tmp_path / "project"), db) as (client, process):
        run = asked(client, "mailer")
        sleeping = client.post("/runs", json={"agent": "blinker", "message": "Go."}).json()
        answer = f"/requests/{run['requests'][0]['requestId']}/answer"

        # no file of this process may grow, as on a disk without room
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))
        refused = client.post(answer, json={"decision": "approve"})
        assert (refused.status_code, refused.json()["code"]) == (503, "store")
        assert refused.json()["retryable"]
        assert client.post("/runs", json={"agent": "looker", "message": "Go."}).status_code == 503
        assert client.get(f"/runs/{run['id']}").json() == run
        time.sleep(2)  # meanwhile the other run's action has ended, and its result finds no room
        stuck = client.get(f"/runs/{sleeping['id']}").json()
        assert (stuck["status"], stuck["turn"]) == ("running", 1)

        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, NO_LIMIT)
        assert client.post(answer, json={"decision": "approve"}).status_code == 200
        done = client.get(f"/runs/{run['id']}", params={"wait": 20}).json()
        assert (done["status"], done["message"]) == ("completed", "Mailed.")
        assert client.post(f"/runs/{sleeping['id']}/resume").status_code == 200
        woke = client.get(f"/runs/{sleeping['id']}", params={"wait": 20}).json()
        assert (woke["status"], woke["message"]) == ("completed", "Woke.")
        for one in (done, woke):
            page = client.get(f"/runs/{one['id']}/events", params={"limit": 1000}).json()
            assert [event["seq"] for event in page["events"]] == list(range(1, one["seq"] + 1))
    assert whole(db)


def test_a_database_that_may_not_be_written_is_told_at_the_start(tmp_path: Path) -> None:
    db = tmp_path / "runs.db"
    project = make_project(tmp_path / "project")
    with serving(project, db) as (client, _):
        run = asked(client, "mailer")
    before = db.read_bytes()
    tmp_path.chmod(0o555)
    db.chmod(0o444)
    try:
        told = _serve_with_permissions_that_count(project, db)
    finally:
        tmp_path.chmod(0o755)
        db.chmod(0o644)
    assert told.returncode == 1, told.stderr
    assert str(db) in told.stderr
    assert "writable" in told.stderr
    assert "Traceback" not in told.stderr
    assert db.read_bytes() == before
    with serving(project, db) as (client, _):
        assert client.get(f"/runs/{run['id']}").json() == run


def _serve_with_permissions_that_count(project: Path, db: Path) -> subprocess.CompletedProcess[str]:
    """Serve without the administrator's right to write any file."""
    return subprocess.run(
        [*SERVE, "--project", str(project), "--db", str(db)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=ROOT,
        preexec_fn=_give_up_privilege,
    )


def _give_up_privilege() -> None:
    if os.geteuid() == 0:
        drop_from_bounding_set, dac_override = 24, 1
        if ctypes.CDLL(None, use_errno=True).prctl(drop_from_bounding_set, dac_override, 0, 0, 0):
            raise OSError(ctypes.get_errno(), "prctl")
