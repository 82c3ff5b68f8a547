"""Commands for whoever looks after a server: who is signed in, who decided what."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from loopagent import Agent, App
from loopagent.cli.main import cli
from loopagent.key_port import Person
from tests.http.server import make_project
from tests.runtime.hooked import Listening, mail


ASKS: dict[str, Any] = {
    "taskComplete": False,
    "nextStep": {"type": "Actions", "actions": [{"name": "mail", "params": {"to": "bob"}}]},
}


def ran(where: list[str], *words: str, code: int = 0) -> str:
    done = CliRunner().invoke(cli, [*words, *where])
    assert done.exit_code == code, done.output
    return done.stdout


async def filled(db: Path) -> None:
    agent = Agent("a", model=Listening(ASKS, ASKS), actions=[mail])
    async with App(agents=[agent], store=f"sqlite:///{db}", env={}) as app:
        ann = Person("work", "https://login.example", "248", "Ann Bee", "work/248", ("runs",))
        await app.keys.sign_in_person(ann, "acme", 3_600)
        _, key = await app.keys.create("desk", user="bob")
        await app.keys.sign_in(key.id, tenant=key.tenant)
        run = await app.start("a", "Go.")
        [asked] = (await app.wait(run.id)).asks
        await app.answer(asked["requestId"], decision="approve", by="human:bob")


@pytest.fixture
def where(tmp_path: Path) -> list[str]:
    """A project and a database in which somebody is signed in and has approved something."""
    folder, db = make_project(tmp_path / "project"), tmp_path / "runs.db"
    asyncio.run(filled(db))
    return ["--project", str(folder), "--db", str(db)]


def test_who_is_signed_in_is_listed_and_signed_out(where: list[str]) -> None:
    found = json.loads(ran(where, "keys", "sessions", "--json"))
    assert [(one["name"], one["tenant"]) for one in found] == [("Ann Bee", "acme"), ("bob", "")]
    assert found[0]["with"] == "work/248"
    assert "Ann Bee" in ran(where, "keys", "sessions")
    ran(where, "keys", "sign-out", found[0]["id"])
    left = json.loads(ran(where, "keys", "sessions", "--json"))
    assert [one["name"] for one in left] == ["bob"]


def test_who_decided_what_is_listed(where: list[str]) -> None:
    [found] = json.loads(ran(where, "requests", "audit", "--by", "bob", "--json"))
    assert (found["by"], found["decision"], found["kind"]) == ("human:bob", "approve", "approval")
    assert json.loads(ran(where, "requests", "audit", "--kind", "plan", "--json")) == []
    assert "human:bob" in ran(where, "requests", "audit")
