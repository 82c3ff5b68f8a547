"""The command line as a user types it: real processes, real files, exit codes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from loopagent import resources
from tests.cli.commands import loopagent, process
from tests.fakes.provider import FakeProvider
from tests.http.server import ROOT, make_project


VECTORS = ROOT / "tests" / "vectors" / "replies.jsonl"


def test_the_demo_runs_to_its_end_without_a_network() -> None:
    done = process("demo", "--headless")
    assert done.returncode == 0, done.stderr
    for shown in (
        "late_orders ok",
        "payload.changed",
        "question: Region",
        "answer by demo",
        "run.completed",
        "plan.approved",
        "loop.completed     4 done",
        "5 turns",
    ):
        assert shown in done.stdout


def test_run_prints_json_and_ends_with_the_code_of_its_end(tmp_path: Path) -> None:
    project = str(make_project(tmp_path / "p"))
    done = process(
        "run", "looker", "Go.", "--project", project, "--json", "--set", "a.b=1", "--set", "c=text"
    )
    run = json.loads(done.stdout)
    assert (done.returncode, run["status"]) == (0, "completed")
    assert run["payload"] == {"a": {"b": 1}, "c": "text", "seen": 1}
    events = loopagent("run", "looker", "-", "--project", project, "--events", stdin="Go.")
    assert json.loads(events.stdout.splitlines()[0])["type"] == "run.created"
    late = loopagent(
        "run", "sleeper", "Go.", "--project", project, "--max-seconds", "0.3", "--json"
    )
    assert (late.returncode, json.loads(late.stdout)["reason"]) == (124, "limit")


def test_a_run_waits_for_a_person_and_is_answered_later(tmp_path: Path) -> None:
    project, db = str(make_project(tmp_path / "p")), str(tmp_path / "runs.db")
    where = ("--project", project, "--db", db)
    waiting = loopagent("run", "mailer", "Go.", *where, "--json")
    assert waiting.returncode == 3
    run_id = json.loads(waiting.stdout)["id"]
    request = json.loads(loopagent("requests", "list", *where, "--json").stdout)[0]
    assert request["runId"] == run_id
    refused = loopagent(
        "requests", "answer", request["id"], *where, "--approve", "--edited", '{"to": 5}'
    )
    assert (refused.returncode, "invalid_answer" in refused.stderr) == (2, True)
    done = loopagent("requests", "answer", request["id"], *where, "--approve")
    assert done.returncode == 0, done.stderr
    assert "sent to ann" in done.stdout
    assert "run.created" not in done.stdout, "what was shown before is not shown again"
    again = loopagent("requests", "answer", request["id"], *where, "--reject")
    assert (again.returncode, "already_resolved" in again.stderr) == (2, True)
    assert (
        json.loads(loopagent("runs", "show", run_id, *where, "--json").stdout)["status"]
        == "completed"
    )
    assert len(json.loads(loopagent("runs", "turns", run_id, *where, "--json").stdout)) == 2
    assert "run.completed" in loopagent("runs", "events", run_id, *where).stdout
    assert run_id in loopagent("runs", "list", *where).stdout
    deleted = loopagent("runs", "delete", run_id, *where, "--json")
    assert json.loads(deleted.stdout) == {"id": run_id, "deleted": True}
    assert loopagent("runs", "show", run_id, *where).returncode == 2


def test_ctrl_c_cancels_the_run(tmp_path: Path) -> None:
    project = str(make_project(tmp_path / "p"))
    command = [sys.executable, "-m", "loopagent", "run", "sleeper", "Go.", "--project", project]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
    )
    assert process.stdout is not None
    while "action.started" not in process.stdout.readline():
        pass
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 4
    assert "run.cancelled" in out


def test_a_killed_run_is_resumed(tmp_path: Path) -> None:
    project, db = make_project(tmp_path / "p"), str(tmp_path / "runs.db")
    where = ("--project", str(project), "--db", db)
    command = [sys.executable, "-m", "loopagent", "run", "sleeper", "Go.", *where]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert process.stdout is not None
    while "action.started" not in process.stdout.readline():
        pass
    process.kill()
    process.communicate()
    tools = project / "actions" / "tools.py"
    tools.write_text(tools.read_text().replace("asyncio.sleep(seconds)", "asyncio.sleep(0)"))
    run_id = json.loads(loopagent("runs", "list", *where, "--json").stdout)[0]["id"]
    started = time.monotonic()
    done = loopagent("runs", "resume", run_id, *where)
    assert done.returncode == 0, done.stderr
    assert "Woke." in done.stdout
    assert time.monotonic() - started < 20


def test_reply_check_gives_every_vector_its_outcome() -> None:
    rows = [json.loads(line) for line in VECTORS.read_text().splitlines()]
    done = loopagent("reply", "check", "--jsonl", str(VECTORS))
    found = {one["id"]: one["outcome"] for one in map(json.loads, done.stdout.splitlines())}
    assert found == {one["id"]: one["expect"] for one in rows}
    single = loopagent("reply", "check", stdin='{"taskComplete": true}')
    assert json.loads(single.stdout)["outcome"] == "complete"


def test_init_makes_a_project_that_runs(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    assert loopagent("init", str(folder)).returncode == 0
    assert loopagent("agents", "lint", "--project", str(folder)).returncode == 0
    waiting = loopagent("run", "order-analyst", "Late?", "--project", str(folder), "--json")
    assert waiting.returncode == 3
    assert loopagent("init", str(folder)).returncode == 2


def test_a_fallback_to_another_model_is_never_silent(tmp_path: Path) -> None:
    with FakeProvider() as provider:
        first, second = f"{provider.url}#rl-quota", f"{provider.url}#ok"
        agents = tmp_path / "agents"
        agents.mkdir()
        (agents / "planner.agent.yaml").write_text(
            "apiVersion: loopagent/v1\nkind: Agent\nname: planner\n"
            f"model: {first}\nfallbackModels: ['{second}']\n"
        )
        ran = loopagent("run", "planner", "Go.", "--project", str(tmp_path))
    assert ran.returncode == 0, ran.stderr
    (line,) = [one for one in ran.stdout.splitlines() if "model.retry" in one]
    assert line.endswith(f"attempt 1 of {first} failed (quota); falling back to {second}")


def test_prompt_and_schemas() -> None:
    demo = str(resources.folder("examples") / "demo")
    shown = loopagent("agents", "prompt", "order-analyst", "--project", demo, "--json")
    prompt = json.loads(shown.stdout)
    assert prompt["tokens"] == sum(one["tokens"] for one in prompt["parts"]) < 3_000
    assert prompt["protocolTokens"] <= 2_500
    assert [one["part"] for one in prompt["parts"]][-1] == "message: state"
    told = loopagent("agents", "prompt", "order-analyst", "--project", demo)
    assert told.stdout == prompt["system"]
    assert "step:Actions" in told.stderr
    assert f"{prompt['tokens']}  tokens in all" in told.stderr
    assert loopagent("schemas", "check").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("run", "nobody", "x", "--project", "examples/demo"), "There is no agent 'nobody'"),
        (("run", "order-analyst", "x", "--project", "nowhere"), "there is no such folder"),
        (
            ("run", "order-analyst", "x", "--project", "examples/demo", "--model", "openai:x"),
            "OPENAI_API_KEY",
        ),
        (
            ("run", "order-analyst", "x", "--project", "examples/demo", "--model", "nope"),
            "provider:name",
        ),
        (
            ("run", "order-analyst", "x", "--project", "examples/demo", "--payload", "nope.json"),
            "cannot be read",
        ),
        (
            ("run", "order-analyst", "x", "--project", "examples/demo", "--set", "novalue"),
            "path=value",
        ),
        (
            ("run", "order-analyst", "x", "--project", "examples/demo", "--db", "mysql://x"),
            "store scheme",
        ),
        (("runs", "list", "--project", "examples/demo", "--db", "nope.db"), "there is no database"),
        (("reply", "check", "nope.txt"), "cannot be read"),
        (("frobnicate",), "No such command"),
    ],
)
def test_mistakes_say_what_to_do(arguments: tuple[str, ...], said: str) -> None:
    done = loopagent(*arguments)
    assert done.returncode == 2, done.stdout + done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
