"""Skills in whole runs: a project folder, an app, a server, the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from loopagent import Agent, App, action
from loopagent.models.scripted import ScriptedModel
from loopagent.project import load_project, load_skill
from tests.cli.commands import loopagent, process
from tests.http.server import serving


pytestmark = pytest.mark.anyio
ACTIONS = '''
from loopagent import action

@action(effects="read")
def convert(amount: float) -> float:
    """Convert an amount."""
    return amount * 2
'''
SKILL = """\
---
name: budgeting
description: Plans a budget.
metadata: {loopagent-actions: convert, loopagent-activation: auto}
---
Read references/rates.md first.
"""
AGENT = """\
name: planner
model: scripted:script.jsonl
skills: {activation: auto, names: [budgeting]}
"""
READ = {"name": "read_skill_file", "params": {"skill": "budgeting", "path": "references/rates.md"}}


def step(kind: str, **body: Any) -> dict[str, Any]:
    return {"taskComplete": False, "nextStep": {"type": kind, **body}}


def calls(*actions: dict[str, Any]) -> dict[str, Any]:
    return step("Actions", actions=list(actions))


ACTIVATE = step("Skill", skills=[{"name": "budgeting", "reason": "Money."}])
EACH = step(
    "ForEach",
    forEach={
        "collectionPath": "payload.amounts",
        "action": {"name": "convert", "params": {"amount": "{{ item }}"}},
    },
)
DONE = {"taskComplete": True, "message": "Done."}
SCRIPT = [ACTIVATE, calls(READ, {"name": "convert", "params": {"amount": 3}}), EACH, DONE]


def project(folder: Path, script: list[Any]) -> Path:
    files = {
        "actions/a.py": ACTIONS,
        "agents/planner.agent.yaml": AGENT,
        "skills/budgeting/SKILL.md": SKILL,
        "skills/budgeting/references/rates.md": "The rate is 5 %.",
        "script.jsonl": "\n".join(json.dumps(one) for one in script) + "\n",
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def inside(*arguments: str) -> tuple[int, str]:
    """Exit code and everything that was said."""
    done = loopagent(*arguments)
    return done.returncode, done.stdout + done.stderr


async def events_of(app: App, run_id: str) -> list[dict[str, Any]]:
    return [one async for one in app.events(run_id, live=False)]


def one(events: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    (found,) = [event for event in events if event["type"] == kind]
    return found


async def test_a_run_activates_a_skill_reads_its_file_and_calls_its_action(tmp_path: Path) -> None:
    folder = project(tmp_path, SCRIPT)
    assert process("skills", "review", "--all", "--yes", "--project", str(folder)).returncode == 0
    loaded = load_project(folder, env={})
    assert loaded.warnings == []
    app = App(agents=loaded.agents.values(), store=f"sqlite:///{tmp_path}/r.db", base_dir=folder)
    async with app:
        run = await app.start("planner", "Plan it.", payload={"amounts": [1, 2]})
        view = await app.wait(run.id, timeout_seconds=20)
        events = await events_of(app, run.id)
        transcript = await app.store.transcript(run.id)
    assert view.public()["status"] == "completed"
    assert view.public()["skills"] == [{"name": "budgeting", "turn": 1, "activatedBy": "model"}]
    activated = one(events, "skill.activated")
    assert activated["decidedBy"] == "model"
    assert activated["data"]["hash"] == loaded.skills["budgeting"].spec.hash
    results = [event["data"] for event in events if event["type"] == "action.completed"]
    results.sort(key=lambda done: done["action"], reverse=True)  # they end in any order
    assert results[0]["result"] == {
        "path": "references/rates.md",
        "offset": 0,
        "text": "The rate is 5 %.",
        "chars": 16,
    }
    assert [(done["action"], done.get("skill")) for done in results] == [
        ("read_skill_file", None),
        ("convert", "budgeting"),
        ("convert", "budgeting"),
        ("convert", "budgeting"),
    ]
    assert sorted(done["result"] for done in results[1:]) == [2, 4, 6]
    assert [message.kind for message in transcript].count("skill") == 1


async def test_a_run_keeps_what_was_pinned_and_reads_no_file_of_other_content(
    tmp_path: Path,
) -> None:
    folder = project(tmp_path, [])
    ask = step("Chat") | {"message": "Ready?"}
    script = [ACTIVATE, ask, calls(READ), DONE]

    def host(model: ScriptedModel) -> App:
        skill = load_skill(str(folder / "skills/budgeting"), actions=[convert])
        agent = Agent("planner", model=model, skills=[skill], skill_activation="auto")
        return App(agents=[agent], store=f"sqlite:///{tmp_path}/r.db")

    @action(effects="read")
    def convert(amount: float) -> float:
        """Convert an amount."""
        return amount

    async with host(ScriptedModel(script)) as app:
        run = await app.start("planner", "Plan it.")
        await app.wait(run.id, timeout_seconds=20)
        pinned = (await app.get(run.id)).state.spec.skills.available[0].hash
    (folder / "skills/budgeting/references/rates.md").write_text("The rate is 99 %.")
    async with host(ScriptedModel(script)) as app:
        await app.post(run.id, "Yes.")
        view = await app.wait(run.id, timeout_seconds=20)
        events = await events_of(app, run.id)
    assert view.public()["status"] == "completed"
    assert view.state.spec.skills.available[0].hash == pinned
    done = one(events, "action.completed")["data"]
    assert not done["ok"]
    assert "has changed since this run began" in done["error"]["message"]


async def test_a_person_activates_over_http(tmp_path: Path) -> None:
    ask = step("Chat") | {"message": "Which year?"}
    folder = project(tmp_path, [ask, DONE])
    agent = AGENT.replace("activation: auto", "activation: requested")
    (folder / "agents/planner.agent.yaml").write_text(agent)
    process("skills", "review", "budgeting", "--yes", "--project", str(folder))
    with serving(folder, tmp_path / "r.db") as (client, _):
        (skill,) = client.get("/agents/planner").json()["skills"]
        assert skill == {
            "name": "budgeting",
            "description": "Plans a budget.",
            "byModel": False,
        }
        body = {"agent": "planner", "message": "Plan it."}
        run = client.post("/runs", params={"wait": 10}, json=body).json()
        assert run["skills"] == []
        said = {"text": "/Budgeting for 2027"}
        client.post(f"/runs/{run['id']}/messages", json=said)
        run = client.get(f"/runs/{run['id']}").json()
        assert run["skills"] == [{"name": "budgeting", "turn": 1, "activatedBy": "user"}]


def test_the_command_line_lists_shows_and_reviews(tmp_path: Path) -> None:
    where = ("--project", str(project(tmp_path, SCRIPT)))

    def listed() -> dict[str, Any]:
        (row,) = json.loads(inside("skills", "list", *where, "--json")[1])
        return dict(row)

    assert listed()["state"] == "new"
    assert listed()["acceptedBy"] == ["planner"]
    code, said = inside("agents", "lint", *where)
    assert code == 0
    assert "is new; nobody can activate it" in " ".join(said.split())
    code, said = inside("skills", "review", "budgeting", *where)
    assert code == 2
    assert "say --yes" in said
    assert listed()["state"] == "new"
    code, said = inside("skills", "review", "budgeting", "--yes", *where)
    assert code == 0
    assert "convert" in said
    assert listed()["state"] == "reviewed"
    assert "nothing changed" in inside("skills", "review", "budgeting", "--yes", *where)[1]
    (tmp_path / "skills/budgeting/references/rates.md").write_text("The rate is 6 %.")
    assert listed()["state"] == "changed"
    shown = json.loads(inside("skills", "show", "budgeting", *where, "--json")[1])
    assert shown["sinceReview"] == {"changed": ["references/rates.md"]}
    assert shown["actions"] == {"convert": "read"}
    assert shown["instructions"] == "Read references/rates.md first."
    assert inside("skills", "review", "--all", "--yes", *where)[0] == 0
    assert listed()["state"] == "reviewed"
    assert inside("skills", "review", "budgeting", "--revoke", *where)[0] == 0
    assert listed()["state"] == "new"
    assert "budgeting" in inside("skills", "list", *where)[1]
    assert "Read references/rates.md first." in inside("skills", "show", "budgeting", *where)[1]


def test_a_skill_that_nobody_reviewed_is_refused_in_a_whole_run(tmp_path: Path) -> None:
    where = ("--project", str(project(tmp_path, [DONE])))
    done = process("run", "planner", "/budgeting Plan it.", *where, "--events")
    assert done.returncode == 0
    assert '"skill.refused"' in done.stdout
    assert '"skill.activated"' not in done.stdout


def test_the_command_line_refuses_what_makes_no_sense(tmp_path: Path) -> None:
    where = ("--project", str(project(tmp_path, SCRIPT)))
    for arguments, expected in (
        (("show", "nothing"), "there is no skill 'nothing'; known: budgeting"),
        (("review", "nothing"), "there is no skill 'nothing'"),
        (("review",), "name the skills, or use --all"),
        (("review", "budgeting", "--all"), "name the skills, or use --all"),
        (("review", "--all", "--revoke"), "name the skills, or use --all"),
    ):
        code, said = inside("skills", *arguments, *where)
        assert code == 2
        assert expected in said
