"""Skill folders of a project: reading, complaints, hashes and reviews."""

from __future__ import annotations

import json
import re
import subprocess
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from loopagent.action import Action, action
from loopagent.agent import Agent
from loopagent.core.skill_spec import SkillFile
from loopagent.errors import ActionError, ConfigError
from loopagent.project import Project, load_project, load_skill
from loopagent.project.files import Files
from loopagent.project.lock import LOCK_FILE, Lock, read_lock, write_lock
from loopagent.skill import SkillLimits, folder_hash
from tests.folders import filled


ACTIONS = '''
from loopagent import action

@action(effects="external")
def book(amount: float) -> float:
    """Book an amount."""
    return amount
'''
SKILL = """\
---
name: budgeting
description: Plans a budget. Use it when money is the question.
license: MIT
compatibility: Needs nothing.
allowed-tools: Bash(git:*) Read
metadata:
  author: somebody
  version: 1.0
  loopagent-actions: book
  loopagent-activation: auto
---
# Budgeting

Count {{ twice }}.
"""
AGENT = "name: planner\nskills: {activation: auto, names: [budgeting]}\n"


def project(folder: Path, **files: str | bytes) -> Path:
    given: dict[str, Any] = {
        "actions/a.py": ACTIONS,
        "agents/planner.agent.yaml": AGENT,
        "skills/budgeting/SKILL.md": SKILL,
        **files,
    }
    return filled(folder, **{name: one for name, one in given.items() if one is not None})


def load(folder: Path) -> Project:
    return load_project(folder, env={})


def complaints(folder: Path) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(folder)
    return [one.removeprefix(f"{folder}/") for one in caught.value.problems]


def warnings(folder: Path) -> list[str]:
    return [one.removeprefix(f"{folder}/") for one in load(folder).warnings]


def reviewed(folder: Path, *names: str) -> Project:
    loaded = load(folder)
    lock = loaded.lock
    for name in names or loaded.skills:
        lock = lock.with_reviewed(loaded.skills[name])
    write_lock(folder, lock)
    return load(folder)


# --- what works ------------------------------------------------------------------------------------


def test_a_skill_with_everything(tmp_path: Path) -> None:
    files: dict[str, Any] = {
        "skills/budgeting/references/rates.md": "5 %",
        "skills/budgeting/scripts/run.sh": b"\xff\x00",
        "skills/budgeting/.git/config": "no part of it",
        "skills/budgeting/__pycache__/x.pyc": b"x",
        "skills/README.md": "no skill",
    }
    loaded = load(project(tmp_path, **files))
    skill = loaded.skills["budgeting"]
    assert skill.spec.description == "Plans a budget. Use it when money is the question."
    assert skill.spec.instructions == "# Budgeting\n\nCount {{ twice }}."
    assert skill.spec.activation == "auto"
    assert [one.name for one in skill.spec.actions] == ["book"]
    assert skill.spec.files == (
        SkillFile(path="references/rates.md", size_bytes=3),
        SkillFile(path="scripts/run.sh", size_bytes=2),
    )
    assert skill.about["license"] == "MIT"
    assert skill.about["allowed-tools"] == "Bash(git:*) Read"
    agent = loaded.agents["planner"]
    assert agent.spec.skills.activation == "auto"
    assert agent.spec.skill("budgeting") == skill.spec
    assert agent.spec.actions == ()
    assert set(agent.actions) == {"book", "read_skill_file"}


