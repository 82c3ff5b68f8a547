"""`loopagent actions publish` and the commands around it, on a project with one agent."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from typer.testing import CliRunner

from loopagent import App
from loopagent.actions.importing.keeping import FILE
from loopagent.cli.main import cli
from loopagent.errors import LoopAgentError
from tests.library.making import text


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "agents").mkdir()
    agent = "name: clerk\nmodel: openai:none\ninstructions: Work.\n"
    (tmp_path / "agents" / "clerk.agent.yaml").write_text(agent)
    (tmp_path / "runs.db").touch()
    (tmp_path / "new.action.yaml").write_text(text())
    return tmp_path


def call(folder: Path, *arguments: str) -> str:
    where = ["--project", str(folder), "--db", str(folder / "runs.db")]
    result = CliRunner().invoke(cli, ["actions", *arguments, *where])
    if isinstance(result.exception, LoopAgentError):
        return str(result.exception)
    assert result.exit_code == 0, result.output
    return " ".join(result.output.split())


def test_a_file_is_published_changed_and_taken_back(folder: Path) -> None:
    file = str(folder / "new.action.yaml")
    assert "version 1 is live, for clerk" in call(folder, "publish", file, "--agent", "clerk")
    Path(file).write_text(text(path="v2"))
    assert "version 2 is live, for clerk" in call(folder, "publish", file, "--note", "moved")
    assert "moved" in call(folder, "versions", "mail.send")
    assert "http published 2 clerk human" in call(folder, "built")
    assert "version 3 is live" in call(folder, "rollback", "mail.send", "1")
    assert "for no agent yet" in call(folder, "grant", "mail.send")
    assert "retire it first" in call(folder, "remove", "mail.send")
    assert "is not published" in call(folder, "retire", "mail.send")
    assert "is removed" in call(folder, "remove", "mail.send")


def test_what_was_published_becomes_a_file(folder: Path) -> None:
    call(folder, "publish", str(folder / "new.action.yaml"))
    assert "mail.send.action.yaml" in call(folder, "export", "mail.send")
    written = folder / "actions" / "mail.send.action.yaml"
    assert written.read_text() == text()
    assert "is there already" in call(folder, "export", "mail.send")
    assert "hidden by a file" in call(folder, "built")
    assert "api.example.com" in call(folder, "export", "mail.send", "--out", "-", "--version", "1")


def imported(folder: Path) -> None:
    """Save a draft that keeps where it was imported from."""

    async def save() -> None:
        async with App(store=f"sqlite:///{folder / 'runs.db'}") as app:
            kept = {FILE: "{}"}
            await app.library.save("", "mail.send", text(), files=kept, expected_hash=None, by="x")

    asyncio.run(save())


def test_where_a_draft_was_imported_from_becomes_no_file(folder: Path) -> None:
    imported(folder)
    call(folder, "export", "mail.send")
    assert [one.name for one in (folder / "actions").iterdir()] == ["mail.send.action.yaml"]


def test_a_file_that_is_published_keeps_where_its_action_was_imported_from(folder: Path) -> None:
    async def files() -> list[dict[str, str]]:
        async with App(store=f"sqlite:///{folder / 'runs.db'}") as app:
            row = await app.library.get("", "mail.send")
            return [dict(row.files), dict((await app.library.version("", "mail.send", 1)).files)]

    imported(folder)
    file = str(folder / "new.action.yaml")
    assert "version 1 is live" in call(folder, "publish", file, "--force")
    assert asyncio.run(files()) == [{FILE: "{}"}] * 2
    assert "version 1 is live" in call(folder, "publish", file)


def test_a_file_that_is_wrong_is_not_published(folder: Path) -> None:
    wrong = folder / "wrong.action.yaml"
    wrong.write_text("name: a\n")
    assert "has problems" in call(folder, "publish", str(wrong))
    wrong.write_text(text("a") + "---\n" + text("b"))
    assert "2 actions" in call(folder, "publish", str(wrong))
