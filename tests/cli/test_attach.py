"""`run --attach`: files at the command line."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from loopagent.cli.main import cli
from loopagent.errors import LoopAgentError
from tests.cli.commands import loopagent
from tests.http.server import make_project


def test_files_are_attached_and_can_be_looked_into(tmp_path: Path) -> None:
    project, db = make_project(tmp_path / "project"), str(tmp_path / "runs.db")
    call = {"artifactId": "A", "tool": "get_rows", "input": {}}
    look = {"taskComplete": False, "artifactToolCalls": [call], "nextStep": {"type": "Retry"}}
    done = {"taskComplete": True, "message": "Seen."}
    script = "\n".join(json.dumps(one) for one in (look, done))
    (project / "scripts" / "looker.jsonl").write_text(script + "\n")
    (tmp_path / "orders.csv").write_text("id,city\n7,Porto\n")
    (tmp_path / "notes.md").write_text("# Notes\n")
    files = ("--attach", str(tmp_path / "orders.csv"), "--attach", str(tmp_path / "notes.md"))
    place = ("--project", str(project), "--db", db)
    ran = loopagent("run", "looker", "Look.", "--events", *files, *place)
    assert ran.returncode == 0, ran.stderr
    events = [json.loads(line) for line in ran.stdout.splitlines()]
    assert [one["type"] for one in events].count("artifact.created") == 2
    turn = json.loads(loopagent("runs", "turn", events[0]["runId"], "2", "--json", *place).stdout)
    assert "Porto" in json.dumps(turn["prompt"])
    assert "notes.md" in json.dumps(turn["prompt"])
    assert turn["prompt"]["exact"] is True
    runner = CliRunner()
    shown = runner.invoke(cli, ["runs", "turn", events[0]["runId"], "1", *place])
    assert shown.exit_code == 0, shown.output
    assert "get_rows" in shown.output
    assert "artifactToolCalls" in shown.output
    missing = runner.invoke(cli, ["runs", "turn", events[0]["runId"], "9", *place])
    assert isinstance(missing.exception, LoopAgentError | SystemExit)


def test_a_file_that_cannot_be_taken_is_said_before_anything_starts(tmp_path: Path) -> None:
    project, db = make_project(tmp_path / "project"), tmp_path / "runs.db"
    place = ("--project", str(project), "--db", str(db))
    gone = loopagent("run", "looker", "Look.", "--attach", str(tmp_path / "gone.txt"), *place)
    assert gone.returncode == 2
    assert "cannot be read: No such file or directory" in " ".join(gone.stderr.split())
    with (tmp_path / "large.bin").open("wb") as file:
        file.truncate(5_000_000_000)
    large = loopagent("run", "looker", "Look.", "--attach", str(tmp_path / "large.bin"), *place)
    assert large.returncode == 2
    assert "limits.maxAttachmentBytes" in "".join(large.stderr.split())
    assert not db.exists()