def test_the_hash_is_what_sha256sum_says(tmp_path: Path) -> None:
    folder = project(tmp_path, **{"skills/budgeting/references/rates.md": "5 %"})
    script = "find . -type f -printf '%P\\n' | LC_ALL=C sort | xargs sha256sum | sha256sum"
    lines = subprocess.run(
        ["sh", "-c", script],
        cwd=folder / "skills/budgeting",
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert load(folder).skills["budgeting"].spec.hash == lines.split()[0]


def test_every_file_and_every_name_counts_for_the_hash() -> None:
    digest = sha256(b"x").hexdigest()
    hashes = [
        folder_hash({"SKILL.md": digest}),
        folder_hash({"SKILL.md": digest, "a": digest}),
        folder_hash({"SKILL.md": digest, "b": digest}),
        folder_hash({"SKILL.md": sha256(b"y").hexdigest()}),
    ]
    assert len(set(hashes)) == 4
    assert folder_hash({"b": digest, "a": digest}) == folder_hash({"a": digest, "b": digest})


def test_names_of_actions_and_agents_from_either_place(tmp_path: Path) -> None:
    head = "---\nname: budgeting\ndescription: x\nactions: [book]\nsubAgents: [planner, nobody]\n"
    more = "metadata: {loopagent-agents: 'planner, second'}\n---\nDo.\n"
    loaded = load(project(tmp_path, **{"skills/budgeting/SKILL.md": head + more}))
    spec = loaded.skills["budgeting"].spec
    assert [one.name for one in spec.actions] == ["book"]
    assert spec.agents == ("planner", "second", "nobody")
    assert spec.activation == "requested"


def test_an_agent_accepts_all_skills_none_or_some(tmp_path: Path) -> None:
    other = SKILL.replace("name: budgeting", "name: other")
    sections = {
        "": [],
        "skills: {}": ["budgeting", "other"],
        "skills: {names: []}": [],
        "skills: {names: [other]}": ["other"],
    }
    for index, (section, expected) in enumerate(sections.items()):
        folder = project(
            tmp_path / str(index),
            **{
                "skills/other/SKILL.md": other,
                "agents/planner.agent.yaml": f"name: planner\n{section}\n",
            },
        )
        spec = load(folder).agents["planner"].spec
        assert [one.name for one in spec.skills.available] == expected
        assert spec.skills.activation == "requested"


# --- complaints ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# no front matter", "1:1: (file): must begin with a line ---, then name"),
        ("---\n---\nx", "1:1: (file): must begin with a line ---, then name"),
        ("---\nname: [\n---\nx", "3:1: not YAML"),
        ("---\nname: budgeting\n---\nx", "2:1: description: required"),
        ("---\ndescription: x\n---\nx", "2:1: name: required"),
        ("---\nname: Budgeting\ndescription: x\n---\nx", "2:1: name: 'Budgeting' is no name"),
        (
            "---\nname: a--b\ndescription: x\n---\nx",
            "2:1: name: 'a--b' is no name; use lower case letters",
        ),
        ("---\nname: money\ndescription: x\n---\nx", "2:1: name: must be 'budgeting' like its"),
        ("---\nname: 5\ndescription: x\n---\nx", "2:1: name: expected text, got number 5"),
        ("---\nname: budgeting\ndescription: ''\n---\nx", "3:1: description: must say what"),
        (f"---\nname: budgeting\ndescription: {'x' * 1025}\n---\nx", "3:1: description: must say"),
        ("---\nname: budgeting\ndescription: x\n---\n \n", "1:1: (file): has no instructions"),
        ("---\nname: budgeting\ndescription: x\nmetadata: []\n---\nx", "4:1: metadata: expected"),
        (
            "---\nname: budgeting\ndescription: x\nmetadata:\n  loopagent-activation: always\n---\nx",
            '5:3: metadata["loopagent-activation"]: must be auto or requested',
        ),
        (
            "---\nname: budgeting\ndescription: x\nmetadata: {loopagent-actions: 5}\n---\nx",
            '4:12: metadata["loopagent-actions"]: must be text',
        ),
        (
            "---\nname: budgeting\ndescription: x\nactions: book\n---\nx",
            "4:1: actions: expected",
        ),
        (
            f"---\nname: budgeting\ndescription: x\n---\n{'x' * 40_001}",
            "1:1: (file): has 40001 characters of instructions, 40000 are allowed",
        ),
        (b"---\nname: \xff", "2:7: (file): is not UTF-8"),
    ],
)
def test_broken_skills(tmp_path: Path, text: str | bytes, expected: str) -> None:
    found = complaints(project(tmp_path, **{"skills/budgeting/SKILL.md": text}))
    assert len(found) == 1, found
    assert found[0].removeprefix("skills/budgeting/SKILL.md:").startswith(expected), found


