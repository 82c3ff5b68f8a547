from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

from loopagent.errors import ConfigError
from loopagent.project import Project, load_project
from loopagent.project.files import Files
from tests.folders import filled


ACTIONS = '''
from loopagent import action

@action(effects="read")
def search_places(query: str, limit: int = 5) -> list[str]:
    """Search places."""
    return [query] * limit

@action(name="mail.send", effects="external")
async def send(to: str) -> str:
    """Send a mail."""
    return to
'''
AGENT = """\
apiVersion: loopagent/v1
kind: Agent
name: trip-planner
description: Plans day trips.
model: openai:gpt-5-mini
instructions: |
  Plan it.
actions: [search_places, mail.send]
payload:
  schema: {type: object, required: [stops]}
  initial: {stops: []}
  read: ["*"]
  write: ["stops.*", 'log["x.y"]:add']
approval: {write: auto}
limits: {maxTurns: 20, maxSeconds: 60}
completion: {requireTasksDone: true, minCalls: {search_places: 1}}
"""


def load(folder: Path, **options: Any) -> Project:
    return load_project(folder, env={}, **options)


def complaints(folder: Path, **options: Any) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(folder, **options)
    problems = caught.value.problems
    assert problems
    assert f"{len(problems)} problem" in str(caught.value)
    return [one.removeprefix(f"{folder}/") for one in problems]


def about(folder: Path, agent: str, *, suffix: str = "yaml") -> list[str]:
    """Complaints about one agent file, beside the usual actions."""
    name = f"agents/a.agent.{suffix}"
    found = complaints(filled(folder, **{name: agent, "actions/a.py": ACTIONS}))
    assert all(re.match(rf"{re.escape(name)}:\d+:\d+: \S", one) for one in found), found
    return [one.removeprefix(f"{name}:") for one in found]


# --- what works ------------------------------------------------------------------------------------


def test_a_whole_project(tmp_path: Path) -> None:
    files: dict[str, str] = {
        "loopagent.toml": 'model = "scripted:x.jsonl"\ndb = "runs.db"\n',
        "actions/places.py": ACTIONS,
        "agents/trip-planner.agent.yaml": AGENT,
        "agents/other.agent.json": '{"name": "other", "actions": []}',
        "agents/third.agent.yml": "name: third\n",
        "instructions/b.md": "Second.\n",
        "instructions/a.md": "---\nenabled: true\ntags: [x]\n---\n\nFirst.\n",
        "instructions/c.md": "---\nenabled: false\n---\nNever.",
        "instructions/d.md": "  \n",
        "notes.txt": "ignored",
    }
    project = load(filled(tmp_path, **files))
    assert project.folder == tmp_path
    assert list(project.actions) == ["search_places", "mail.send"]
    assert list(project.agents) == ["other", "third", "trip-planner"]
    assert project.instructions == ("First.", "Second.")
    assert (project.settings.model, project.settings.db) == ("scripted:x.jsonl", "runs.db")
    agent = project.agents["trip-planner"]
    assert list(agent.actions) == ["search_places", "mail.send"]
    spec = agent.spec
    assert spec.instructions == "Plan it.\n"
    assert spec.standing == ("First.", "Second.")
    assert [one.name for one in spec.actions] == ["search_places", "mail.send"]
    assert spec.payload.initial == {"stops": []}
    assert spec.payload.write == ("stops.*", 'log["x.y"]:add')
    assert (spec.limits.max_turns, spec.limits.max_seconds) == (20, 60.0)
    assert (spec.approval.write, spec.approval.external) == ("auto", "ask")
    assert spec.completion.min_calls == {"search_places": 1}
    assert project.actions["search_places"]("x", limit=2) == ["x", "x"]


def test_an_empty_folder_is_an_empty_project(tmp_path: Path) -> None:
    project = load(tmp_path)
    assert (project.agents, project.actions, project.instructions) == ({}, {}, ())


def test_a_folder_that_is_not_there_says_how_to_make_one(tmp_path: Path) -> None:
    for path in (tmp_path / "nowhere", filled(tmp_path, file="x") / "file"):
        with pytest.raises(ConfigError, match="loopagent init"):
            load(path)


def test_instructions_may_stand_in_a_file_of_their_own(tmp_path: Path) -> None:
    files = {
        "agents/a.agent.yaml": "name: a\ninstructionsFile: ../texts/a.md",
        "texts/a.md": "Do it.",
    }
    assert load(filled(tmp_path, **files)).agents["a"].spec.instructions == "Do it."


