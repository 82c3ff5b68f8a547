"""A person at a real terminal: what is asked there, and what becomes of what is typed."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
import time
from pathlib import Path

from tests.http.server import ROOT


AGENT = """
name: picker
model: scripted:picker.jsonl
clientTools: [{name: pick, effects: read, result: {type: object, required: [file]}}]
"""
SCRIPT = """
{"nextStep": {"type": "ClientTools", "clientTools": [{"name": "pick"}, {"name": "pick"}]}}
{"taskComplete": true, "message": "Picked."}
"""
PATIENCE_SECONDS = 60


class Terminal:
    """A process with a terminal of its own."""

    def __init__(self, *command: str) -> None:
        self._mine, theirs = pty.openpty()
        self.process = subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs, cwd=ROOT, close_fds=True
        )
        os.close(theirs)
        self.shown = ""
        self._seen = 0

    def until(self, pattern: str) -> None:
        """Read on until something appears behind what was waited for before.

        One read may bring several of them, so the place to look from is the last match, not the last byte.
        """
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not (found := re.search(pattern, self.shown[self._seen :])):
            assert time.monotonic() < deadline, self.shown
            self._read()
        self._seen += found.end()

    def _read(self) -> None:
        ready, _, _ = select.select([self._mine], [], [], 0.2)
        if ready:
            self.shown += os.read(self._mine, 65_536).decode("utf-8", "replace")

    def type(self, text: str) -> None:
        """Type a line."""
        os.write(self._mine, text.encode() + b"\n")

    def end(self) -> int:
        """Wait for the end; returns the exit code."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self.process.poll() is None and time.monotonic() < deadline:
            try:
                self._read()
            except OSError:  # the other side of the terminal is closed
                break
        code = self.process.wait(timeout=PATIENCE_SECONDS)
        os.close(self._mine)
        return code


def test_the_person_at_the_terminal_stands_in_for_the_client(tmp_path: Path) -> None:
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "picker.agent.yaml").write_text(AGENT)
    (tmp_path / "picker.jsonl").write_text(SCRIPT.lstrip())
    command = ("-m", "loopagent", "run", "picker", "Go.", "--project", str(tmp_path))
    terminal = Terminal(sys.executable, *command)
    terminal.until("Result, as JSON or text")
    terminal.type('{"name": "a.txt"}')  # not what the tool's schema wants
    terminal.until("/result/file: is required")
    terminal.until("Result, as JSON or text")
    terminal.type('{"file": "a.txt"}')
    terminal.until("Result, as JSON or text")
    terminal.type("")
    terminal.until("Why")
    terminal.type("no file there")
    assert terminal.end() == 0, terminal.shown
    assert "Picked." in terminal.shown
    assert "no file there" in terminal.shown
