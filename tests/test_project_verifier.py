"""The verifier of an agent file: a right one is in force, a wrong one is a complaint at its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from loopagent.errors import ConfigError
from loopagent.project import load_project


ACTIONS = """
from loopagent import action

@action(effects="read")
async def check_it() -> bool:
    return True

@action(effects="write")
async def save_it() -> bool:
    return True
"""


def project(folder: Path, *lines: str) -> Path:
    for name in ("agents", "actions"):
        (folder / name).mkdir()
    (folder / "actions" / "t.py").write_text(ACTIONS)
    head = ("name: a", "model: openai:gpt-5-mini", "actions: [check_it, save_it]")
    (folder / "agents" / "a.agent.yaml").write_text("\n".join((*head, *lines, "")))
    return folder


def test_a_right_verifier_is_in_force(tmp_path: Path) -> None:
    folder = project(
        tmp_path,
        "artifactTools: false",
        "references: bare",
        "completion:",
        "  requireTasksDone: true",
        "  verifier: {action: check_it}",
    )
    spec = load_project(folder).agents["a"].spec
    assert spec.completion.verifier is not None
    assert (spec.completion.verifier.action, spec.completion.require_tasks_done) == (
        "check_it",
        True,
    )
    assert (spec.artifact_tools, spec.references) == (False, "bare")


@pytest.mark.parametrize(
    ("verifier", "complaint"),
    [
        (
            "{action: chek_it}",
            "5:14: completion.verifier.action: the agent has no such action; did",
        ),
        ("{action: zzz}", "5:14: completion.verifier.action: the agent has no such action (known:"),
        (
            "{action: save_it}",
            "5:14: completion.verifier.action: a verifier only reads, and save_it",
        ),
        ('{model: "openai:gpt-5-mini"}', "completion.verifier.model: the model that does the work"),
        ("{model: gpt}", "completion.verifier.model: 'gpt' is no model; write provider:name"),
        ("{}", "5:3: completion.verifier: must be {action: NAME}"),
        ('{action: check_it, model: "a:b"}', "5:3: completion.verifier: must be {action: NAME}"),
        ("check_it", "5:3: completion.verifier: must be {action: NAME}"),
        ("{acton: check_it}", "5:3: completion.verifier: must be {action: NAME}"),
    ],
)
def test_a_wrong_one_is_a_complaint_at_its_place(
    tmp_path: Path, verifier: str, complaint: str
) -> None:
    folder = project(tmp_path, "completion:", f"  verifier: {verifier}")
    with pytest.raises(ConfigError) as caught:
        load_project(folder)
    [found] = caught.value.problems
    assert complaint in found
    assert "agents/a.agent.yaml" in found


def test_hooks_are_not_written_in_agent_files(tmp_path: Path) -> None:
    folder = project(tmp_path, "hooks: [guard]")
    with pytest.raises(ConfigError) as caught:
        load_project(folder)
    assert ["hooks: are Python" in one for one in caught.value.problems] == [True]