def test_agents_md_beside_the_agents_is_an_instruction_sorted_by_name(tmp_path: Path) -> None:
    files = {"agents/AGENTS.md": "Beside.", "instructions/B.md": "B.", "instructions/0.md": "0."}
    assert load(filled(tmp_path, **files)).instructions == ("0.", "Beside.", "B.")


def test_windows_line_ends_and_a_byte_order_mark(tmp_path: Path) -> None:
    crlf = {
        "agents/a.agent.yaml": b"\xef\xbb\xbfname: a\r\ninstructions: |\r\n  one\r\n  two\r\n",
        "instructions/a.md": b"---\r\nenabled: false\r\n---\r\nNo.",
        "instructions/b.md": b"Yes.\r\nMore.",
        "loopagent.toml": b'\xef\xbb\xbfdb = "x"\r\n',
    }
    project = load(filled(tmp_path, **crlf))
    assert project.agents["a"].spec.instructions == "one\ntwo\n"
    assert project.instructions == ("Yes.\nMore.",)
    assert project.settings.db == "x"


def test_two_projects_with_files_of_one_name_do_not_meet(tmp_path: Path) -> None:
    first = load(filled(tmp_path / "one", **{"actions/a.py": ACTIONS}))
    second = load(
        filled(tmp_path / "two", **{"actions/a.py": ACTIONS.replace("Search places", "Other")})
    )
    assert first.actions["search_places"].spec.description == "Search places."
    assert second.actions["search_places"].spec.description == "Other."


def test_an_action_imported_by_a_second_file_is_the_same_action(tmp_path: Path) -> None:
    again = "import sys\nsearch = next(m for n, m in sys.modules.items() if n.endswith('_first')).search_places\n"
    project = load(filled(tmp_path, **{"actions/first.py": ACTIONS, "actions/second.py": again}))
    assert list(project.actions) == ["search_places", "mail.send"]


def test_modules_of_actions_may_define_typed_parameters(tmp_path: Path) -> None:
    text = '''
from __future__ import annotations
from dataclasses import dataclass
from loopagent import action

@dataclass
class Place:
    name: str

@action
def visit(place: Place) -> str:
    """Visit."""
    return place.name
'''
    spec = load(filled(tmp_path, **{"actions/a.py": text})).actions["visit"].spec
    assert "Place" in str(spec.parameters)


# --- settings --------------------------------------------------------------------------------------


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    filled(tmp_path, **{"loopagent.toml": 'model = "scripted:a"\ndb = "a.db"\n'})
    project = load_project(tmp_path, env={"LOOPAGENT_DB": "b.db", "LOOPAGENT_MODEL": "", "DB": "c"})
    assert (project.settings.model, project.settings.db) == ("scripted:a", "b.db")


def test_the_environment_wins_inside_of_tables_too(tmp_path: Path) -> None:
    text = "[access]\nburst = 9\nsession_hours = 3\n[retention]\nrunDays = 7\n"
    filled(tmp_path, **{"loopagent.toml": text})
    names = {"ACCESS_SESSION_HOURS": "4", "RETENTION_LOG_DAYS": "2", "EGRESS_PORTS": "80, 8443"}
    names |= {"ACCESS_EXCLUSIVE_CLAIMS": "true", "ALLOWED_MODULES": "a.b,c", "LIBRARY_MODELS": ""}
    env = {f"LOOPAGENT_{name}": value for name, value in names.items()}
    found = load_project(tmp_path, env=env).settings
    access = found.access
    assert (access.burst, access.session_hours, access.exclusive_claims) == (9, 4.0, True)
    assert (found.retention.run_days, found.retention.log_days) == (7.0, 2.0)
    assert (found.egress.ports, found.allowed_modules) == ((80, 8443), ("a.b", "c"))
    assert found.library.models == ()


def test_the_variable_is_named_that_gave_what_is_wrong(tmp_path: Path) -> None:
    filled(tmp_path, **{"loopagent.toml": "access = 3\n"})
    names = {"ACCESS_BURST": "1", "EGRESS_PORTS": "80,99999", "RETENTION_LOG_DAYS": "soon"}
    with pytest.raises(ConfigError) as caught:
        load_project(tmp_path, env={f"LOOPAGENT_{name}": value for name, value in names.items()})
    text = "\n".join(caught.value.problems)
    assert "loopagent.toml:1:1: access: expected an object, got number 3" in text
    assert "$LOOPAGENT_EGRESS_PORTS:1:1: egress.ports[1]: " in text
    assert "$LOOPAGENT_RETENTION_LOG_DAYS:1:1: retention.logDays: expected a number" in text


