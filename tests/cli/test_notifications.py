"""`loopagent notifications`: list, send, replay."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from loopagent.cli.main import cli
from tests.http.server import make_project
from tests.notifications.receivers import ENV, Hook


SETTINGS = """
[[notifications.webhooks]]
name = "ops"
url = "{url}"
"""


@pytest.fixture
def hook() -> Iterator[Hook]:
    with Hook() as made:
        yield made


@pytest.fixture
def folder(tmp_path: Path, hook: Hook) -> Path:
    made = make_project(tmp_path / "project")
    (made / "loopagent.toml").write_text(SETTINGS.format(url=hook.url))
    return made


def run(folder: Path, *words: str) -> tuple[int, str]:
    where = ["--project", str(folder), "--db", str(folder / "runs.db")]
    done = CliRunner().invoke(cli, [*words, *where], env=ENV)
    return done.exit_code, done.stdout if done.exit_code == 0 else done.output + str(done.exception)


def notifications(folder: Path, *words: str) -> Any:
    code, text = run(folder, "notifications", *words, "--json")
    return code, json.loads(text)


def test_what_a_process_leaves_is_listed_sent_and_sent_again(folder: Path, hook: Hook) -> None:
    assert run(folder, "run", "looker", "Look", "--json")[0] == 0
    assert hook.calls == []  # that process only works on its run
    code, (row,) = notifications(folder, "list")
    assert (code, row["status"], row["attempts"]) == (0, "waiting", [])
    assert run(folder, "notifications", "send") == (0, "nothing is left to send\n")
    assert [one.id for one in hook.calls] == [row["id"]]
    code, (again,) = notifications(folder, "replay", row["id"])
    assert (code, again["status"], len(again["attempts"])) == (0, "sent", 2)
    assert [one.id for one in hook.calls] == [row["id"]] * 2
    code, text = run(folder, "notifications", "list", "--status", "sent")
    assert code == 0
    assert "ops" in text


def test_a_replay_that_does_not_get_through(folder: Path, hook: Hook) -> None:
    assert run(folder, "run", "looker", "Look", "--json")[0] == 0
    (row,) = notifications(folder, "list")[1]
    hook.answers.append(500)
    code, text = run(folder, "notifications", "replay", row["id"])
    assert code == 1
    assert "waiting it answered 500" in text
    assert run(folder, "notifications", "send") == (0, "some are to be tried again later\n")


def test_a_notification_that_is_not_there(folder: Path) -> None:
    assert run(folder, "run", "looker", "Look", "--json")[0] == 0
    code, text = run(folder, "notifications", "replay", "msg_0")
    assert code != 0
    assert "no notification" in text
