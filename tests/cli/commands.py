"""Commands as a user types them: whole, with their texts and exit codes, in a process of their own or in this one."""

from __future__ import annotations

import io
import os
import subprocess
import sys

import pytest

from loopagent.cli import main
from tests.http.server import ROOT


def process(*arguments: str, stdin: str = "", **env: str) -> subprocess.CompletedProcess[str]:
    """A real process: for what has to do with starting and ending."""
    return subprocess.run(
        [sys.executable, "-m", "loopagent", *arguments],
        capture_output=True,
        text=True,
        input=stdin,
        timeout=120,
        check=False,
        cwd=ROOT,
        env={**os.environ, **env},
    )


def loopagent(*arguments: str, stdin: str = "", **env: str) -> subprocess.CompletedProcess[str]:
    """The same without the second that a process needs to start."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", newline="") for _ in range(2))
    code: object = 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["loopagent", *arguments])
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode()), "utf-8"))
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        patch.chdir(ROOT)
        for name, value in env.items():
            patch.setenv(name, value)
        try:
            main()
        except SystemExit as left:
            code = left.code
    shown = []
    for stream in (out, err):
        stream.flush()
        stream.seek(0)
        shown.append(stream.read())
    return subprocess.CompletedProcess(arguments, code if isinstance(code, int) else 0, *shown)