def test_the_environment_of_the_process_counts_when_none_is_given(tmp_path: Path) -> None:
    filled(tmp_path, **{"loopagent.toml": 'db = "a.db"\n'})
    assert load_project(tmp_path).settings.db == "a.db"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("db = ", "loopagent.toml:1:1: (file): not TOML: Invalid value"),
        ('db = "a"\ndb = "b"', "loopagent.toml:2:1: (file): not TOML: Cannot overwrite a value"),
        ('model = "a', "loopagent.toml:1:1: (file): not TOML"),
        ("\nx = ]", "loopagent.toml:2:5: (file): not TOML: Invalid value"),
        ("\nmodle = 'x'", "loopagent.toml:2:1: modle: unknown key; did you mean model?"),
        (
            "\n\n  zzz = 1",
            "loopagent.toml:3:3: zzz: unknown key (known: access, allowedModules, approval, ",
        ),
        (
            "[table]\nx = 1",
            "loopagent.toml:1:2: table: unknown key (known: access, allowedModules, approval, ",
        ),
        ("db = 5", "loopagent.toml:1:1: db: expected text, got number 5"),
        ("'mod l' = 5", 'loopagent.toml:1:1: ["mod l"]: unknown key; did you mean model?'),
        ('\n"mo\\u0064" = 1', "loopagent.toml:1:1: mod: unknown key"),
        ("db = " + "[" * 5_000, "loopagent.toml:1:1: (file): nested too deeply"),
    ],
)
def test_broken_settings(tmp_path: Path, text: str, expected: str) -> None:
    (problem,) = complaints(filled(tmp_path, **{"loopagent.toml": text}))
    assert problem.startswith(expected)


