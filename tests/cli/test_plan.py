"""Plans from a terminal: the card, deciding it by commands, deciding it where it is shown."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

from tests.cli.test_cli import ROOT, loopagent
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
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "loopagent", "run", "planner", "Go.", "--plan"]
    process = subprocess.Popen(
        [*command, "--project", str(project)],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        cwd=ROOT,
        env={**os.environ, "TERM": "dumb"},
    )
    os.close(slave)
    seen = ""
    for prompt, line in (
        ("Approve this plan?", "n"),
        ("What should it know?", "Bob"),
        ("Approve this plan?", "w"),
        ("Approve this plan?", "e"),
        ("ends it.", "1. Mail Bob, please.\n."),
        ("Approve? ", "y"),
    ):
        seen += _until(master, prompt)
        os.write(master, f"{line}\n".encode())
    seen += _until(master, "waits for nothing", whole=True)
    os.close(master)
    assert process.wait(timeout=20) == 0, seen
    assert "\x1b[8m" not in seen
    assert "1. Mail Ann.\\u001b[8m And Eve." in seen
    assert "+1. Mail Bob." in seen
    assert "Mailed as planned." in seen


def _until(master: int, text: str, *, whole: bool = False) -> str:
    """What the terminal shows up to a text, or up to its end."""
    seen = ""
    while text not in seen:
        try:
            piece = os.read(master, 65_536)
        except OSError:  # the other side of the terminal is closed
            piece = b""
        if not piece:
            assert whole, f"the command ended before it asked {text!r}:\n{seen}"
            break
        seen += piece.decode()
    return seen
