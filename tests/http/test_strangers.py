"""Every route, API and page, as nobody (401), as a stranger of another tenant (404), and without the scope (403).

A route that has no rule makes this fail: decide what it asks of its caller in `access_rules`, and say below how it is
called if its address alone does not name what it is about.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest

from loopagent import Agent, App
from loopagent.access_rules import OPEN, RULES
from loopagent.artifact_port import ArtifactFilter
from loopagent.attachments import Attachment
from loopagent.http import create_api
from loopagent.keys import shown_id
from loopagent.memory import Viewer
from loopagent.notifications.spec import NotificationSettings
from loopagent.triggers import TriggerSpec
from tests.runtime.hooked import Listening, mail


pytestmark = pytest.mark.anyio
SECRET = "xyzzy-4711"
ASKS: dict[str, Any] = {
    "taskComplete": False,
    "message": f"I know {SECRET}.",
    "memoryWrites": [{"note": f"The code is {SECRET}", "type": "Preference"}],
    "nextStep": {"type": "Actions", "actions": [{"name": "mail", "params": {"to": SECRET}}]},
}
BODIES: dict[str, Any] = {
    "/api/v1/runs": {"agent": "a", "message": "Hello."},
    "/api/v1/runs/stream": {"agent": "a", "message": "Hello."},
    "/api/v1/agents/{}/dry-run": {"message": "Go.", "replies": ["{}"]},
    "/api/v1/runs/{}/messages": {"text": "Mine."},
    "/api/v1/runs/{}/mode": {"mode": "plan"},
    "/api/v1/runs/{}/limits": {"maxTurns": 99},
    "/api/v1/runs/{}/client-tools/{}": {"success": True, "result": 1},
    "/api/v1/requests/{}/answer": {"decision": "approve"},
    "/api/v1/requests/{}/claim": {"takeOver": True},
    "/api/v1/requests/{}/release": {"takeOver": True},
    "/api/v1/requests/{}/assign": {"to": "me", "takeOver": True},
    "/api/v1/requests/{}/snooze": {"until": 9e9},
    "/api/v1/inbox/views/{}": {"query": "holder=mine"},
    "/api/v1/triggers/{}/fire": {},
    "/api/v1/memory/{}": {"note": "Mine now."},
    "/api/v1/actions/{}": {"text": "Mine now."},
    "/api/v1/actions/{}/grant": {"agents": []},
    "/api/v1/actions/{}/rollback": {"version": 1},
    "/api/v1/keys": {"name": "mine"},
}
BUILT = f"""
name: post
description: Knows {SECRET}.
effects: read
egress: {{hosts: [api.example.com]}}
run: {{kind: http, url: "https://api.example.com/{SECRET}"}}
"""
SERVER_S = {
    (one.method, re.sub(r"\{.*?\}", "{}", one.template)) for one in RULES if one.objects == "server"
}
"""Routes that are no tenant's."""
QUERIES = {
    "/compare": "?a={run_id}&b={run_id}",
    "/api/v1/runs/{}/artifacts/{}/look": "?tool=get_full",
    "/api/v1/notifications": "?runId={run_id}",
}
BUILDING = ("/actions", "/library", "/secrets", "/mcp-servers")
"""What people need who build actions."""
MINE = (
    "/runs",
    "/requests",
    "/triggers",
    "/artifacts/",
    "/conversations",
    "/memory",
    "/notifications",
    "/keys",
    "/sessions",
)
"""Where something of a tenant is."""


