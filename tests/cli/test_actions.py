"""`loopagent actions` as a user types it, and what the server tells of actions."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.testing import CliRunner

from loopagent.cli.main import cli
from loopagent.cli.opening import open_app
from loopagent.errors import ConfigError
from loopagent.project import load_project
from tests.cli.commands import loopagent
from tests.fakes.web import Got, Reply, Web, as_json
from tests.http.server import ROOT, serving


DESK = ROOT / "examples" / "parcel-desk"
TOKEN = "tok-CANARY-1"


def carrier(got: Got) -> Reply:
    if got.headers.get("authorization") != f"Bearer {TOKEN}":
        return Reply(401)
    return as_json({"state": "on its way", "due": None, "stops": [got.headers["authorization"]]})


@dataclass(frozen=True)
class Typed:
    """What became of a command."""

    returncode: int
    stdout: str
    stderr: str


def typed(*arguments: str, stdin: str | None = None, **env: str) -> Typed:
    """A command in this process: starting one takes longer than all that it does."""
    done = CliRunner().invoke(cli, list(arguments), input=stdin, env=env)
    if isinstance(done.exception, ConfigError):
        lines = [str(done.exception), *done.exception.problems]
        return Typed(2, done.stdout, "\n".join(lines))
    return Typed(done.exit_code, done.stdout, done.stderr)


@pytest.fixture
def web() -> Iterator[Web]:
    with Web(carrier) as running:
        yield running


@pytest.fixture
def desk(tmp_path: Path, web: Web) -> Path:
    """The example, with its carrier at another port."""
    folder = shutil.copytree(DESK, tmp_path / "desk")
    file = folder / "actions" / "parcels.action.yaml"
    file.write_text(file.read_text().replace("8099", str(web.port)))
    return folder


def test_an_action_is_run_from_the_command_line(desk: Path, web: Web) -> None:
    where = ("--project", str(desk))
    done = loopagent(
        "actions", "run", "parcels.status", "--set", "parcel=P-7", *where, CARRIER_TOKEN=TOKEN
    )
    assert (done.returncode, json.loads(done.stdout)) == (
        0,
        {"state": "on its way", "due": None, "stops": 1},
    )
    shown = typed(
        "actions",
        "run",
        "parcels.redirect",
        "--params",
        '{"parcel": "P-7", "street": "a", "town": "b"}',
        "--dry-run",
        *where,
    )
    assert json.loads(shown.stdout)["headers"]["authorization"] == "Bearer [secret carrier]"
    wrong = typed("actions", "run", "parcels.status", "--set", "parcel=../x", *where)
    assert (wrong.returncode, "params.parcel" in wrong.stderr) == (2, True)
    unset = typed(
        "actions", "run", "parcels.status", "--set", "parcel=P-7", *where, CARRIER_TOKEN=""
    )
    assert (unset.returncode, "secret_missing" in unset.stdout) == (1, True)
    assert len(web.seen) == 1


def test_changing_something_is_asked_first(desk: Path, web: Web) -> None:
    call = (
        "actions",
        "run",
        "parcels.redirect",
        "--params",
        '{"parcel": "P-7", "street": "a", "town": "b"}',
    )
    refused = typed(*call, "--project", str(desk), stdin="n\n", CARRIER_TOKEN=TOKEN)
    assert (refused.returncode, web.seen) == (1, [])
    done = typed(*call, "--yes", "--project", str(desk), CARRIER_TOKEN=TOKEN)
    assert (done.returncode, done.stdout.strip()) == (0, '"on its way"')


def test_files_are_checked_by_themselves_or_with_their_project(desk: Path) -> None:
    file = desk / "actions" / "parcels.action.yaml"
    assert typed("actions", "lint", "--project", str(desk)).stdout == "3 action(s) in files: fine\n"
    assert typed("actions", "lint", str(file)).returncode == 0
    file.write_text(file.read_text().replace("method: GET", "method: GETT"))
    wrong = typed("actions", "lint", str(file))
    assert wrong.returncode == 2
    assert f"{file}:17:3: run.method: expected 'GET'" in wrong.stderr
    listed = json.loads(typed("actions", "lint", str(file), "--json").stdout)
    assert [(one["line"], one["where"]) for one in listed] == [(17, "run.method")]
    whole = typed("actions", "lint", "--project", str(desk), "--json")
    assert (whole.returncode, whole.stderr) == (2, "")
    [one] = [one for one in json.loads(whole.stdout) if one.get("where") == "run.method"]
    assert (one["file"], one["line"], one["column"]) == (str(file), 17, 3)
    folder = typed("actions", "lint", str(desk / "actions"))
    assert (folder.returncode, folder.stderr) == (2, wrong.stderr)
    empty = typed("actions", "lint", str(desk / "agents"))
    assert (empty.returncode, "holds no *.action.yaml" in empty.stderr) == (2, True)


def test_a_project_without_complaints_has_an_empty_list(desk: Path) -> None:
    fine = typed("actions", "lint", "--project", str(desk), "--json")
    assert (fine.returncode, json.loads(fine.stdout)) == (0, [])


def test_tests_in_files_are_run(desk: Path) -> None:
    done = typed("actions", "test", "--project", str(desk), "--json")
    assert (done.returncode, json.loads(done.stdout)["passed"]) == (0, 6)
    both = typed("test", str(desk), "--junit", str(desk / "out.xml"))
    assert (both.returncode, "7 passed, 0 failed" in both.stdout) == (0, True)
    assert 'classname="parcels.status"' in (desk / "out.xml").read_text()
    file = desk / "actions" / "parcels.action.yaml"
    file.write_text(
        file.read_text().replace("expect: {result: redirected}", "expect: {result: lost}")
    )
    failed = typed("actions", "test", "redirect", "--project", str(desk))
    assert failed.returncode == 1
    assert 'result (value): expected "lost", got "redirected"' in failed.stdout
    assert typed("actions", "test", "nothing like it", "--project", str(desk)).returncode == 2


def test_actions_are_listed(desk: Path) -> None:
    listed = json.loads(typed("actions", "list", "--project", str(desk), "--json").stdout)
    assert [one["name"] for one in listed] == [
        "parcels.overview",
        "parcels.redirect",
        "parcels.status",
    ]
    assert listed[1]["usedBy"] == ["parcel-clerk"]
    assert "parcels.redirect" in typed("actions", "list", "--project", str(desk)).stdout


def test_the_server_tells_of_actions_but_never_of_secrets(desk: Path, tmp_path: Path) -> None:
    with serving(desk, tmp_path / "runs.db", CARRIER_TOKEN=TOKEN) as (client, _):
        listed = client.get("/actions").json()["actions"]
        one = client.get("/actions/parcels.status").json()
        missing = client.get("/actions/nothing")
    assert [row["name"] for row in listed] == [
        "parcels.overview",
        "parcels.redirect",
        "parcels.status",
    ]
    assert one["kind"] == "http"
    assert (one["effects"], one["usedBy"], one["tests"], one["secrets"]) == (
        "read",
        ["parcel-clerk"],
        4,
        ["carrier"],
    )
    assert one["parameters"]["required"] == ["parcel"]
    assert TOKEN not in json.dumps(listed)
    assert (missing.status_code, missing.json()["code"]) == (404, "unknown_action")


@pytest.mark.anyio
async def test_the_example_with_its_carrier(desk: Path, web: Web) -> None:
    project = load_project(desk, env={"CARRIER_TOKEN": TOKEN})
    async with open_app(project, "memory://") as app:
        run = await app.start("parcel-clerk", "Send both.")
        await app.wait(run.id, timeout_seconds=30)
        (request,) = (await app.requests())[0]
        await app.answer(request.id, decision="approve")
        run = await app.wait(run.id, timeout_seconds=30)
        events = json.dumps([one async for one in app.events(run.id)])
    assert run.state.status == "completed"
    assert [one.method for one in web.seen] == ["GET", "GET", "POST"]
    assert TOKEN not in events
