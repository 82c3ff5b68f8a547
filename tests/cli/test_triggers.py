"""`loopagent triggers`: list, check, fire, log."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from loopagent.cli.main import cli
from loopagent.errors import ConfigError
from tests.test_project_triggers import GOOD, written


REPLY = '{"taskComplete": true, "message": "Seen."}\n'
HOOK = """\
agent: looker
message: "Look at {{ body.n }}"
filter: body.n > 1
webhook: {auth: {type: bearer, secretEnv: [HOOK_SECRET]}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "x.jsonl").write_text(REPLY)
    for number in (1, 2):
        (tmp_path / f"{number}.json").write_text(json.dumps({"n": number}))
    return written(tmp_path, morning=GOOD, hook=HOOK)


def call(folder: Path, command: str, *arguments: str, db: bool = True) -> Any:
    where = ["--project", str(folder), *(["--db", str(folder / "runs.db")] if db else [])]
    return CliRunner().invoke(cli, ["triggers", command, *arguments, *where])


def test_from_the_terminal(folder: Path) -> None:
    listed = call(folder, "list", "--json")
    assert [one["name"] for one in json.loads(listed.stdout)] == ["hook", "morning"]
    fired = call(folder, "fire", "hook", "--body", str(folder / "2.json"), "--event-id", "e1")
    assert fired.exit_code == 0, fired.output
    assert "Seen." in fired.stdout
    again = call(
        folder, "fire", "hook", "--body", str(folder / "2.json"), "--event-id", "e1", "--json"
    )
    assert json.loads(again.stdout)["status"] == "duplicate"
    filtered = call(folder, "fire", "hook", "--body", str(folder / "1.json"))
    assert filtered.exit_code == 1
    assert call(folder, "fire", "morning", "--no-wait").exit_code == 0
    log = json.loads(call(folder, "log", "--json").stdout)
    assert [(one["trigger"], one["status"]) for one in log] == [
        ("morning", "fired"),
        ("hook", "filtered"),
        ("hook", "duplicate"),
        ("hook", "fired"),
    ]
    table = call(folder, "log", "hook", "--status", "filtered").stdout
    assert "condition does not hold" in re.sub(r"\s+", " ", table)
    assert "morning" in call(folder, "list").stdout


def test_check(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOOK_SECRET", raising=False)
    refused = call(folder, "check", db=False)
    assert isinstance(refused.exception, ConfigError)
    assert "HOOK_SECRET is not set" in refused.exception.problems[0]
    monkeypatch.setenv("HOOK_SECRET", "long enough")
    fine = call(folder, "check", db=False)
    assert fine.exit_code == 0, fine.output
    assert "2 trigger(s): fine" in fine.stdout
    assert len(json.loads(call(folder, "check", "--json", db=False).stdout)["morning"]) == 3
