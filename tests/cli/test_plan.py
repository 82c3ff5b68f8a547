"""Plans from a terminal: the card, deciding it by commands, deciding it where it is shown."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from loopagent.app import App
from loopagent.cli.decide import changed_text
from loopagent.errors import ConfigError
from loopagent.project import load_project
from tests.cli.commands import loopagent
from tests.cli.terminal import terminal
from tests.http.server import make_project


def within(project: Path, db: Path, work: Callable[[App], Awaitable[Any]]) -> Any:
    """Do something with the project's app, as another client of the same database would."""

    async def opened() -> Any:
        loaded = load_project(project)
        agents = loaded.agents.values()
        async with App(
            agents=agents, store=f"sqlite:///{db}", base_dir=project, recover=False
        ) as app:
            return await work(app)

    return asyncio.run(opened())


async def open_request(app: App) -> dict[str, Any]:
    rows, _ = await app.requests()
    return {"id": rows[0].id, **rows[0].body}


async def second_plan(app: App) -> dict[str, Any]:
    """Start a run and reject its first plan."""
    view = await app.start("planner", "Go.", plan_mode=True)
    await app.wait(view.id)
    await app.answer((await open_request(app))["id"], decision="reject", by="human")
    await app.wait(view.id)
    return await open_request(app)


def test_a_plan_is_shown_and_rejected_by_commands(tmp_path: Path) -> None:
    project, db = str(make_project(tmp_path / "p")), str(tmp_path / "runs.db")
    where = ("--project", project, "--db", db)
    waiting = loopagent("run", "planner", "Go.", *where, "--plan", "--json")
    assert waiting.returncode == 3, waiting.stderr
    first = json.loads(waiting.stdout)["state"]["ask"]["requestId"]
    shown = loopagent("requests", "show", first, *where).stdout
    for text in ("Plan, revision 1", "1. Mail Ann.", "one mail", "mail (external)", "reject"):
        assert text in shown
    stale = loopagent("requests", "approve", first, *where, "--hash", "0" * 64)
    assert (stale.returncode, "stale" in stale.stderr) == (2, True)
    rejected = loopagent("requests", "reject", first, *where, "--feedback", "Bob, not Ann.")
    assert rejected.returncode == 3, rejected.stderr
    assert "Bob, not Ann." in rejected.stdout


def test_a_plan_and_a_call_are_edited_by_commands(tmp_path: Path) -> None:
    project, db = make_project(tmp_path / "p"), tmp_path / "runs.db"
    where = ("--project", str(project), "--db", str(db))
    card = within(project, db, second_plan)
    shown = loopagent("requests", "show", card["id"], *where).stdout
    assert "-1. Mail Ann.\n+1. Mail Bob." in shown
    (tmp_path / "plan.md").write_text("1. Mail Bob kindly.\n", encoding="utf-8")
    seen = ("--revision", "2", "--hash", card["contentHash"])
    file = ("--file", str(tmp_path / "plan.md"))
    edited = loopagent("requests", "edit", card["id"], *where, *file, *seen)
    assert edited.returncode == 3, edited.stderr
    assert "plan.edited" in edited.stdout
    call = within(project, db, open_request)
    done = loopagent("requests", "edit", call["id"], *where, "--file", "-", stdin='{"to": "Bob"}')
    assert done.returncode == 0, done.stderr
    assert "sent to Bob" in done.stdout


def test_a_changed_text_is_given_once_and_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes(b"\xe9")
    for file, text in (
        (None, None),
        ("a", "b"),
        (str(tmp_path / "none"), None),
        (str(tmp_path / "latin"), None),
    ):
        with pytest.raises(ConfigError):
            changed_text(file, text)
    assert changed_text(None, "a plan") == "a plan"


def test_a_plan_is_decided_where_it_is_shown(tmp_path: Path) -> None:
    project = make_project(tmp_path / "p")
    script = project / "scripts" / "planner.jsonl"
    script.write_text(script.read_text().replace("1. Mail Ann.", "1. Mail Ann.\\u001b[8m And Eve."))
    with terminal("run", "planner", "Go.", "--plan", "--project", str(project)) as person:
        person.answer("Approve this plan?", "n")
        person.answer("What should it know?", "Bob")
        person.answer("Approve this plan?", "w")
        person.answer("Approve this plan?", "e")
        person.answer("ends it.", "1. Mail Bob, please.\n.")
        person.answer("Approve? ", "y")
        seen = person.rest()
    assert "\x1b[8m" not in seen
    assert "1. Mail Ann.\\u001b[8m And Eve." in seen
    assert "+1. Mail Bob." in seen
    assert "Mailed as planned." in seen
