"""Pausing, resuming, raising limits, forking and comparing at the terminal."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.commands import loopagent
from tests.http.server import make_project


def test_a_run_is_paused_resumed_raised_forked_and_compared(tmp_path: Path) -> None:
    where = ("--project", str(make_project(tmp_path / "p")), "--db", str(tmp_path / "runs.db"))
    started = loopagent("run", "mailer", "Go.", *where, "--json")
    run_id = json.loads(started.stdout)["id"]
    paused = loopagent("runs", "pause", run_id, *where, "--reason", "lunch")
    assert paused.returncode == 0, paused.stderr
    assert "resumable" in paused.stdout
    assert "lunch" in paused.stdout
    resumed = loopagent("runs", "resume", run_id, *where, "--json")
    assert (resumed.returncode, json.loads(resumed.stdout)["state"]["state"]) == (3, "interactive")
    forked = loopagent("runs", "fork", run_id, *where, "--max-turns", "1", "--message", "Again.")
    assert forked.returncode == 3, forked.stderr
    assert f"is a copy of {run_id}, from before its turn 1" in forked.stdout
    copy = forked.stdout.split()[0]
    wrong = loopagent("runs", "limits", copy, *where, "--max-turns", "1", "--max-tokens", "many")
    assert wrong.returncode == 2
    raised = loopagent("runs", "limits", copy, *where, "--max-turns", "7")
    assert json.loads(raised.stdout)["maxTurns"] == 7, raised.stderr
    compared = loopagent("runs", "compare", run_id, copy, *where)
    assert compared.returncode == 0, compared.stderr
    assert "same" in compared.stdout
    assert copy in compared.stdout