@dataclass
class Site:
    app: App
    client: httpx2.AsyncClient
    routes: list[tuple[str, str]]
    ids: dict[str, str]
    keys: dict[str, str]

    async def call(self, method: str, path: str, key: str = "") -> httpx2.Response:
        """A request for what is acme's, with a key by its name."""
        plain = re.sub(r"\{.*?\}", "{}", path)
        body: Any = BODIES.get(plain)
        if plain == "/api/v1/artifacts":
            body = {"runId": self.ids["run_id"], "attachments": [{"name": "a.txt", "data": "aGk="}]}
        if plain == "/api/v1/requests/approve":
            shown = {"revision": 1, "contentHash": "x"}
            body = {"requests": [{"requestId": self.ids["request_id"], **shown}]}
        form = (
            "do=delete&decision=approve&text=x&name=x&scope=runs&tenant=acme"
            if not plain.startswith("/api")
            else None
        )
        query = QUERIES.get(plain, "")
        headers = {"authorization": f"Bearer {self.keys[key]}"} if key else {}
        if body is not None:
            headers["content-type"] = "application/json"
        sent = json.dumps(body) if body is not None else form if method == "POST" else None
        address = (path + query).format(**self.ids)
        return await self.client.request(method, address, content=sent, headers=headers)


def walked(routes: Any) -> Iterator[tuple[str, str]]:
    """Method and path of every route, also of those that are left out of the description."""
    for one in routes:
        inner = getattr(one, "original_router", None)
        if inner is not None:
            prefix = one.include_context.prefix
            yield from ((method, prefix + path) for method, path in walked(inner.routes))
        else:
            methods = set(one.methods or ()) - {"HEAD"}
            yield from ((method, one.path) for method in sorted(methods))


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    trigger = TriggerSpec.model_validate(
        {"name": "post", "agent": "a", "message": "Go.", "tenant": "acme", "webhook": {}}
    )
    agent = Agent("a", model=Listening(ASKS), actions=[mail], memory={})
    told = NotificationSettings.model_validate(
        {"webhooks": [{"name": "w", "url": "http://127.0.0.1:9/x"}], "hosts": ["127.0.0.1"]}
    )
    env = {"LOOPAGENT_WEBHOOK_SECRET": f"whsec_{b64encode(bytes(32)).decode()}"}
    made = App(agents=[agent], triggers=[trigger], notifications=told, env=env)
    async with made as app:
        given = Attachment(f"{SECRET}.txt", SECRET.encode())
        whose: Any = {"user": "ann", "tenant": "acme", "conversation": "c1"}
        started = await app.start("a", f"My code is {SECRET}.", attachments=[given], **whose)
        view = await app.wait(started.id)
        [row] = (await app.requests())[0]
        built = await app.library.save("acme", "post", BUILT, expected_hash=None, by="ann")
        await app.library.publish("acme", "post", draft_hash=built.draft_hash, by="ann")
        [note] = (await app.memory.list(Viewer("ann", "acme")))[0]
        keys = {
            "stranger": (await app.keys.create("s", tenant="other", scopes=["admin"]))[0],
            "unnamed": (await app.keys.create("u", tenant="", scopes=["admin"]))[0],
            "writer": (await app.keys.create("w", tenant="acme", scopes=["actions.write"]))[0],
            "owner": (await app.keys.create("o", tenant="acme", user="ann", scopes=["admin"]))[0],
        }
        api = create_api(app, manage=False)
        ids = {"run_id": view.id, "other_id": view.id, "request_id": row.id, "note_id": note.id}
        [notice] = (await app.store.notices())[0]
        ids["notice_id"] = notice.id
        await app.keys.sign_in((await app.keys.list("acme"))[0].id, tenant="acme")
        [session] = await app.keys.sessions("acme")
        ids |= {"session_id": shown_id(session), "key_id": session.key_id}
        ids |= {
            "receiver_id": "w",
            "name": "post",
            "conversation_id": "c1",
            "turn": "1",
            "number": "1",
            "handle": "A",
            "artifact_id": (await app.store.artifacts(ArtifactFilter()))[0][0].artifact_id,
            "before": "A",
            "call_id": "c",
            "approval_id": "none",
        }
        routes = list(walked(api.routes))
        transport = httpx2.ASGITransport(app=api)
        async with httpx2.AsyncClient(transport=transport, base_url="http://test") as client:
            yield Site(app, client, routes, ids, keys)


def guarded(site: Site) -> list[tuple[str, str]]:
    return [one for one in site.routes if one not in OPEN]