# --- agents ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("agent", "expected"),
    [
        ("{}", "1:1: name: required, but missing"),
        ("name: a\nmaxTurns: 5", "2:1: maxTurns: unknown key"),
        ("name: a\nlimts: {}", "2:1: limts: unknown key; did you mean limits?"),
        (
            "name: a\nlimits:\n  maxTurn: 5",
            "3:3: limits.maxTurn: unknown key; did you mean maxTurns",
        ),
        (
            "name: a\nlimits: {breaker: {sameCal: 5}}",
            "2:20: limits.breaker.sameCal: unknown key; did you mean sameCall?",
        ),
        ("name: a\npayload: {reed: []}", "2:11: payload.reed: unknown key; did you mean read?"),
        (
            "name: a\ninstructionFile: x",
            "2:1: instructionFile: unknown key; did you mean instructionsFile",
        ),
        ("name: 5", "1:1: name: expected text, got number 5"),
        (
            "name: a\nlimits: {maxTurns: 0}",
            "2:10: limits.maxTurns: expected a number of at least 1, got number 0",
        ),
        (
            "name: a\nlimits: {maxTurns: '5'}",
            '2:10: limits.maxTurns: expected a whole number, got text "5"',
        ),
        (
            "name: a\nlimits: {maxTurns: 1.5}",
            "2:10: limits.maxTurns: expected a whole number, got number 1.5",
        ),
        ("name: a\nlimits: 5", "2:1: limits: expected an object, got number 5"),
        ("name: a\nlimits:", "2:1: limits: expected an object, got null"),
        (
            "name: a\nallowModelOverride: yes",
            '2:1: allowModelOverride: expected true or false, got text "yes"',
        ),
        (
            "name: a\napproval: {write: always}",
            "2:12: approval.write: expected 'auto', 'ask' or 'never', got text \"always\"",
        ),
        ("name: a\nautonomy: robot", "2:1: autonomy: expected 'interactive' or 'autonomous'"),
        ("name: a\nfallbackModels: openai:x", "2:1: fallbackModels: expected"),
        ("name: a\npayload: {write: [5]}", "2:19: payload.write[0]: expected text, got number 5"),
        (
            "name: Trip Planner",
            "1:1: name: 'Trip Planner' is no name; use lower case letters, digits and single hyphens",
        ),
        ("name: a--b", "1:1: name: 'a--b' is no name"),
        ("name: ä", "1:1: name: 'ä' is no name"),
        ("name: ''", "1:1: name: '' is no name"),
        ("name: " + "a" * 101, "1:1: name: 'aaa"),
        ("apiVersion: loopagent/v2\nname: a", "1:1: apiVersion: must be loopagent/v1"),
        ("name: a\nkind: Action", "2:1: kind: must be Agent"),
        (
            "name: a\nskills: {activation: always}",
            "2:10: skills.activation: expected 'none', 'requested' or 'auto'",
        ),
        ("name: a\nstanding: [x]", "2:1: standing: is made of the project's instructions/*.md"),
        ("name: a\nmodel: gpt-5", "2:1: model: 'gpt-5' is no model; write provider:name"),
        ("name: a\nfallbackModels: ['openai:x', y]", "2:30: fallbackModels[1]: 'y' is no model"),
        ("name: a\nactions: serch_places", "2:1: actions: must be a list of names"),
        (
            "name: a\nactions:\n  - search_places\n  - serch_places",
            "4:5: actions[1]: there is no action 'serch_places'; did you mean search_places?",
        ),
        (
            "name: a\nactions: [xyz]",
            "2:11: actions[0]: there is no action 'xyz' (known: mail.send, search_places)",
        ),
        ("name: a\nactions: [mail.send, mail.send]", "2:22: actions[1]: mail.send is listed twice"),
        ("name: a\nactions: [5]", "2:11: actions[0]: must be the name of an action"),
        ("name: a\nactions: [{name: x}]", "2:11: actions[0]: must be the name of an action"),
        (
            "name: a\npayload: {write: [a, 'a..b']}",
            "2:22: payload.write[1]: 'a..b': not a path (at character 3)",
        ),
        (
            "name: a\npayload: {write: ['a:ad']}",
            "2:19: payload.write[0]: 'a:ad': unknown operation 'ad'; did you mean add?",
        ),
        (
            "name: a\npayload: {read: ['a:add']}",
            "2:18: payload.read[0]: operations mean nothing for reading",
        ),
        (
            "name: a\npayload: {schema: {type: objekt}}",
            "2:11: payload.schema: is no valid JSON Schema",
        ),
        (
            "name: a\nactions: [search_places]\ncompletion: {minCalls: {serch_places: 1}}",
            "3:25: completion.minCalls.serch_places: the agent has no such action; did you mean search_places?",
        ),
        (
            "name: a\nactions: [search_places]\ncompletion: {minCalls: {search_places: -1}}",
            "3:25: completion.minCalls.search_places: must be 0 or more",
        ),
        ("name: a\ninstructionsFile: 5", "2:1: instructionsFile: must be the name of a file"),
        ('name: a\ninstructionsFile: "a\\0b"', "2:1: instructionsFile: must be the name of a file"),
        ("name: a\ninstructionsFile: " + "x" * 300, "2:1: instructionsFile: there is no file"),
        ("name: a\ninstructionsFile: .", "2:1: instructionsFile: there is no file"),
        ("name: a\ninstructionsFile: nope.md", "2:1: instructionsFile: there is no file"),
        (
            "name: a\ninstructionsFile: ../../../etc/passwd",
            "2:1: instructionsFile: '../../../etc/passwd' lies outside the project",
        ),
        ("name: a\ninstructions: x\ninstructionsFile: a.md", "3:1: instructionsFile: give either"),
        ("", "1:1: (file): is empty"),
        ("- a", "1:1: (file): is no object"),
        ("name: a\nname: b", "2:1: name: this key stands twice, first in line 1"),
        ("name: a\n  x: 1", "2:4: not YAML"),
        ("name: !env NAME", "1:7: name: the tag !env is not supported"),
    ],
)
def test_broken_agents(tmp_path: Path, agent: str, expected: str) -> None:
    (problem,) = about(tmp_path, agent)
    assert problem.startswith(expected), problem


@pytest.mark.parametrize(
    ("agent", "expected"),
    [
        ('{"name": "a",\n "limts": {}}', "2:2: limts: unknown key; did you mean limits?"),
        (
            '{"name": "a",\n\t"limits": {"maxTurns": "x"}}',
            "2:13: limits.maxTurns: expected a whole number",
        ),
        ('{"name": "a"', "1:13: not JSON"),
        ('{"name": "a", "name": "a"}', "1:15: name: this key stands twice"),
        ("name: a", "1:1: not JSON"),
        ("null", "1:1: (file): is no object"),
    ],
)
def test_broken_agents_in_json(tmp_path: Path, agent: str, expected: str) -> None:
    (problem,) = about(tmp_path, agent, suffix="json")
    assert problem.startswith(expected), problem


