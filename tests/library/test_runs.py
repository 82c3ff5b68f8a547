"""What runs are given of the library: pinned when they start, called as it was shown, by agents that may."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from loopagent import Agent, App
from loopagent.runview import RunView
from tests.actions.making import means
from tests.fakes.web import Web, as_json
from tests.library.making import PIPELINE, code_of, look, opened, published
from tests.runtime.hooked import DONE, Listening


pytestmark = pytest.mark.anyio
PATIENCE_SECONDS = 60


def letter(web: Web, version: str, name: str = "mail.send") -> str:
    return (
        f"name: {name}\ndescription: Sends a letter.\neffects: external\n"
        f"egress: {{hosts: [127.0.0.1], ports: [{web.port}]}}\n"
        "params: {type: object, properties: {to: {type: string}}}\n"
        f"run: {{kind: http, method: POST, url: '{web.url}/{version}', body: {{to: {{from: params.to}}}}}}\n"
    )


def calls(name: str, **params: Any) -> dict[str, Any]:
    step = {"type": "Actions", "actions": [{"name": name, "params": params}]}
    return {"taskComplete": False, "message": "Calling.", "nextStep": step}


ASK = calls("mail.send", to="ann")


@pytest.fixture
def web() -> Iterator[Web]:
    with Web(lambda got: as_json({"at": got.target})) as server:
        yield server


async def answered(app: App, run: str) -> RunView:
    """Approve what a run asks for, and wait for its end."""
    rows, _ = await app.requests(run_id=run)
    await app.answer(rows[0].id, decision="approve")
    return await app.wait(run, timeout_seconds=PATIENCE_SECONDS)


async def started(app: App, agent: str = "clerk", **more: Any) -> RunView:
    given: dict[str, Any] = {"tenant": "acme", **more}
    begun = await app.start(agent, "Write to Ann.", **given)
    return await app.wait(begun.id, timeout_seconds=PATIENCE_SECONDS)


async def test_a_run_that_waits_sends_what_was_shown_and_a_new_one_what_is_published(
    web: Web,
) -> None:
    model = Listening(ASK)
    async with opened(agents=[Agent("clerk", model=model)]) as app:
        await published(app, said=letter(web, "v1"))
        first = await started(app)
        assert first.waiting
        assert "Sends a letter." in model.asked[0].system
        await published(app, said=letter(web, "v2"))
        model.then(DONE, ASK)
        assert (await answered(app, first.id)).state.status == "completed"
        assert [one.target for one in web.seen] == ["/v1"]
        second = await started(app)
        model.then(DONE)
        await answered(app, second.id)
        assert [one.target for one in web.seen] == ["/v1", "/v2"]
        spec = (await app.get(first.id)).state.spec.action("mail.send")
        assert spec is not None
        assert len(spec.definition) == 64


async def test_only_agents_of_the_tenant_that_are_named_are_given_it(web: Web) -> None:
    stubborn = Agent("stubborn", model=Listening(), accepts_actions=False)
    agents = [Agent("clerk", model=Listening()), Agent("other", model=Listening()), stubborn]
    async with opened(agents=agents) as app:
        await published(app, said=letter(web, "v1"))

        async def given(agent: str, **more: Any) -> bool:
            return (await started(app, agent, **more)).state.spec.action("mail.send") is not None

        assert await given("clerk")
        assert not await given("clerk", tenant="rival")
        assert not await given("other")
        assert not await given("stubborn")
        await app.library.grant("acme", "mail.send", ["other"], by="ann")
        assert not await given("clerk")
        assert await given("other")
        await app.library.retire("acme", "mail.send", by="ann")
        assert not await given("other")


async def test_a_sub_agent_is_given_its_own_and_what_files_have_wins(web: Web) -> None:
    work = {"type": "Sub-Agent", "subAgents": [{"name": "clerk", "message": "Write."}]}
    boss_model = Listening({"taskComplete": False, "message": "Giving.", "nextStep": work})
    clerk = Agent("clerk", model=Listening(ASK), actions=[look])
    async with opened(agents=[Agent("boss", model=boss_model, agents=[clerk])]) as app:
        await published(app, said=letter(web, "v1"))
        hidden = letter(web, "v1", "look")
        row = await app.library.save("acme", "look", hidden, expected_hash=None, by="ann")
        refused = app.library.publish("acme", "look", draft_hash=row.draft_hash, by="ann")
        assert await code_of(refused) == "invalid_action"
        assert app.library.is_shadowed("look")
        run = await started(app, "boss")
        assert run.state.spec.action("mail.send") is None
        rows, _ = await app.requests()
        await published(app, said=letter(web, "v2"))
        await app.answer(rows[0].id, decision="approve")
        ended = await app.wait(run.id, timeout_seconds=PATIENCE_SECONDS)
        assert ended.state.status == "completed"
        assert [one.target for one in web.seen] == ["/v1"]


async def test_a_pipeline_is_pinned_with_what_it_calls(web: Web) -> None:
    model = Listening(calls("two"))
    async with opened(agents=[Agent("clerk", model=model)]) as app:
        await published(app, said=letter(web, "v1"), agents=[])
        await published(app, "two", PIPELINE.format(name="two", step="mail.send"))
        run = await started(app)
        await published(app, said=letter(web, "v2"), agents=[])
        await answered(app, run.id)
        assert [one.target for one in web.seen] == ["/v1"]
        model.then(calls("two"))
        await answered(app, (await started(app)).id)
        assert [one.target for one in web.seen] == ["/v1", "/v2"]


async def test_what_an_open_run_has_is_not_deleted_and_stays_when_it_is(web: Web) -> None:
    async with opened(agents=[Agent("clerk", model=Listening(ASK))]) as app:
        await published(app, said=letter(web, "v1"))
        run = await started(app)
        await app.library.retire("acme", "mail.send", by="ann")
        assert await code_of(app.library.delete("acme", "mail.send", by="ann")) == "in_use"
        await answered(app, run.id)
        assert [one.target for one in web.seen] == ["/v1"]
        await app.library.delete("acme", "mail.send", by="ann")
        assert await app.library.list("acme") == []


async def test_a_test_call_shows_what_was_sent_without_secrets(web: Web) -> None:
    async with opened() as app:
        said = letter(web, "v1") + "result: {select: body.at}\n"
        tried = await app.library.try_out("acme", said, {"to": "ann"}, by="ann")
        assert tried.outcome.value == "/v1"
        [exchange] = tried.exchanges
        assert exchange["request"]["body"] == '{"to":"ann"}'
        assert (exchange["response"]["status"], exchange["response"]["body"]) == (
            200,
            {"at": "/v1"},
        )
        assert tried.scope is not None
        assert tried.scope["params"] == {"to": "ann"}
        [change] = (await app.library.changes("acme"))[0]
        assert (change.what, change.by, change.detail["ok"]) == ("tested", "ann", True)


KILLED = """
import asyncio, os, signal, sys
from loopagent import Agent, App
from tests.library.making import published
from tests.library.test_runs import ASK, started
from tests.runtime.hooked import Listening


async def main():
    app = App(agents=[Agent("clerk", model=Listening(ASK))], store=sys.argv[1], env={})
    async with app:
        await published(app, said=sys.argv[2])
        run = await started(app)
        assert run.waiting
        os.kill(os.getpid(), signal.SIGKILL)


asyncio.run(main())
"""


async def test_a_killed_process_loses_nothing_of_it(web: Web, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/runs.db"
    command = [sys.executable, "-c", KILLED, url, letter(web, "v1")]
    died = await asyncio.to_thread(subprocess.run, command, capture_output=True, timeout=120)
    assert died.returncode == -9, died.stderr.decode()
    async with App(
        agents=[Agent("clerk", model=Listening())], store=url, env={}, means=means()
    ) as app:
        [row] = await app.library.list("acme")
        assert (row.state, row.draft) == ("published", letter(web, "v1"))
        await published(app, said=letter(web, "v2"))
        [request] = (await app.requests())[0]
        assert (await answered(app, request.run_id)).state.status == "completed"
        assert [one.target for one in web.seen] == ["/v1"]
