"""`loopagent memory`: what whoever runs the agents sees, and what one user sees."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from loopagent.cli.main import cli
from loopagent.core.notes import Circle, Note, NoteRules
from loopagent.errors import RequestError
from loopagent.stores import SqliteStore


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project's folder with a database that holds a note of each of two users."""

    async def fill() -> None:
        store = SqliteStore(tmp_path / "runs.db", synchronous="NORMAL")
        await store.open()
        for user, text in (("ann", "Wants yards"), ("bob", "Wants metres")):
            circle = Circle("keeper", user)
            note = Note(f"note_{user}", text, "Preference", circle, "user", "provisional", 1.0, 1.0)
            await store.put_note(note, NoteRules())
        await store.aclose()

    (tmp_path / "agents").mkdir()
    asyncio.run(fill())
    return tmp_path


def call(folder: Path, *arguments: str) -> str:
    where = ["--project", str(folder), "--db", str(folder / "runs.db")]
    result = CliRunner().invoke(cli, ["memory", *arguments, *where])
    if isinstance(result.exception, RequestError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


def listed(folder: Path, *arguments: str) -> set[str]:
    found: list[dict[str, Any]] = json.loads(call(folder, "list", "--json", *arguments))
    return {one["id"] for one in found}


def test_everybodys_notes_and_one_users(folder: Path) -> None:
    assert listed(folder) == {"note_ann", "note_bob"}
    assert listed(folder, "--user", "ann") == {"note_ann"}
    assert listed(folder, "--status", "pending") == set()
    assert listed(folder, "--agent", "other") == set()
    shown = call(folder, "list")
    assert "Wants yards" in shown
    assert "Wants metres" in shown
    exported = [json.loads(one) for one in call(folder, "export", "--user", "bob").splitlines()]
    assert [one["note"] for one in exported] == ["Wants metres"]


def test_a_note_is_shown_edited_and_deleted(folder: Path) -> None:
    assert "provisional" in call(folder, "show", "note_ann")
    with pytest.raises(RequestError, match="There is no note"):
        call(folder, "show", "note_ann", "--user", "bob")
    edited = call(folder, "edit", "note_ann", "--text", "Wants feet", "--type", "Context", "--json")
    now = json.loads(edited)
    assert (now["note"], now["type"], now["status"]) == ("Wants feet", "Context", "confirmed")
    aside = call(folder, "edit", "note_ann", "--put-aside", "--user", "ann", "--json")
    assert json.loads(aside)["status"] == "pending"
    assert "put aside" in call(folder, "show", "note_ann")
    call(folder, "edit", "note_ann", "--confirm")
    assert "removed" in call(folder, "delete", "note_ann", "--user", "ann")
    assert listed(folder) == {"note_bob"}