def test_everything_wrong_with_a_project_is_said_at_once(tmp_path: Path) -> None:
    files = {
        "loopagent.toml": "modle = 'x'",
        "actions/bad.py": "x = (",
        "agents/a.agent.yaml": "name: A\nlimits: {maxTurns: 0, maxSecond: 1}\nactions: [nope]\nskills: {x: 1}\n",
        "agents/b.agent.yaml": "name: [",
        "agents/c.agent.yaml": "name: c\nmodel: x\npayload: {read: ['['], write: [']']}",
        "instructions/a.md": "---\nenabled: maybe\n---\nx",
    }
    found = [
        re.sub(r":\d+:\d+", "", one).split(": ")[:2]
        for one in complaints(filled(tmp_path, **files))
    ]
    assert found == [
        ["loopagent.toml", "modle"],
        ["actions/bad.py", "(file)"],
        ["instructions/a.md", "enabled"],
        ["agents/a.agent.yaml", "name"],
        ["agents/a.agent.yaml", "limits.maxTurns"],
        ["agents/a.agent.yaml", "limits.maxSecond"],
        ["agents/a.agent.yaml", "actions[0]"],
        ["agents/a.agent.yaml", "skills.x"],
        ["agents/b.agent.yaml", "not YAML"],
        ["agents/c.agent.yaml", "model"],
        ["agents/c.agent.yaml", "payload.read[0]"],
        ["agents/c.agent.yaml", "payload.write[0]"],
    ]


def test_two_agents_of_one_name(tmp_path: Path) -> None:
    files = {"agents/a.agent.yaml": "name: x", "agents/b.agent.json": '{\n"name": "x"}'}
    (problem,) = complaints(filled(tmp_path, **files))
    assert problem.startswith("agents/b.agent.json:2:1: name: another agent is named x too, in ")
    assert "agents/a.agent.yaml" in problem


def test_agent_files_that_would_be_ignored(tmp_path: Path) -> None:
    files = {"agents/a.yaml": "name: a", "agents/b.json": "{}", "agents/README.md": "fine"}
    assert complaints(filled(tmp_path, **files)) == [
        "agents/a.yaml:1:1: (file): would be ignored; name it a.agent.yaml",
        "agents/b.json:1:1: (file): would be ignored; name it b.agent.json",
    ]


# --- files -----------------------------------------------------------------------------------------


def test_files_that_are_not_utf_8(tmp_path: Path) -> None:
    latin = "name: a\ndescription: Größe".encode("latin-1")
    names = ["agents/a.agent.yaml", "instructions/a.md", "loopagent.toml", "actions/a.py"]
    found = complaints(filled(tmp_path, **dict.fromkeys(names, latin)))
    assert sorted(found) == sorted(
        f"{name}:2:16: (file): is not UTF-8 (byte 23); save it as UTF-8" for name in names
    )


def test_files_that_are_too_large(tmp_path: Path) -> None:
    names = ["agents/a.agent.yaml", "instructions/a.md", "loopagent.toml", "actions/a.py"]
    filled(tmp_path, **dict.fromkeys(names, "#" * 101))
    found = complaints(tmp_path, max_file_bytes=100)
    assert sorted(found) == sorted(
        f"{name}:1:1: (file): has 101 bytes, 100 are allowed; split it" for name in names
    )


def test_what_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "agents" / "folder.agent.yaml").mkdir(parents=True)
    (tmp_path / "loopagent.toml").mkdir()
    (tmp_path / "agents" / "gone.agent.yaml").symlink_to(tmp_path / "nowhere")
    assert complaints(tmp_path) == [
        "loopagent.toml:1:1: (file): is not a regular file",
        "agents/gone.agent.yaml:1:1: (file): is not a regular file",
    ]


def test_links_in_a_circle(tmp_path: Path) -> None:
    filled(tmp_path, **{"agents/a.agent.yaml": "name: a\ninstructionsFile: x.md"})
    (tmp_path / "agents" / "x.md").symlink_to(tmp_path / "agents" / "x.md")
    (problem,) = complaints(tmp_path)
    assert problem.startswith("agents/a.agent.yaml:2:1: instructionsFile: there is no file")


