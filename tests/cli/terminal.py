"""A person at a terminal: a command on a pseudo-terminal, read up to its questions, answered line by line."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tests.http.server import ROOT


class Terminal:
    """The person's side of the terminal."""

    def __init__(self, master: int, process: subprocess.Popen[bytes]) -> None:
        self._master = master
        self._process = process
        self._behind = 0
        self.seen = ""

    def until(self, text: str) -> None:
        """Wait until a text is shown, behind what was waited for before: one read may bring several."""
        while (at := self.seen.find(text, self._behind)) < 0:
            piece = self._read()
            assert piece, f"it ended before it showed {text!r}:\n{self.seen}"
            self.seen += piece
        self._behind = at + len(text)

    def answer(self, question: str, line: str) -> None:
        """Wait until the question is shown, then type a line."""
        self.until(question)
        os.write(self._master, f"{line}\n".encode())

    def interrupt(self) -> None:
        """What Ctrl-C does."""
        self._process.send_signal(signal.SIGINT)

    def rest(self) -> str:
        """Everything shown, up to the end of the command."""
        while piece := self._read():
            self.seen += piece
        return self.seen

    def _read(self) -> str:
        try:
            return os.read(self._master, 65_536).decode("utf-8", "replace")
        except OSError:  # the command has closed its side
            return ""


@contextmanager
def terminal(*arguments: str, ends: int = 0) -> Iterator[Terminal]:
    """Run a command at a terminal; it must end with this code."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "loopagent", *arguments],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        cwd=ROOT,
        env={**os.environ, "TERM": "dumb"},
    )
    os.close(slave)
    made = Terminal(master, process)
    try:
        yield made
        made.rest()
        assert process.wait(timeout=60) == ends, made.seen
    finally:
        process.kill()
        process.wait()
        os.close(master)
