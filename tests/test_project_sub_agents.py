"""The `subAgents` of agent files."""

from __future__ import annotations

from pathlib import Path

import pytest

from loopagent.errors import ConfigError
from loopagent.project import load_project


def made(folder: Path, **agents: str) -> Path:
    """A project of agent files."""
    (folder / "agents").mkdir()
    for name, more in agents.items():
        (folder / "agents" / f"{name}.agent.yaml").write_text(f"name: {name}\n{more}\n")
    return folder


def complaints(folder: Path) -> list[str]:
    """What is wrong with a project, without the folder."""
    with pytest.raises(ConfigError) as caught:
        load_project(folder, env={})
    return [one.replace(f"{folder}/agents/", "") for one in map(str, caught.value.problems)]


def test_names_and_terms_make_a_tree(tmp_path: Path) -> None:
    terms = '{agent: b, downstream: ["x.*"], upstream: ["x.y:add"], messages: none, maxCalls: 2}'
    folder = made(
        tmp_path, a=f"subAgents: [{terms}, c]", b="subAgents: [c]", c="description: Does."
    )
    agents = load_project(folder, env={}).agents
    first, second = agents["a"].spec.agents
    assert (first.name, first.upstream, first.max_calls) == ("b", ("x.y:add",), 2)
    assert [one.name for one in first.spec.agents] == ["c"]
    assert second.spec == agents["c"].spec
    assert agents["a"].agents["b"] is agents["b"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("subAgents: [a]", "2:13: subAgents[0]: agents cannot give each other work in a circle"),
        ("subAgents: [bb]", "2:13: subAgents[0]: there is no agent 'bb'; did you mean b?"),
        ("subAgents: [b, b]", "2:16: subAgents[1]: b is listed twice"),
        ("subAgents: b", "2:1: subAgents: must be a list"),
        (
            "subAgents: [{agent: b, upsteam: []}]",
            "subAgents[0].upsteam: unknown key; did you mean upstream?",
        ),
        (
            "subAgents: [{agent: b, scope: x.y}]",
            "2:13: subAgents[0]: scope 'x.y': must start with /",
        ),
        ('subAgents: [{agent: b, upstream: ["x:fly"]}]', "2:13: subAgents[0]: upstream 'x:fly'"),
        ("subAgents: [{agent: b, messages: some}]", "subAgents[0].messages: expected"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path: Path, text: str, expected: str) -> None:
    (problem,) = complaints(made(tmp_path, a=text, b=""))
    assert expected in problem


def test_a_longer_circle_is_shown_whole(tmp_path: Path) -> None:
    folder = made(tmp_path, a="subAgents: [b]", b="subAgents: [c]", c="subAgents: [a]")
    (problem,) = complaints(folder)
    assert "a \u203a b \u203a c \u203a a" in problem
