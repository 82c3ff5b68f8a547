"""Approvals over HTTP and on pages: who may answer, what would be sent, deadlines, and what is remembered."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from loopagent import Agent, App, action
from loopagent.actions.build import make_action
from loopagent.http import create_api
from tests.actions.making import means, read
from tests.http.test_access import HERE, PAGE, bearer
from tests.runtime.hooked import Listening


pytestmark = pytest.mark.anyio
PAID: list[float] = []
TERMS = {"approvers": ["ann", "role:cfo"], "remember": "session", "show": ["to"]}


def pay_action(**asking: Any) -> Any:
    @action(name="pay", effects="external", approval="ask", asking={**TERMS, **asking})
    async def pay(amount: float, to: str = "DE1") -> str:
        """Pay somebody."""
        PAID.append(amount)
        return f"paid {amount} to {to}"

    return pay


def asks(name: str, **params: Any) -> dict[str, Any]:
    calls = [{"name": name, "params": params}]
    return {"taskComplete": False, "nextStep": {"type": "Actions", "actions": calls}}


DONE = {"taskComplete": True, "message": "Done."}


@asynccontextmanager
async def serving(*replies: Any, app: App | None = None, **asking: Any) -> AsyncIterator[Any]:
    agent = Agent("payer", model=Listening(*replies), actions=[pay_action(**asking)])
    PAID.clear()
    async with app or App(agents=[agent], env={}) as made:
        transport = httpx2.ASGITransport(app=create_api(made, manage=False))
        async with httpx2.AsyncClient(transport=transport, base_url="https://test") as client:
            keys = {
                "ann": (await made.keys.create("a", user="ann"))[0],
                "bob": (await made.keys.create("b", user="bob"))[0],
                "chief": (await made.keys.create("c", user="eve", roles=["cfo"]))[0],
                "admin": (await made.keys.create("d", tenant=None, scopes=["admin"]))[0],
            }
            yield made, client, {name: bearer(one) for name, one in keys.items()}


async def open_request(app: App) -> str:
    [row] = (await app.requests(status="open"))[0]
    return row.id


async def test_only_those_that_are_named_may_answer_by_every_way() -> None:
    async with serving(asks("pay", amount=5.0), DONE) as (app, client, who):
        started = await app.start("payer", "Go.")
        await app.wait(started.id)
        request = await open_request(app)
        address = f"/api/v1/requests/{request}"
        shown = (await client.get(address, headers=who["bob"])).json()
        assert shown["body"]["subject"]["approvers"] == ["ann", "role:cfo"]
        assert not shown["mayAnswer"]
        assert (await client.get(address, headers=who["ann"])).json()["mayAnswer"]
        for name in ("bob", "admin"):
            for decision in ("approve", "reject", "terminate"):
                body = {"decision": decision, "feedback": "x"}
                answer = await client.post(f"{address}/answer", json=body, headers=who[name])
                assert (answer.status_code, answer.json()["code"]) == (403, "not_an_approver")
                headers = {**who[name], **PAGE, **HERE}
                page = await client.post(f"/requests/{request}", data=body, headers=headers)
                assert page.status_code == 403
                assert "Only ann, role:cfo may answer" in page.text
        page = await client.get(f"/requests/{request}", headers={**who["bob"], **PAGE})
        assert "You are not among those" in page.text
        assert "ann, role:cfo" in page.text
        assert 'value="approve"' not in page.text
        with pytest.raises(Exception, match="Only ann"):
            await app.answer(
                request, decision="approve"
            )  # the program itself is nobody in particular
        assert PAID == []
        body = {"decision": "approve"}
        answer = await client.post(f"{address}/answer", json=body, headers=who["chief"])
        assert answer.status_code == 200
        assert (await app.wait(started.id)).state.status == "completed"
        assert PAID == [5.0]


async def test_an_approval_for_a_conversation_holds_until_it_is_taken_back() -> None:
    call = asks("pay", amount=5.0)
    async with serving(call, DONE, call, DONE, call, DONE) as (app, client, who):
        talk: dict[str, Any] = {"conversation": "c1", "user": "ann"}
        first = await app.start("payer", "Go.", **talk)
        await app.wait(first.id)
        request = await open_request(app)
        body = {"decision": "approve", "remember": "session"}
        address = f"/api/v1/requests/{request}/answer"
        assert (await client.post(address, json=body, headers=who["ann"])).status_code == 200
        await app.wait(first.id)
        second = await app.wait((await app.start("payer", "Again.", **talk)).id)
        assert second.state.status == "completed"
        assert PAID == [5.0, 5.0]
        waived = [
            one["data"]["text"]
            for one in await app.store.events(second.id)
            if one["type"] == "approval.waived"
        ]
        assert waived == [
            "human:ann approved the very same call and did not want to be asked again."
        ]
        listed = await client.get(f"/api/v1/runs/{second.id}/approvals", headers=who["ann"])
        [kept] = listed.json()["approvals"]
        assert (kept["action"], kept["params"]["amount"], kept["scope"]) == ("pay", 5.0, "session")
        headers = {**who["ann"], **PAGE, **HERE}
        assert (
            "Not asked about again"
            in (await client.get(f"/runs/{second.id}", headers=headers)).text
        )
        form = {"do": "revoke", "approval": kept["id"]}
        assert (
            await client.post(f"/runs/{first.id}", data=form, headers=headers)
        ).status_code == 303
        for one in (first.id, second.id):  # from any of its runs, for all of them
            assert (await app.get(one)).state.remembered == ()
        gone = f"/api/v1/runs/{second.id}/approvals/{kept['id']}"
        assert (await client.delete(gone, headers=who["ann"])).status_code == 404
        third = await app.wait((await app.start("payer", "And again.", **talk)).id)
        assert third.state.status == "running"
        assert len(third.asks) == 1


async def test_what_is_remembered_survives_a_restart(tmp_path: Path) -> None:
    call = asks("pay", amount=5.0)
    url = f"sqlite:///{tmp_path / 'runs.db'}"

    def opened(*replies: Any) -> App:
        terms = {"approvers": []}
        agent = Agent("payer", model=Listening(*replies), actions=[pay_action(**terms)])
        return App(agents=[agent], store=url, env={})

    talk: dict[str, Any] = {"conversation": "c1"}
    async with opened(call, DONE) as app:
        first = await app.wait((await app.start("payer", "Go.", **talk)).id)
        request = await open_request(app)
        await app.answer(request, decision="approve", remember="session")
        await app.wait(first.id)
    PAID.clear()
    async with opened(call, DONE) as app:
        assert len((await app.get(first.id)).state.remembered) == 1
        again = await app.wait((await app.start("payer", "Again.", **talk)).id)
        assert again.state.status == "completed"
        assert PAID == [5.0]


async def test_an_answer_comes_too_late_at_the_deadline() -> None:
    now = [1_000.0]
    agent = Agent(
        "payer",
        model=Listening(asks("pay", amount=5.0), DONE),
        actions=[pay_action(approvers=[], expires_seconds=3_600)],
    )
    app = App(agents=[agent], env={}, clock=lambda: now[0])
    async with serving(app=app) as (_, client, who):
        started = await app.start("payer", "Go.")
        await app.wait(started.id)
        request = await open_request(app)
        now[0] += 3_600
        answer = await client.post(
            f"/api/v1/requests/{request}/answer", json={"decision": "approve"}, headers=who["ann"]
        )
        assert (answer.status_code, answer.json()["code"]) == (410, "gone")
        assert PAID == []


HTTP = """\
name: shop.order
description: Orders something.
effects: external
approval: {policy: ask, allowEdit: false}
params:
  type: object
  required: [item]
  properties: {item: {type: string}}
