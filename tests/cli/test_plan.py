"""Plans from a terminal: the card, deciding it by commands, deciding it where it is shown."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.terminal import terminal
from tests.cli.test_cli import loopagent
from tests.http.server import make_project


def test_a_plan_is_shown_edited_and_rejected_by_commands(tmp_path: Path) -> None:
    project, db = str(make_project(tmp_path / "p")), str(tmp_path / "runs.db")
    where = ("--project", project, "--db", db)
    waiting = loopagent("run", "planner", "Go.", *where, "--plan", "--json")
    assert waiting.returncode == 3, waiting.stderr
    first = json.loads(waiting.stdout)["state"]["ask"]["requestId"]
    shown = loopagent("requests", "show", first, *where).stdout
    for text in ("Plan, revision 1", "1. Mail Ann.", "one mail", "mail (external)", "reject"):
        assert text in shown
    card = json.loads(loopagent("requests", "show", first, *where, "--json").stdout)
    stale = loopagent("requests", "approve", first, *where, "--hash", "0" * 64)
    assert (stale.returncode, "stale" in stale.stderr) == (2, True)
    rejected = loopagent("requests", "reject", first, *where, "--feedback", "Bob, not Ann.")
    assert rejected.returncode == 3, rejected.stderr
    assert "Bob, not Ann." in rejected.stdout
    assert "resolved: reject Bob" in loopagent("requests", "show", first, *where).stdout
    second = json.loads(loopagent("requests", "list", *where, "--json").stdout)[0]
    assert second["body"]["contentHash"] != card["body"]["contentHash"]
    assert (
        "-1. Mail Ann.\n+1. Mail Bob." in loopagent("requests", "show", second["id"], *where).stdout
    )
    for options in ((), ("--text", "a", "--file", "b"), ("--file", str(tmp_path / "none"))):
        assert loopagent("requests", "edit", second["id"], *where, *options).returncode == 2
    (tmp_path / "plan.md").write_text("1. Mail Bob kindly.\n", encoding="utf-8")
    seen = ("--revision", "2", "--hash", second["body"]["contentHash"])
    file = ("--file", str(tmp_path / "plan.md"))
    edited = loopagent("requests", "edit", second["id"], *where, *file, *seen)
    assert edited.returncode == 3, edited.stderr
    assert "plan.edited" in edited.stdout
    call = json.loads(loopagent("requests", "list", *where, "--json").stdout)[0]
    done = loopagent("requests", "edit", call["id"], *where, "--file", "-", stdin='{"to": "Bob"}')
    assert done.returncode == 0, done.stderr
    assert "sent to Bob" in done.stdout


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
