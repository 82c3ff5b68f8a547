"""`loopagent test` as a user types it."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

from tests.cli.commands import loopagent
from tests.http.server import make_project


GOOD = "agent: looker\nmessage: Go.\nrepliesFile: ../scripts/looker.jsonl\nrealActions: [look]\n"
BAD = GOOD + "expect:\n  payloadAt: {seen: 2}\n"


def scenarios(folder: Path, **texts: str) -> Path:
    project = make_project(folder)
    (project / "scenarios").mkdir()
    for name, text in texts.items():
        (project / "scenarios" / f"{name}.scenario.yaml").write_text(text)
    return project


def test_all_scenarios_of_a_project_are_played(tmp_path: Path) -> None:
    project = str(scenarios(tmp_path / "p", good=GOOD, bad=BAD))
    done = loopagent("test", "--project", project)
    assert done.returncode == 1, done.stderr
    assert "ok    good  2 model calls" in done.stdout
    assert "bad.scenario.yaml:6:15: expect.payloadAt.seen: is not as expected" in done.stdout
    assert "(value): expected 2, got 1" in done.stdout
    assert "1 passed, 1 failed" in done.stdout
    assert loopagent("test", "--project", project, "-k", "goo").returncode == 0


def test_scenarios_are_named_by_name_file_or_folder(tmp_path: Path) -> None:
    project = scenarios(tmp_path / "p", good=GOOD, bad=BAD)
    file = project / "scenarios" / "good.scenario.yaml"
    done = loopagent("test", "good", str(file), "--project", str(project), "--json")
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    assert (printed["passed"], printed["failed"]) == (1, 0)
    assert printed["scenarios"][0]["scenario"] == "good"
    assert loopagent("test", str(file)).returncode == 0
    report = tmp_path / "out" / "junit.xml"
    assert loopagent("test", str(project), "--junit", str(report)).returncode == 1
    suite = ET.parse(report).getroot()  # noqa: S314 - we wrote it
    assert (suite.attrib["tests"], suite.attrib["failures"]) == ("2", "1")
    failure = suite.find("testcase/failure")
    assert failure is not None
    assert "expected 2, got 1" in (failure.text or "")


def test_what_is_wrong_with_the_call_or_a_file_is_usage(tmp_path: Path) -> None:
    project = scenarios(tmp_path / "p", good=GOOD)
    for arguments, said in (
        (["god"], "did you mean good?"),
        (["-k", "xyz"], "with 'xyz' in its name"),
        (["good", "--junit", str(project)], "cannot be written"),
    ):
        done = loopagent("test", *arguments, "--project", str(project))
        assert (done.returncode, said in done.stderr) == (2, True), done.stderr
    (project / "scenarios" / "odd.scenario.yaml").write_text("agent: 1\n")
    done = loopagent("test", "--project", str(project))
    assert (done.returncode, "odd.scenario.yaml:1:1: agent: " in done.stderr) == (2, True), (
        done.stderr
    )
    lint = loopagent("agents", "lint", "--project", str(project))
    assert (lint.returncode, "odd.scenario.yaml:1:1: agent: " in lint.stderr) == (2, True)
