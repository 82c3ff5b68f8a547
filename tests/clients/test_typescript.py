"""The TypeScript client: built strictly, its own tests, and a script of it against real servers."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from loopagent.http.models import RunDetail
from tests.http.server import ROOT, make_project, serving


TOOL = {
    "name": "open-map",
    "effects": "read",
    "description": "Opens a map.",
    "parameters": {"type": "object"},
}
pytestmark = pytest.mark.timeout(300)
AGENTS = {
    "asker": "",
    "boss": "subAgents: [mailer]",
    "mapper": f"clientTools: [{json.dumps(TOOL)}]",
    "talker": "",
    "napper": "actions: [slow]",
}
DONE = {"taskComplete": True, "message": "Done."}
CHAT = {"taskComplete": False, "message": "Where to?", "nextStep": {"type": "Chat"}}
MAP = {"type": "ClientTools", "clientTools": [{"name": "open-map", "params": {}}]}
NAP = {"type": "Actions", "actions": [{"name": "slow", "params": {"seconds": 2}}]}
WORK = {"type": "Sub-Agent", "subAgents": [{"name": "mailer", "message": "Mail Ann."}]}
STORY = json.dumps({"taskComplete": True, "message": "Well, here is a long story."})
SCRIPTS = {
    "asker": [CHAT, CHAT, DONE],
    "boss": [{"taskComplete": False, "nextStep": WORK}, DONE],
    "mapper": [{"taskComplete": False, "nextStep": MAP}] * 2 + [DONE],
    "talker": [CHAT, {"raw": STORY, "chunks": 12, "delayMs": 400}],
    "napper": [{"taskComplete": False, "nextStep": NAP}, DONE],
}
SCENARIOS = "approve,edit,reject,answer,tools,child,cancel,streams"


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package beside the files that it reads, with its tools installed."""
    root = tmp_path_factory.mktemp("typescript")
    source, copy = ROOT / "clients" / "typescript", root / "clients" / "typescript"
    left_out = shutil.ignore_patterns("node_modules", "dist", "build")
    shutil.copytree(source, copy, ignore=left_out)
    shutil.copytree(ROOT / "schemas", root / "schemas")
    shutil.copytree(ROOT / "tests" / "vectors", root / "tests" / "vectors")
    if (source / "node_modules").is_dir():
        (copy / "node_modules").symlink_to(source / "node_modules")
    else:
        npm(copy, "ci", "--ignore-scripts", "--no-audit", "--no-fund")
    (copy / "live" / "example.ts").write_text(example(copy))
    npm(copy, "test")
    return copy


def example(package: Path) -> str:
    """The example of the README, with server and agent from its command line."""
    found = re.search(r"```ts\n(.*?)```", (package / "README.md").read_text(), re.DOTALL)
    assert found is not None
    text = found.group(1)
    for said, meant in (
        ('"@loopagent/client"', '"../src/index.js"'),
        ('"http://127.0.0.1:8080", token: "…"', 'process.argv[2] ?? ""'),
        ('"trip-planner"', 'process.argv[3] ?? ""'),
    ):
        assert said in text
        text = text.replace(said, meant)
    return text


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with an agent for each way of asking."""
    folder = make_project(tmp_path_factory.mktemp("live") / "project")
    for name, more in AGENTS.items():
        head = f"name: {name}\nmodel: scripted:scripts/{name}.jsonl\n{more}\n"
        (folder / "agents" / f"{name}.agent.yaml").write_text(head)
        lines = "".join(json.dumps(one) + "\n" for one in SCRIPTS[name])
        (folder / "scripts" / f"{name}.jsonl").write_text(lines)
    return folder


def npm(folder: Path, *arguments: str) -> None:
    """Have npm do something; what it says is in the failure."""
    done = subprocess.run(
        ["npm", *arguments], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-4_000:] + done.stderr[-4_000:]


def live(package: Path, scenario: str, url: str) -> subprocess.Popen[str]:
    """The live script, at work on a server."""
    command = ["node", "build/live/live.js", scenario, url]
    return subprocess.Popen(
        command, cwd=package, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def test_what_is_asked_is_answered_and_every_state_is_the_server_s(
    package: Path, project: Path
) -> None:
    with serving(project, project.parent / "runs.db") as (client, _):
        script = live(package, SCENARIOS, server_url(str(client.base_url)))
        said, _ = script.communicate(timeout=240)
        command = ["node", "build/live/example.js", server_url(str(client.base_url)), "mailer"]
        shown = subprocess.run(
            command, cwd=package, capture_output=True, text=True, check=True, timeout=60
        )
    assert script.returncode == 0, said
    lines = shown.stdout.splitlines()
    assert (lines[0], lines[-1]) == ("mailer: Run mail? [Approve] [Reject]", "completed")
    assert said.split("ok ")[1:] == [f"{one}\n" for one in SCENARIOS.split(",")]


def test_a_client_reads_on_exactly_when_the_server_is_killed_and_comes_back(
    package: Path, project: Path
) -> None:
    first = Server(project, "0")
    script = live(package, "restart", first.url)
    assert script.stdout is not None
    assert script.stdout.readline() == "started\n"
    first.kill()
    second = Server(project, first.url.rpartition(":")[2])
    try:
        said, _ = script.communicate(timeout=120)
    finally:
        second.kill()
    assert (script.returncode, said) == (0, "ok restart\n")


def test_the_client_s_run_has_fields_of_the_server_s() -> None:
    source = (ROOT / "clients" / "typescript" / "src" / "events.ts").read_text()
    declared = re.search(r"export interface Run \{(.*?)\n\}", source, re.DOTALL)
    assert declared is not None
    names = set(re.findall(r"^  (\w+):", declared.group(1), re.MULTILINE))
    known = {one.alias or name for name, one in RunDetail.model_fields.items()}
    assert len(names) > 10
    assert names <= known


def server_url(base_url: str) -> str:
    """Scheme, host and port of a server."""
    found = re.match(r"https?://[^/]+", base_url)
    assert found is not None
    return found.group()


class Server:
    """A server process that is killed, not stopped."""

    def __init__(self, project: Path, port: str) -> None:
        options = ["--project", str(project), "--port", port, "--db", str(project.parent / "k.db")]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "loopagent", "serve", *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=ROOT,
        )
        assert self._process.stdout is not None
        self.url = server_url(next(self._lines()))

    def _lines(self) -> Iterator[str]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if found := re.search(r"http://\S+", line):
                yield found.group()

    def kill(self) -> None:
        """Kill it as a crash would."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
