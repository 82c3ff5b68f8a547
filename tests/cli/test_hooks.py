"""Hooks in a project folder: found, in force at the command line, and explained."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from loopagent.errors import ConfigError
from loopagent.project import load_project
from tests.cli.commands import loopagent
from tests.http.server import make_project


GUARD = """
from loopagent import add_context, before_action, before_run, deny

@before_run
def rules(call):
    return add_context("Be brief.")

@before_action(actions=["look"])
async def closed(call):
    return deny("The shelf is closed.")
"""


def test_hooks_of_a_project_are_in_force_and_explained(tmp_path: Path) -> None:
    project, db = make_project(tmp_path / "project"), str(tmp_path / "runs.db")
    (project / "hooks").mkdir()
    (project / "hooks" / "guard.py").write_text(GUARD)
    place = ("--project", str(project), "--db", db)
    done = loopagent("run", "looker", "Go.", "--events", *place)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    decided = [one["data"] for one in events if one["type"] == "hook.decided"]
    assert [(one["hook"], one["decision"]) for one in decided] == [
        ("rules", "context"),
        ("closed", "deny"),
    ]
    assert [one["type"] for one in events if one["type"].startswith("action.")] == [
        "action.rejected"
    ]
    told = loopagent("runs", "explain", events[0]["runId"], *place).stdout
    assert "hook closed (before_action): it refused the call" in " ".join(told.split())


def test_a_hook_that_cannot_be_is_a_complaint_with_its_file(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project")
    (project / "hooks").mkdir()
    (project / "hooks" / "a.py").write_text(GUARD)
    (project / "hooks" / "b.py").write_text(GUARD + "\nbefore_run(timeout_seconds=0)(rules.fn)\n")
    (project / "hooks" / "c.py").write_text(GUARD)
    with pytest.raises(ConfigError) as caught:
        load_project(project)
    first, *rest = [one.removeprefix(f"{project}/") for one in caught.value.problems]
    assert "b.py:12:1" in first
    assert "timeout_seconds must be above 0" in first
    assert len(rest) == 2
    assert "there are two before_run hooks named rules; pass `name` to one" in rest[0]
