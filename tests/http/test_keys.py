"""Keys, sessions and decisions over HTTP: made and shown once, ended, and never another tenant's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx2
import pytest

from loopagent import Agent, App
from loopagent.callers import COOKIE
from tests.http.test_access import HERE, bearer, calling
from tests.runtime.hooked import Listening, mail


pytestmark = pytest.mark.anyio
API = "/api/v1"
ASKS: dict[str, Any] = {
    "taskComplete": False,
    "nextStep": {"type": "Actions", "actions": [{"name": "mail", "params": {"to": "bob"}}]},
}


async def created(client: httpx2.AsyncClient, key: str, **body: Any) -> httpx2.Response:
    headers = {**bearer(key), "idempotency-key": "same"}
    return await client.post(f"{API}/keys", json={"name": "new", **body}, headers=headers)


async def test_an_administrator_of_a_tenant_makes_keys_of_this_tenant_only() -> None:
    async with App(env={}) as app, calling(app) as client:
        admin, _ = await app.keys.create("a", tenant="acme", user="ann", scopes=["admin"])
        made = await created(client, admin, user="bob", scopes=["runs"])
        assert made.status_code == 201
        found = made.json()
        assert (found["tenant"], found["user"], found["scopes"]) == ("acme", "bob", ["runs"])
        text = found.pop("key")
        assert (await client.get(f"{API}/runs", headers=bearer(text))).status_code == 200
        assert (await client.get(f"{API}/keys", headers=bearer(text))).status_code == 403
        again = await created(client, admin, user="bob", scopes=["runs"])
        assert again.json()["key"] != text, "no answer with a key is kept"
        listed = await client.get(f"{API}/keys", headers=bearer(admin))
        assert text not in listed.text
        assert [one["name"] for one in listed.json()["keys"]] == ["a", "new", "new"]
        wrong: tuple[tuple[dict[str, Any], int], ...] = (
            ({"tenant": "other"}, 403),
            ({"allTenants": True}, 403),
            ({"scopes": ["everything"]}, 422),
            ({"scopes": []}, 422),
            ({"name": "oidc:work/1 Ann"}, 422),
            ({"user": "oidc:work/1"}, 422),
            ({"name": "a\nb"}, 422),
        )
        for body, status in wrong:
            assert (await created(client, admin, **body)).status_code == status, body
        bad = {**bearer(admin), "idempotency-key": " "}
        refused = await client.post(f"{API}/keys", json={"name": "x"}, headers=bad)
        assert refused.status_code == 400
        ended = await client.delete(f"{API}/keys/{found['id']}", headers=bearer(admin))
        assert ended.status_code == 204
        assert (await client.get(f"{API}/runs", headers=bearer(text))).status_code == 401
        for name in (found["id"], "nothing"):
            gone = await client.delete(f"{API}/keys/{name}", headers=bearer(admin))
            assert gone.status_code == 404


async def test_the_operator_makes_keys_for_everybody() -> None:
    async with App(env={}) as app, calling(app, token="t") as client:
        assert (await created(client, "t", allTenants=True)).json()["tenant"] is None
        assert (await created(client, "t", tenant="acme")).json()["tenant"] == "acme"
        assert (await created(client, "t", tenant="acme", allTenants=True)).status_code == 422


async def test_somebody_is_signed_out_by_an_administrator() -> None:
    async with App(env={}) as app, calling(app) as client:
        admin, _ = await app.keys.create("a", tenant="acme", scopes=["admin"])
        other, _ = await app.keys.create("o", tenant="other", scopes=["admin"])
        desk, _ = await app.keys.create("desk", tenant="acme", user="bob")
        await client.post("/signin", data={"key": desk}, headers=HERE)
        browser = {"cookie": f"{COOKIE}={client.cookies[COOKIE]}"}
        client.cookies.clear()
        assert (await client.get(f"{API}/runs", headers=browser)).status_code == 200
        unseen = await client.get(f"{API}/sessions", headers=bearer(other))
        assert unseen.json() == {"sessions": []}
        [shown] = (await client.get(f"{API}/sessions", headers=bearer(admin))).json()["sessions"]
        assert (shown["name"], shown["tenant"], shown["provider"]) == ("bob", "acme", None)
        address = f"{API}/sessions/{shown['id']}"
        assert (await client.delete(address, headers=bearer(other))).status_code == 404
        assert (await client.delete(address, headers=bearer(admin))).status_code == 204
        assert (await client.get(f"{API}/runs", headers=browser)).status_code == 401
        assert (await client.delete(address, headers=bearer(admin))).status_code == 404


async def test_who_decided_what_is_found() -> None:
    agent = Agent("a", model=Listening(*[ASKS] * 9), actions=[mail])
    async with App(agents=[agent], env={}) as app, calling(app, token="t") as client:
        for tenant, user in (("acme", "ann"), ("acme", "bob"), ("other", "ann")):
            key, _ = await app.keys.create("k", tenant=tenant, user=user)
            run = await app.start("a", "Go.", tenant=tenant)
            [asked] = (await app.wait(run.id)).asks
            await client.post(
                f"{API}/requests/{asked['requestId']}/answer",
                json={"decision": "approve"},
                headers=bearer(key),
            )

        async def found(key: str, **query: str) -> list[tuple[str, str]]:
            answer = await client.get(f"{API}/audit", params=query, headers=bearer(key))
            rows = answer.json()["decisions"]
            return [(one["resolution"]["by"], one["resolution"]["decision"]) for one in rows]

        ann, bob = ("human:ann", "approve"), ("human:bob", "approve")
        assert await found("t") == [ann, bob, ann]
        assert await found("t", by="bob") == [bob]
        assert await found("t", kind="plan") == []
        acme, _ = await app.keys.create("k", tenant="acme")
        assert await found(acme, kind="approval", decision="approve") == [bob, ann]
        page = await client.get("/audit?by=bob", headers={**bearer(acme), "accept": "text/html"})
        assert "<strong>bob</strong>" in page.text
        assert "<strong>ann</strong>" not in page.text
        wrong = await client.get(f"{API}/audit?cursor=x", headers=bearer("t"))
        assert wrong.status_code == 400


async def test_only_the_operator_names_models_by_where_they_are(tmp_path: Path) -> None:
    """The key of the server would go to whatever address somebody likes, and any file be read."""
    script = tmp_path / "own.jsonl"
    script.write_text('{"taskComplete": true, "message": "Done."}\n')
    agent = Agent("a", model=Listening(), fallback_models=(f"scripted:{script}",))
    async with App(agents=[agent], env={}) as app, calling(app, token="t") as client:
        tenant_s, _ = await app.keys.create("k", tenant="acme", scopes=["admin"])
        everybody_s, _ = await app.keys.create("k", tenant=None)
        tries = ("http://127.0.0.1:9/v1#x", "HTTPS://evil.example/v1#x", "scripted:/etc/passwd")
        for model in (*tries, "other:http://10.0.0.1/v1"):
            for key in (tenant_s, everybody_s):
                body = {"agent": "a", "message": "Go.", "model": model}
                answer = await client.post(f"{API}/runs", json=body, headers=bearer(key))
                assert (answer.status_code, answer.json()["code"]) == (422, "model_override")
                assert "only the operator" in answer.json()["detail"]
        for key, model in ((tenant_s, f"scripted:{script}"), ("t", tries[0])):
            body = {"agent": "a", "message": "Go.", "model": model}
            answer = await client.post(f"{API}/runs", json=body, headers=bearer(key))
            assert answer.status_code == 201, answer.text