secrets: [key]
egress: {hosts: [shop.example]}
run:
  kind: http
  method: POST
  url: https://shop.example/orders/{item}
  auth: {type: bearer, token: {secret: key}}
  body: {item: {from: params.item}}
idempotency: {header: X-Key}
"""


async def test_the_card_shows_the_request_with_names_for_secrets() -> None:
    made = make_action(read(HTTP), means())
    agent = Agent("buyer", model=Listening(asks("shop.order", item="a b"), DONE), actions=[made])
    async with serving(app=App(agents=[agent], env={})) as (app, client, who):
        started = await app.start("buyer", "Go.")
        await app.wait(started.id)
        request = await open_request(app)
        shown = (await client.get(f"/api/v1/requests/{request}", headers=who["ann"])).json()
        sent = shown["preview"]
        assert (sent["method"], sent["url"]) == ("POST", "https://shop.example/orders/a%20b")
        assert sent["headers"]["authorization"] == "Bearer [secret key]"
        assert sent["headers"]["X-Key"] == f"{started.id}/1:action.0"
        assert sent["body"] == '{"item":"a b"}'
        page = await client.get(f"/requests/{request}", headers={**who["ann"], **PAGE})
        assert "https://shop.example/orders/a%20b" in page.text
        assert "Edit the parameters" not in page.text
        body = {"decision": "approve", "edited": {"item": "c"}}
        answer = await client.post(
            f"/api/v1/requests/{request}/answer", json=body, headers=who["ann"]
        )
        assert answer.status_code == 422
        assert "allowEdit" in answer.text