def test_a_folder_without_its_file(tmp_path: Path) -> None:
    folder = project(tmp_path, **{"skills/a/x.md": "x", "skills/b/Skill.md": "x"})
    assert complaints(folder) == [
        "skills/a/SKILL.md:1:1: (file): there is no SKILL.md; every folder of skills needs one",
        "skills/b/SKILL.md:1:1: (file): there is no SKILL.md; rename Skill.md",
    ]


def test_links_and_odd_names_and_large_files(tmp_path: Path) -> None:
    folder = project(tmp_path, **{"skills/budgeting/big.bin": b"x" * 512_001})
    inside = folder / "skills/budgeting"
    (inside / "link.md").symlink_to("/etc/passwd")
    (inside / "linked").symlink_to("/etc")
    (inside / "a\nb.md").write_text("x")
    found = complaints(folder)
    assert [re.sub(r"^skills/budgeting/", "", one).split(":")[0] for one in sorted(found)] == [
        "SKILL.md",
        "big.bin",
        "link.md",
        "linked",
    ]
    assert "512000 are allowed" in "".join(found)


def test_limits_of_skills_are_settings(tmp_path: Path) -> None:
    toml = "[skills]\nmaxFiles = 1\nmaxPathChars = 10\nmaxInstructionsChars = 5\nmaxDescriptionChars = 3\n"
    files = {"loopagent.toml": toml}
    files |= {f"skills/budgeting/{one}.md": "x" for one in ("a", "b", "c", "very-long-name")}
    found = " ".join(complaints(project(tmp_path, **files)))
    for expected in ("more than 1 files", "longer than 10", "5 are allowed", "in at most 3"):
        assert expected in found
    (problem,) = complaints(
        project(tmp_path / "x", **{"loopagent.toml": "[skills]\nmaxFiles = -1"})
    )
    assert problem.startswith("loopagent.toml:1:2: skills.maxFiles: ")


@pytest.mark.parametrize(
    ("section", "expected"),
    [
        ("skills: [budgeting]", "2:1: skills: expected an object"),
        ("skills: {names: budgeting}", "2:10: skills.names: expected a list"),
        ("skills: {names: [budgetin]}", "2:18: skills.names[0]: there is no skill 'budgetin'; did"),
        ("skills: {names: [zzz]}", "2:18: skills.names[0]: there is no skill 'zzz' (known: budg"),
        (
            "skills: {names: [budgeting, budgeting]}",
            "2:29: skills.names[1]: budgeting is listed twice",
        ),
        (
            "skills: {names: [../agents]}",
            "2:18: skills.names[0]: there is no skill '../agents' (kn",
        ),
        ('skills: {names: ["a\\0b"]}', "2:18: skills.names[0]: there is no skill 'a\\x00b'"),
        ("skills: {activations: auto}", "2:10: skills.activations: unknown key; did you mean"),
    ],
)
def test_broken_sections(tmp_path: Path, section: str, expected: str) -> None:
    agent = {"agents/planner.agent.yaml": f"name: planner\n{section}\n"}
    (problem,) = complaints(project(tmp_path, **agent))
    assert problem.removeprefix("agents/planner.agent.yaml:").startswith(expected)


def test_a_skill_that_cannot_be_read_is_complained_about_once(tmp_path: Path) -> None:
    found = complaints(project(tmp_path, **{"skills/budgeting/SKILL.md": "x"}))
    assert [one.partition(":")[0] for one in found] == ["skills/budgeting/SKILL.md"]


