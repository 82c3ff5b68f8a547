"""A real server process over a project folder, as a user would start it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2


ROOT = Path(__file__).parent.parent.parent
ACTIONS = '''
import asyncio
from loopagent import action

@action(effects="read")
async def look(item: int) -> str:
    """Look at an item."""
    return f"seen {item}"

@action(effects="external")
async def mail(to: str) -> str:
    """Send a mail."""
    return f"sent to {to}"

@action(effects="read")
async def slow(seconds: float) -> str:
    """Take time."""
    await asyncio.sleep(seconds)
    return "slept"
'''
AGENT = """
name: {name}
model: scripted:../scripts/{name}.jsonl
actions: [look, mail, slow]
"""
SCRIPTS = {
    "looker": [
        '{"taskComplete": false, "message": "Looking.", "nextStep": {"type": "Actions", "actions": [{"name": "look", "params": {"item": 1}}]}}',
        '{"taskComplete": true, "message": "Seen.", "payloadChangeRequest": {"newElements": {"seen": 1}}}',
    ],
    "mailer": [
        '{"taskComplete": false, "nextStep": {"type": "Actions", "actions": [{"name": "mail", "params": {"to": "ann"}}]}}',
        '{"taskComplete": true, "message": "Mailed."}',
    ],
    "planner": [
        '{"taskComplete": false, "nextStep": {"type": "Actions", "actions": [{"name": "mail", "params": {"to": "ann"}}]}}',
        '{"taskComplete": false, "nextStep": {"type": "Plan", "plan": "1. Mail Ann.", "effects": ["one mail"]}}',
        '{"taskComplete": false, "nextStep": {"type": "Plan", "plan": "1. Mail Bob."}}',
        '{"taskComplete": false, "nextStep": {"type": "Actions", "actions": [{"name": "mail", "params": {"to": "bob"}}]}}',
        '{"taskComplete": true, "message": "Mailed as planned."}',
    ],
    "sleeper": [
        '{"taskComplete": false, "nextStep": {"type": "Actions", "actions": [{"name": "slow", "params": {"seconds": 30}}]}}',
        '{"taskComplete": true, "message": "Woke."}',
    ],
    "blinker": [
        '{"taskComplete": false, "nextStep": {"type": "Actions", "actions": [{"name": "slow", "params": {"seconds": 1}}]}}',
        '{"taskComplete": true, "message": "Woke."}',
    ],
}


def make_project(folder: Path) -> Path:
    """A project with scripted agents."""
    for name in ("agents", "actions", "scripts"):
        (folder / name).mkdir(parents=True)
    (folder / "actions" / "tools.py").write_text(ACTIONS)
    for name, lines in SCRIPTS.items():
        (folder / "agents" / f"{name}.agent.yaml").write_text(
            AGENT.format(name=name).replace("../", "")
        )
        (folder / "scripts" / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    return folder


def log_of(db: Path) -> Path:
    """Where the server of a database writes its log."""
    return db.with_name(f"{db.name}.log")


@contextmanager
def serving(
    project: Path, db: Path, *, port: int = 0, **env: str
) -> Iterator[tuple[httpx2.Client, subprocess.Popen[str]]]:
    """A client of a server process; the process is stopped at the end. What it logs is in `log_of(db)`."""
    command = [
        sys.executable,
        "-m",
        "loopagent",
        "serve",
        "--project",
        str(project),
        "--port",
        str(port),
        "--db",
        str(db),
    ]
    with log_of(db).open("w") as log:
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            cwd=ROOT,
            env={**os.environ, **env},
        )
    assert process.stdout is not None
    line = process.stdout.readline()
    found = re.search(r"http://\S+", line)
    assert found is not None, line + log_of(db).read_text()
    client = httpx2.Client(base_url=found.group(), timeout=60)
    try:
        yield client, process
    finally:
        client.close()
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        try:
            process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
