"""Work with requests beside deciding them: who takes care of one, what is put off, views, approving alike ones."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest

from loopagent import Agent, App, RequestError, action
from loopagent.access import AccessSettings
from loopagent.core.agent_spec import ApprovalPolicy
from loopagent.http import create_api
from loopagent.inbox import Seen
from loopagent.models.scripted import ScriptedModel
from tests.runtime.hooked import mail


pytestmark = pytest.mark.anyio
Json = dict[str, Any]
V1 = "/api/v1"


@action(effects="read")
async def look(item: int) -> str:
    """Look at an item."""
    return f"seen {item}"


@action(effects="read")
async def count() -> int:
    """Count."""
    return 1


def agent(name: str, call: str, **params: Any) -> Agent[Any]:
    """One that makes a call, which has to be approved, and is done."""
    calls = [{"name": call, "params": params}]
    asks = {"taskComplete": False, "nextStep": {"type": "Actions", "actions": calls}}
    done = {"taskComplete": True, "message": "Done."}
    return Agent(
        name,
        model=ScriptedModel([asks, done] * 4),
        actions=[look, count, mail],
        approval=ApprovalPolicy(read="ask"),
    )


@asynccontextmanager
async def serving(**access: Any) -> AsyncIterator[tuple[App, dict[str, httpx2.AsyncClient]]]:
    """An app with three kinds of requests, and clients of Ann and Bob, who are of one tenant, and of a stranger."""
    agents = [agent("looker", "look", item=7), agent("counter", "count")]
    agents.append(agent("mailer", "mail", to="ann"))
    async with App(agents=agents, env={}) as app:
        api = create_api(app, manage=False, access=AccessSettings(**access))
        clients: dict[str, httpx2.AsyncClient] = {}
        for name, tenant in (("ann", "acme"), ("bob", "acme"), ("eve", "evil")):
            scopes = ["runs", "requests.answer"]
            key, _ = await app.keys.create(name, tenant=tenant, user=name, scopes=scopes)
            clients[name] = httpx2.AsyncClient(
                transport=httpx2.ASGITransport(app=api),
                base_url="https://test",
                headers={"authorization": f"Bearer {key}"},
            )
        yield app, clients
        for one in clients.values():
            await one.aclose()


async def asked(client: httpx2.AsyncClient, name: str) -> Json:
    """The request of a new run that waits."""
    body = {"agent": name, "message": "Go."}
    run = (await client.post(f"{V1}/runs", params={"wait": 20}, json=body)).json()
    found: Json = (await client.get(f"{V1}/requests/{run['requests'][0]['requestId']}")).json()
    return found


async def test_a_claim_is_seen_given_on_and_logged() -> None:
    async with serving() as (app, people):
        ann, bob = people["ann"], people["bob"]
        request = await asked(ann, "mailer")
        path = f"{V1}/requests/{request['id']}"
        assert request["holder"] == ""
        claimed = (await ann.post(f"{path}/claim", json={})).json()
        assert (claimed["holder"], claimed["heldAt"] > 0) == ("human:ann", True)
        again = await ann.post(f"{path}/claim", json={})
        assert again.json()["heldAt"] == claimed["heldAt"]
        for what, body in (("claim", {}), ("release", {}), ("assign", {"to": "bob"})):
            refused = await bob.post(f"{path}/{what}", json=body)
            assert (refused.status_code, refused.json()["code"]) == (409, "claimed")
            assert "ann takes care" in refused.json()["detail"]
        assert (await people["eve"].post(f"{path}/claim", json={})).status_code == 404
        given = await ann.post(f"{path}/assign", json={"to": "bob"})
        assert given.json()["holder"] == "human:bob"
        assert (await bob.post(f"{path}/release", json={})).json()["holder"] == ""
        await bob.post(f"{path}/claim", json={})
        taken = await ann.post(f"{path}/claim", json={"takeOver": True})
        assert taken.json()["holder"] == "human:ann"
        answered = await bob.post(f"{path}/answer", json={"decision": "approve"})
        assert answered.status_code == 200  # a claim only warns
        late = await ann.post(f"{path}/release", json={})
        assert (late.status_code, late.json()["code"]) == (409, "already_resolved")
        assert "approve by human:bob" in late.json()["detail"]
        events = await app.store.events(request["runId"])
        told = [
            (one["type"], one["data"].get("holder"), one["data"]["by"], one["data"].get("was", ""))
            for one in events
            if one["type"] in {"request.claimed", "request.released", "request.resolved"}
        ]
        assert told == [
            ("request.claimed", "human:ann", "human:ann", ""),
            ("request.claimed", "human:bob", "human:ann", "human:ann"),
            ("request.released", None, "human:bob", "human:bob"),
            ("request.claimed", "human:bob", "human:bob", ""),
            ("request.claimed", "human:ann", "human:ann", "human:bob"),
            ("request.resolved", None, "human:bob", ""),
        ]


async def test_a_claim_binds_where_the_settings_say_so() -> None:
    async with serving(exclusive_claims=True) as (_, people):
        ann, bob = people["ann"], people["bob"]
        request = await asked(ann, "mailer")
        path = f"{V1}/requests/{request['id']}"
        await ann.post(f"{path}/claim", json={})
        refused = await bob.post(f"{path}/answer", json={"decision": "approve"})
        assert (refused.status_code, refused.json()["code"]) == (409, "claimed")
        page = await bob.get(f"/requests/{request['id']}")
        assert "Only that person may answer" in page.text
        assert ">Approve</button>" not in page.text
        sent = await bob.post(f"/requests/{request['id']}", data={"decision": "approve"})
        assert sent.status_code == 409
        assert ">Approve</button>" in (await ann.get(f"/requests/{request['id']}")).text
        answered = await ann.post(f"{path}/answer", json={"decision": "approve"})
        assert answered.status_code == 200


async def test_what_is_put_off_comes_back_and_views_are_kept_for_each_person() -> None:
    async with serving() as (app, people):
        ann, bob = people["ann"], people["bob"]
        request = await asked(ann, "mailer")
        path = f"{V1}/requests/{request['id']}/snooze"
        over = await ann.post(path, json={"until": app.now() - 1})
        assert (over.status_code, over.json()["code"]) == (422, "invalid_time")
        until = app.now() + 3_600
        put_off = await ann.post(path, json={"until": until})
        assert put_off.json() == {"requestId": request["id"], "until": until}
        assert (await ann.get(f"{V1}/inbox/snoozed")).json()["snoozed"] == [put_off.json()]
        assert (await bob.get(f"{V1}/inbox/snoozed")).json()["snoozed"] == []
        assert (await ann.delete(path)).status_code == 204
        assert (await ann.delete(path)).status_code == 404
        views = f"{V1}/inbox/views"
        query = {"query": "?holder=mine&cursor=x&q=&sort=age"}
        kept = await ann.put(f"{views}/Mine, old", json=query)
        assert kept.json() == {"name": "Mine, old", "query": "holder=mine&sort=age"}
        assert (await ann.get(views)).json()["views"] == [kept.json()]
        assert (await bob.get(views)).json()["views"] == []
        assert (await ann.put(f"{views}/%20", json=query)).json()["code"] == "invalid_name"
        assert (await ann.delete(f"{views}/Mine, old")).status_code == 204
        assert (await ann.delete(f"{views}/Mine, old")).status_code == 404


def seen(request: Json) -> Json:
    """As it was shown."""
    body = request["body"]
    shown = {"revision": body["revision"], "contentHash": body["contentHash"]}
    return {"requestId": request["id"], **shown}


async def test_calls_of_one_action_that_reads_are_approved_together_each_as_it_was_shown() -> None:
    async with serving() as (_, people):
        ann = people["ann"]
        looks = [await asked(ann, "looker") for _ in range(3)]
        mailed, counted = await asked(ann, "mailer"), await asked(ann, "counter")
        path = f"{V1}/requests/approve"
        for other in (mailed, counted):
            body = {"requests": [seen(looks[0]), seen(other)]}
            refused = await ann.post(path, json=body)
            assert (refused.status_code, refused.json()["code"]) == (422, "not_alike")
        only = await ann.post(path, json={"requests": [seen(mailed)]})
        assert only.json()["code"] == "not_alike"
        strange = await people["eve"].post(path, json={"requests": [seen(looks[0])]})
        assert strange.status_code == 404
        stale = {**seen(looks[1]), "contentHash": "another"}
        await ann.post(f"{V1}/requests/{looks[2]['id']}/answer", json={"decision": "terminate"})
        body = {"requests": [seen(looks[0]), stale, seen(looks[2])]}
        done = (await ann.post(path, json=body)).json()["requests"]
        assert [(one["status"], one["code"]) for one in done] == [
            ("approved", None),
            ("refused", "stale"),
            ("refused", "already_resolved"),
        ]
        run = (await ann.get(f"{V1}/runs/{looks[0]['runId']}", params={"wait": 20})).json()
        assert run["message"] == "Done."


async def test_the_library_does_the_same() -> None:
    async with App(agents=[agent("looker", "look", item=1)], env={}) as app:
        run = await app.start("looker", "Go.")
        await app.wait(run.id)
        (row,), _ = await app.requests()
        with pytest.raises(RequestError, match="no request"):
            await app.inbox.claim("run:nobody", by="ann")
        assert (await app.inbox.assign(row.id, "ann", by="boss")).holder == "human:ann"
        shown = Seen(row.id, row.body["revision"], row.body["contentHash"])
        many = [Seen(str(one), 1, "") for one in range(51)]
        with pytest.raises(RequestError, match="50 requests"):
            await app.inbox.approve_alike(many, by="human:bob")
        (held,) = await app.inbox.approve_alike([shown], by="human:bob", unless_held=True)
        assert held.error is not None
        assert held.error.code == "claimed"
        (done,) = await app.inbox.approve_alike([shown], by="human:ann", unless_held=True)
        assert done.error is None
        ended = (await app.wait(run.id)).public()
        assert ended["message"] == "Done."