def test_what_works_but_perhaps_not_as_meant_is_warned_about(tmp_path: Path) -> None:
    head = "---\nname: budgeting\ndescription: x\nlicence: MIT\nfoo: 1\nactions: [bok]\n"
    head += "metadata: {loopagent-agent: x, loopagent-agents: nobody}\n---\n"
    folder = project(tmp_path, **{"skills/budgeting/SKILL.md": head + "word " * 6_000})
    found = [one.removeprefix("skills/budgeting/SKILL.md:1:1: ") for one in warnings(folder)]
    expected = [
        "licence: unknown key, nothing depends on it; did you mean license?",
        "foo: unknown key, nothing depends on it",
        "metadata.loopagent-agent: unknown key (known: ",
        "actions: there is no action 'bok'; the skill works without it",
        "(file): about ",
        "(file): is new; nobody can activate it before `loopagent skills review budgeting`",
        "agents: there is no agent 'nobody'",
    ]
    assert len(found) == len(expected)
    assert all(one.startswith(start) for one, start in zip(found, expected, strict=True)), found


# --- reviews ---------------------------------------------------------------------------------------


def test_only_exactly_what_was_reviewed_counts_as_reviewed(tmp_path: Path) -> None:
    rates = tmp_path / "skills/budgeting/references/rates.md"
    folder = project(tmp_path, **{"skills/budgeting/references/rates.md": "5 %"})
    assert not load(folder).skills["budgeting"].spec.reviewed
    loaded = reviewed(folder)
    assert loaded.skills["budgeting"].spec.reviewed
    assert loaded.warnings == []
    rates.write_text("6 %")
    (rates.parent / "new.md").write_text("new")
    loaded = load(folder)
    skill = loaded.skills["budgeting"]
    assert not skill.spec.reviewed
    assert loaded.agents["planner"].spec.skills.offered == ()
    assert loaded.lock.changes(skill) == {
        "new": ["references/new.md"],
        "changed": ["references/rates.md"],
    }
    assert "has changed since it was reviewed" in loaded.warnings[0]
    rates.write_text("5 %")
    (rates.parent / "new.md").unlink()
    assert load(folder).skills["budgeting"].spec.reviewed


def test_the_lock_is_stable_and_entries_can_go(tmp_path: Path) -> None:
    folder = project(tmp_path)
    reviewed(folder)
    first = (folder / LOCK_FILE).read_bytes()
    reviewed(folder)
    assert (folder / LOCK_FILE).read_bytes() == first
    assert json.loads(first)["skills"]["budgeting"]["files"].keys() == {"SKILL.md"}
    assert sorted(one.name for one in folder.iterdir() if one.name.startswith("skills.")) == [
        LOCK_FILE
    ]
    write_lock(folder, read_lock(Files(folder, 100_000)).without("budgeting"))
    assert not load(folder).skills["budgeting"].spec.reviewed


def test_a_stale_entry_is_warned_about(tmp_path: Path) -> None:
    folder = project(tmp_path)
    reviewed(folder)
    (folder / "skills/budgeting/SKILL.md").unlink()
    (folder / "skills/budgeting").rmdir()
    (folder / "agents/planner.agent.yaml").write_text("name: planner\n")
    assert warnings(folder) == ["skills.lock:1:1: budgeting: there is no such skill any more"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{", "skills.lock:1:1: (file): cannot be used: Invalid JSON"),
        ('{"version": 2}', "skills.lock:1:1: version: cannot be used: "),
        ('{"skills": {"a": {}}}', "skills.lock:1:1: skills.a.sha256: cannot be used: "),
    ],
)
def test_a_broken_lock_is_no_empty_lock(tmp_path: Path, text: str, expected: str) -> None:
    (problem,) = complaints(project(tmp_path, **{LOCK_FILE: text}))
    assert problem.startswith(expected)
    assert "remove it and review again" in problem


# --- skills in Python ------------------------------------------------------------------------------


@action(effects="external")
def book(amount: float) -> float:
    """Book an amount."""
    return amount


@action(name="book")
def other_book(amount: float) -> float:
    """Book otherwise."""
    return amount


@action(name="read_skill_file")
def imposter() -> str:
    """Read nothing."""
    return ""