async def test_every_route_has_a_rule(site: Site) -> None:
    def plain(method: str, path: str) -> tuple[str, str]:
        return method, re.sub(r"\{.*?\}", "{}", path)

    known = {plain(one.method, one.template) for one in RULES}
    missing = [one for one in guarded(site) if plain(*one) not in known]
    assert missing == []
    assert len(guarded(site)) > 50


async def test_nobody_gets_in(site: Site) -> None:
    for method, path in guarded(site):
        answer = await site.call(method, path)
        assert answer.status_code == 401, (method, path)
        assert answer.headers["www-authenticate"] == "Bearer"
        wrong = await site.client.request(
            method, path.format(**site.ids), headers={"authorization": "Bearer la_nothing"}
        )
        assert wrong.status_code == 401, (method, path)


@pytest.mark.parametrize("key", ["stranger", "unnamed"])
async def test_what_is_another_tenant_s_is_not_there(site: Site, key: str) -> None:
    seq = (await site.app.get(site.ids["run_id"])).seq
    for method, path in guarded(site):
        answer = await site.call(method, path, key)
        assert SECRET not in answer.text, (method, path)
        if (method, re.sub(r"\{.*?\}", "{}", path)) in SERVER_S:
            assert answer.status_code == 403, (method, path)
            continue
        named = "{" in path and (any(one in path for one in MINE) or path.startswith("/actions"))
        given = method == "POST" and path.endswith("/artifacts")
        own = {"/compare", "/api/v1/notifications", "/api/v1/requests/approve"}
        if named or given or path in own:
            # The notes' page says on itself that there is none.
            assert answer.status_code == 404, (method, path, answer.text[:300])
    assert (await site.app.get(site.ids["run_id"])).seq == seq, "nothing happened to the run"
    assert len((await site.app.memory.list(Viewer("ann", "acme")))[0]) == 1
    assert (await site.app.triggers.deliveries("post"))[0] == []
    built = await site.app.library.get("acme", "post")
    assert (built.draft, built.published) == (BUILT, 1)
    assert len(await site.app.keys.sessions("acme")) == 1
    assert {one.revoked_at for one in await site.app.keys.list("acme")} == {None}
    made = [one.tenant for one in await site.app.keys.list() if one.name in {"mine", "x"}]
    assert set(made) == {"other" if key == "stranger" else ""}


async def test_a_scope_that_is_missing_is_said(site: Site) -> None:
    for method, path in guarded(site):
        answer = await site.call(method, path, "writer")
        shown_to_all = method == "GET" and (path == "/openapi.json" or "/agents" in path)
        if not (shown_to_all or any(one in path for one in BUILDING)):
            assert answer.status_code == 403, (method, path)


async def test_the_owner_finds_everything(site: Site) -> None:
    lists = ("runs", "requests", "memory", "artifacts")
    for path in (*(f"/api/v1/{one}" for one in lists), "/runs", "/memory", "/artifacts"):
        assert SECRET in (await site.call("GET", path, "owner")).text, path
    assert site.ids["run_id"] in (await site.call("GET", "/", "owner")).text
    for method, path in guarded(site):
        if (method, path) in SERVER_S:
            assert (await site.call(method, path, "owner")).status_code == 403, path
        elif method == "GET" and path != "/api/v1/runs/{run_id}/stream":
            answer = await site.call(method, path, "owner")
            ours = "triggers" in path or not path.endswith("/{name}")
            assert answer.status_code == 200 or not ours, (path, answer.text[:300])


async def test_who_may_not_write_actions_only_looks_at_them(site: Site) -> None:
    key, _ = await site.app.keys.create("r", tenant="acme", scopes=["runs"])
    site.keys["reader"] = key
    page = (await site.call("GET", "/actions/{name}/look", "reader")).text
    assert "needs a key with the scope" in page
    assert "https://api.example.com" not in page
    assert "New action" not in (await site.call("GET", "/actions", "reader")).text
    for path in ("/actions/{name}/edit", "/actions/{name}/versions", "/actions/{name}/publish"):
        assert (await site.call("GET", path, "reader")).status_code == 403
    for path in ("/actions/{name}/edit", "/actions/{name}/manage", "/actions/new"):
        assert (await site.call("POST", path, "reader")).status_code == 403
