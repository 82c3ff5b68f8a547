"""What the page may not do, what a test call shows of secrets, and two who are at it at once."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from loopagent.actions.secrets import Credential, Credentials
from loopagent.egress import EgressSettings
from loopagent.library.faults import StaleError
from loopagent.library.settings import LibrarySettings
from loopagent.project import load_project
from tests.actions.making import LOOPBACK, means
from tests.fakes.web import Web, as_json
from tests.library.making import PIPELINE, code_of, opened, published, text
from tests.library.test_runs import letter


pytestmark = pytest.mark.anyio
TOKEN = "tok-CANARY-4711"


def with_secret(web: Web) -> str:
    said = letter(web, "v1").replace(
        "body: {to", "auth: {type: bearer, token: {secret: post}}, body: {to"
    )
    return said + "secrets: [post]\n"


async def test_a_test_call_never_shows_a_secret() -> None:
    known = {"post": Credential(env="POST_TOKEN", hosts=("127.0.0.1",))}
    given = means(secrets=Credentials(known, {"POST_TOKEN": TOKEN}, Path()))
    with Web(lambda got: as_json({"echo": got.headers["authorization"]})) as web:
        async with opened(means=given) as app:
            said = with_secret(web)
            assert await app.library.lint("acme", said) == []
            tried = await app.library.try_out("acme", said, {"to": "ann"}, by="ann")
            assert web.seen[0].headers["authorization"] == f"Bearer {TOKEN}"
            assert tried.outcome.ok
            shown = json.dumps([tried.outcome.value, tried.exchanges, tried.scope])
            assert "Bearer" in shown
            assert TOKEN not in shown
            preview = await app.library.preview("acme", said, {})
            assert preview["headers"]["authorization"] == "Bearer [secret post]"
            about = app.library.secrets()
            assert about == {"post": {"set": True, "hosts": ("127.0.0.1",)}}


async def test_hosts_that_the_settings_do_not_list_are_not_called() -> None:
    egress = EgressSettings(hosts=("api.example.com",), private_networks=(str(LOOPBACK),))
    with Web(lambda _: as_json({})) as web:
        async with opened(means=means(egress=egress)) as app:
            [complaint] = await app.library.lint("acme", letter(web, "v1"))
            assert "not among the hosts" in complaint.what
            tried = await app.library.try_out("acme", letter(web, "v1"), {}, by="ann")
            assert tried.outcome.error is not None
            assert tried.outcome.error.code == "egress_denied"
        assert web.seen == []


async def test_what_is_not_ready_can_be_tried_but_not_published() -> None:
    async with opened() as app:
        said = text() + "enabled: false\n"
        assert (await app.library.preview("acme", said, {"to": "ann"}))["method"] == "POST"
        row = await app.library.save("acme", "mail.send", said, expected_hash=None, by="ann")
        live = app.library.publish("acme", "mail.send", draft_hash=row.draft_hash, by="ann")
        assert await code_of(live) == "invalid_action"
        python = (
            "name: x\ndescription: d\neffects: read\nrun: {kind: python, callable: 'os:getcwd'}\n"
        )
        assert await code_of(app.library.try_out("acme", python, {}, by="ann")) == "invalid_action"


async def test_a_pipeline_calls_code_of_the_server_only_where_the_settings_say_so() -> None:
    said = PIPELINE.format(name="two", step="look").replace("to: ann", "place: here")
    async with opened() as app:
        [complaint] = await app.library.lint("acme", said)
        assert "code of the server" in complaint.what
        assert await code_of(app.library.try_out("acme", said, {}, by="ann")) == "invalid_action"
    async with opened(library=LibrarySettings(actions=("look",))) as app:
        assert await app.library.lint("acme", said) == []
        tried = await app.library.try_out("acme", said, {}, by="ann")
        assert tried.outcome.value == "here"


async def test_an_openapi_document_lies_with_the_action(tmp_path: Path) -> None:
    operation = {"operationId": "getPet", "responses": {"200": {"description": "A pet."}}}
    api = {
        "openapi": "3.1.0",
        "info": {"title": "Pets", "version": "1"},
        "servers": [{"url": "https://pets.example.com"}],
        "paths": {"/pet": {"get": operation}},
    }
    said = (
        "name: pets.get\ndescription: A pet.\neffects: read\negress: {hosts: [pets.example.com]}\n"
        "run: {kind: openapi, spec: pets.json, operation: getPet}\n"
    )
    url = f"sqlite:///{tmp_path}/runs.db"
    async with opened(url) as app:
        assert "no document 'pets.json'" in (await app.library.lint("acme", said))[0].what
        files = {"pets.json": json.dumps(api)}
        row = await app.library.save(
            "acme", "pets.get", said, expected_hash=None, by="ann", files=files
        )
        assert await app.library.lint("acme", said, "pets.get") == []
        await app.library.publish(
            "acme", "pets.get", draft_hash=row.draft_hash, by="ann", agents=["clerk"]
        )
    async with opened(url) as app:
        shown = await app.library.preview("acme", said, {})
        assert (shown["kind"], shown["url"]) == ("openapi", "https://pets.example.com/pet")
        given = await app.offered(app.agents["clerk"].spec, "acme")
        assert given.action("pets.get") is not None


async def test_of_many_who_save_at_once_one_does(tmp_path: Path) -> None:
    async with opened(f"sqlite:///{tmp_path}/runs.db") as app:
        row = await app.library.save("acme", "mail.send", "old", expected_hash=None, by="ann")

        async def save(number: int) -> str:
            said = f"number {number}"
            doing = app.library.save(
                "acme", "mail.send", said, expected_hash=row.draft_hash, by=said
            )
            return said if await code_of(doing) == "done" else ""

        saved = [one for one in await asyncio.gather(*map(save, range(8))) if one]
        assert len(saved) == 1
        assert (await app.library.get("acme", "mail.send")).draft == saved[0]


async def test_a_draft_that_says_something_else_survives_a_rollback() -> None:
    async with opened() as app:
        await published(app, said=text(path="v1"))
        await published(app, said=text(path="v2"))
        row = await app.library.get("acme", "mail.send")
        await app.library.save("acme", "mail.send", "half", expected_hash=row.draft_hash, by="bob")
        back = await app.library.rollback("acme", "mail.send", 1, by="cat")
        assert (back.draft, back.state, back.published) == ("half", "changed", 3)
        with pytest.raises(StaleError):
            await app.library.publish(
                "acme", "mail.send", draft_hash=row.draft_hash, by="bob", agents=["clerk"]
            )


def test_an_agent_s_file_can_refuse(tmp_path: Path) -> None:
    (tmp_path / "agents").mkdir()
    said: Any = "name: clerk\nmodel: openai:none\nacceptsActions: false\ninstructions: Work.\n"
    (tmp_path / "agents" / "clerk.agent.yaml").write_text(said)
    assert not load_project(tmp_path, env={}).agents["clerk"].spec.accepts_actions