def test_a_file_that_the_system_cannot_read_is_a_complaint(tmp_path: Path) -> None:
    files = Files(tmp_path, 100)
    assert files.text(tmp_path / ("x" * 300)) is None
    assert files.problems[0].endswith(":1:1: (file): cannot be read: File name too long")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("---\nenabled: maybe\n---\nx", "2:1: enabled: must be true or false"),
        ("---\nenable: false\n---\nx", "2:1: enable: unknown key; did you mean enabled?"),
        ("---\na: 1\nenabled: [\n---\nx", "4:1: not YAML"),
        ("---\n- x\n---\nx", "1:1: (file): is no object"),
        ("---\nenabled: true\nenabled: false\n---\nx", "3:1: enabled: this key stands twice"),
    ],
)
def test_broken_front_matter(tmp_path: Path, text: str, expected: str) -> None:
    (problem,) = complaints(filled(tmp_path, **{"instructions/a.md": text}))
    assert problem.removeprefix("instructions/a.md:").startswith(expected), problem


@pytest.mark.parametrize(
    ("text", "body"),
    [
        ("---\n---\nx", "x"),
        ("---\nname: y\n---", None),
        ("x\n---\nenabled: false\n---\n", "x\n---\nenabled: false\n---"),
        ("---\nnever closed", "---\nnever closed"),
        ("--- \nenabled: true\n---\t\nx\n---\ny", "x\n---\ny"),
    ],
)
def test_front_matter(tmp_path: Path, text: str, body: str | None) -> None:
    project = load(filled(tmp_path, **{"instructions/a.md": text}))
    assert project.instructions == (() if body is None else (body,))


# --- actions ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = 1\ny = (", "2:5: (file): cannot be imported: SyntaxError: "),
        (
            "import nowhere_at_all",
            "1:1: (file): cannot be imported: ModuleNotFoundError: No module named",
        ),
        ("def f():\n    return 1 / 0\n\nf()", "2:1: (file): cannot be imported: ZeroDivisionError"),
        ("\nraise SystemExit(3)", "2:1: (file): cannot be imported: SystemExit: 3"),
        (
            "from loopagent import action\n\n@action\ndef f(x: 'Nope') -> str:\n    'Doc.'\n",
            "3:1: (file): cannot be imported: ConfigError: action f",
        ),
        (
            "from loopagent import action\n\nclass A: ...\n\naction(A)",
            "5:1: (file): cannot be imported: ConfigError",
        ),
    ],
)
def test_broken_action_files(tmp_path: Path, text: str, expected: str) -> None:
    before = set(sys.modules)
    (problem,) = complaints(filled(tmp_path, **{"actions/a.py": text}))
    assert problem.removeprefix("actions/a.py:").startswith(expected), problem
    assert not [one for one in set(sys.modules) - before if one.startswith("loopagent_actions_")]


def test_two_actions_of_one_name(tmp_path: Path) -> None:
    files = {"actions/a.py": ACTIONS, "actions/b.py": ACTIONS}
    found = complaints(filled(tmp_path, **files))
    assert [re.sub(r", in .*", "", one) for one in found] == [
        "actions/b.py:4:1: search_places: another action is named search_places too",
        "actions/b.py:9:1: mail.send: another action is named mail.send too",
    ]
    assert "actions/a.py:4" in found[0]


def test_client_tools_are_names_or_whole_definitions(tmp_path: Path) -> None:
    agent = """\
name: a
clientTools:
  - open-map
  - {name: pick, effects: read, result: {type: string}, timeoutMs: 5000}
"""
    spec = load(filled(tmp_path, **{"agents/a.agent.yaml": agent})).agents["a"].spec
    assert [one.name for one in spec.client_tools] == ["open-map", "pick"]
    assert spec.client_tools[0].parameters == {"type": "object"}
    assert spec.client_tools[1].timeout_ms == 5_000


@pytest.mark.parametrize(
    ("tools", "expected"),
    [
        ("[7]", "3:3: clientTools[0]: expected an object, got number 7"),
        ("[{name: t, timeoutMs: 5}]", "3:13: clientTools[0].timeoutMs: expected a number of at"),
        ("[{name: t, parameters: {type: array}}]", "3:13: clientTools[0].parameters: the schema"),
        ("[{name: t, result: {type: x}}]", "3:13: clientTools[0].result: the schema of the result"),
        ("[{name: t, efects: read}]", "3:13: clientTools[0].efects: unknown key; did you mean"),
        ("[open map, open-map]", "2:1: clientTools: 'open-map' and 'open map' are the same name"),
    ],
)
def test_broken_client_tools(tmp_path: Path, tools: str, expected: str) -> None:
    (problem,) = about(tmp_path, f"name: a\nclientTools:\n {tools}\n")
    assert problem.startswith(expected), problem
