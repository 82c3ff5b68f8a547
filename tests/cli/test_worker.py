"""Workers and servers as processes over one database, as people start them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from tests.cli.commands import loopagent
from tests.http.server import make_project


ROOT = Path(__file__).parents[2]
PATIENCE_SECONDS = 40.0


@contextmanager
def command(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A command that goes on until it is told to stop."""
    process = subprocess.Popen(
        [sys.executable, "-m", "loopagent", *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=PATIENCE_SECONDS)


def said(process: subprocess.Popen[str], word: str) -> str:
    """The first line with a word in it."""
    assert process.stdout is not None
    for line in process.stdout:
        if word in line:
            return line
    raise AssertionError(f"it never said {word!r}")


def ended(client: httpx2.Client, run_id: str) -> dict[str, object]:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        run: dict[str, object] = client.get(f"/runs/{run_id}?wait=10").json()
        if run["status"] != "running":
            return run
    raise AssertionError("it did not end")


@pytest.mark.parametrize("kind", ["postgresql", "sqlite"])
def test_a_server_without_work_and_workers_that_come_and_go(
    kind: str, tmp_path: Path, postgres_url: str
) -> None:
    """What nobody works on waits; a killed worker's run goes on in the next; SIGTERM gives everything back."""
    project = make_project(tmp_path)
    url = postgres_url if kind == "postgresql" else f"sqlite:///{tmp_path}/runs.db"
    where = ("--project", str(project), "--db", url)
    with command("serve", *where, "--port", "0", "--no-work") as server:
        base = said(server, "listening on").split()[-1]
        with httpx2.Client(base_url=base, timeout=30) as client:
            body = {"agent": "looker", "message": "Look."}
            first = client.post("/runs", json=body).json()["id"]
            sleeper = client.post("/runs", json={"agent": "sleeper", "message": "Sleep."}).json()[
                "id"
            ]
            assert client.get(f"/runs/{first}").json()["status"] == "running"
            with command("worker", *where) as worker:
                said(worker, "working as")
                assert ended(client, first)["status"] == "completed"
                worker.kill()
            with command("worker", *where, "--grace-seconds", "0") as worker:
                said(worker, "working as")
                again = client.post("/runs", json=body).json()["id"]
                assert ended(client, again)["status"] == "completed"
                assert client.get(f"/runs/{sleeper}").json()["status"] == "running"
                worker.send_signal(signal.SIGTERM)
                out, _ = worker.communicate(timeout=PATIENCE_SECONDS)
                assert worker.returncode == 0, out
                assert "stopping" in out


def test_a_worker_needs_a_database_that_is_shared(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    for more in ((), ("--db", "memory://")):
        done = subprocess.run(
            [sys.executable, "-m", "loopagent", "worker", "--project", str(project), *more],
            capture_output=True,
            text=True,
            check=False,
            cwd=ROOT,
        )
        assert done.returncode == 2, done.stderr
        assert "postgresql://" in done.stderr


def test_workers_beside_a_server_are_replaced_and_stop_with_it(tmp_path: Path) -> None:
    where = ("--project", str(make_project(tmp_path)), "--db", str(tmp_path / "runs.db"))
    with command("serve", *where, "--port", "0", "--workers", "1") as server:
        base = said(server, "listening on").split()[-1]
        first = int(said(server, "working as").split(":")[-2])
        with httpx2.Client(base_url=base, timeout=30) as client:
            body = {"agent": "looker", "message": "Look."}
            run = client.post("/runs", json=body).json()["id"]
            assert ended(client, run)["status"] == "completed"
            os.kill(first, signal.SIGKILL)
            second = int(said(server, "working as").split(":")[-2])
            again = client.post("/runs", json=body).json()["id"]
            assert ended(client, again)["status"] == "completed"
        server.send_signal(signal.SIGTERM)
        out, _ = server.communicate(timeout=PATIENCE_SECONDS)
        assert "stopping" in out, "the worker is told to stop, and does"
        with pytest.raises(ProcessLookupError):
            os.kill(second, 0)


def test_a_worker_stops_when_whoever_started_it_is_gone(tmp_path: Path) -> None:
    project, db = str(make_project(tmp_path)), str(tmp_path / "runs.db")
    done = subprocess.run(
        [sys.executable, "-m", "loopagent", "worker", "--project", project, "--until-eof"],
        input="",
        env={**os.environ, "LOOPAGENT_DB": db},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
        cwd=ROOT,
    )
    assert (done.returncode, "stopping" in done.stdout) == (0, True), done.stderr


@pytest.mark.parametrize(
    ("more", "why"), [(("--no-work",), "not both"), (("--db", "memory://"), "postgresql://")]
)
def test_workers_need_work_and_a_database(tmp_path: Path, more: tuple[str, ...], why: str) -> None:
    project = make_project(tmp_path)
    done = loopagent("serve", "--project", str(project), "--workers", "2", *more)
    assert (done.returncode, why in done.stderr) == (2, True), done.stderr
