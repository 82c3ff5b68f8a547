"""The examples are what they say: every scenario holds, every README is short and its commands name what is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from loopagent.explain import explain
from loopagent.project import load_project
from loopagent.testing import load_scenarios, run_scenario


EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
FOLDERS = sorted(path.parent for path in EXAMPLES.glob("*/scenarios"))
SCENARIOS = sorted(EXAMPLES.glob("*/scenarios/*"))


def test_there_are_enough_of_them() -> None:
    assert len(FOLDERS) >= 4


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda one: f"{one.parts[-3]}/{one.name}")
def test_scenario(path: Path) -> None:
    project = load_project(path.parents[1], env={})
    [scenario] = load_scenarios(project, [path])
    result = run_scenario(scenario)
    result.check()
    assert result.played is not None
    explanation = explain(result.played.events)
    assert explanation.status == result.played.status
    told = [one for chapter in explanation.chapters for one in chapter.decisions]
    assert all(one.decision != one.type for one in told)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda one: one.name)
def test_readme(folder: Path) -> None:
    text = (folder / "README.md").read_text(encoding="utf-8")
    assert 10 <= len(text.splitlines()) <= 25
    assert f"loopagent test examples/{folder.name}\n" in text
    agent = re.search(rf'loopagent run (\S+) "[^"]+" --project examples/{folder.name}\b', text)
    assert agent is not None
    project = load_project(folder, env={})
    assert agent.group(1) in project.agents
    assert project.settings.model == f"scripted:scripts/{agent.group(1)}.jsonl"
    assert all(one.spec.description for one in load_scenarios(project))