def in_python(folder: Path, *actions: Action[..., Any], **options: Any) -> Any:
    filled(
        folder, **{"budgeting/SKILL.md": SKILL, "budgeting/references/rates.md": "0123456789" * 30}
    )
    return load_skill(folder / "budgeting", actions=actions or (book,), **options)


def test_a_skill_for_an_agent_in_python(tmp_path: Path) -> None:
    skill = in_python(tmp_path)
    agent = Agent("planner", skills=[skill], skill_activation="auto")
    assert [one.name for one in agent.spec.skills.offered] == ["budgeting"]
    assert set(agent.actions) == {"book", "read_skill_file"}
    assert Agent("planner", skills=[skill]).spec.skills.offered == ()
    assert in_python(tmp_path, sha256=skill.spec.hash).spec.reviewed
    assert not in_python(tmp_path, sha256="0" * 64).spec.reviewed


def test_a_skill_in_python_that_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such folder"):
        load_skill(tmp_path / "nothing")
    filled(tmp_path, **{"x/SKILL.md": "nothing"})
    with pytest.raises(ConfigError) as caught:
        load_skill(tmp_path / "x")
    assert "must begin with a line ---" in caught.value.problems[0]


def test_names_that_mean_two_things_are_refused(tmp_path: Path) -> None:
    skill = in_python(tmp_path)
    assert Agent("planner", actions=[book], skills=[skill]).spec.actions == (book.spec,)
    with pytest.raises(ConfigError, match="brings another action 'book'"):
        Agent("planner", actions=[other_book], skills=[skill])
    with pytest.raises(ConfigError, match="the engine's own action"):
        Agent("planner", actions=[imposter], skills=[skill])
    with pytest.raises(ConfigError, match="two skills named 'budgeting'"):
        Agent("planner", skills=[skill, in_python(tmp_path)])


def test_a_file_is_read_in_bounded_parts(tmp_path: Path) -> None:
    skill = in_python(tmp_path, limits=SkillLimits(max_read_chars=200))
    first = skill.read("references/rates.md")
    assert (first["offset"], first["next"], first["chars"]) == (0, 200, 300)
    rest = skill.read("references/rates.md", first["next"])
    assert first["text"] + rest["text"] == "0123456789" * 30
    assert "next" not in rest
    assert skill.read("references/rates.md", 5_000)["text"] == ""


@pytest.mark.parametrize(
    "path",
    [
        "SKILL.md",
        "../secret.txt",
        "references/../../secret.txt",
        "references/../references/rates.md",
        "./references/rates.md",
        "/etc/passwd",
        "..%2fsecret.txt",
        "C:\\secret.txt",
        "references",
        "",
        "references/rates.md\0",
        "References/Rates.md",
        "x" * 5_000,
    ],
)
def test_only_listed_files_are_ever_opened(tmp_path: Path, path: str) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    with pytest.raises(ActionError, match="has no file") as caught:
        in_python(tmp_path).read(path)
    assert len(str(caught.value)) < 400


def test_a_file_that_changed_became_a_link_or_went_is_not_read(tmp_path: Path) -> None:
    skill = in_python(tmp_path)
    path = tmp_path / "budgeting/references/rates.md"
    (tmp_path / "secret.txt").write_text("secret")
    path.write_text("changed")
    with pytest.raises(ActionError, match="has changed since"):
        skill.read("references/rates.md")
    path.unlink()
    path.symlink_to(tmp_path / "secret.txt")
    with pytest.raises(ActionError, match="has changed since"):
        skill.read("references/rates.md")
    path.unlink()
    with pytest.raises(ActionError, match="cannot be read"):
        skill.read("references/rates.md")


def test_a_file_that_is_no_text_is_named_so(tmp_path: Path) -> None:
    filled(tmp_path, **{"budgeting/logo.png": b"\x89PNG\xff"})
    with pytest.raises(ActionError, match=r"logo.png is no text \(5 bytes\)"):
        in_python(tmp_path).read("logo.png")


def test_an_empty_lock_knows_nothing() -> None:
    assert Lock().hashes == {}
