"""Letting callers in: keys, the token, sessions, rates, and what the log says of who decided."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from loopagent import Agent, App
from loopagent.access import AccessSettings
from loopagent.callers import COOKIE
from loopagent.http import create_api
from tests.http.server import make_project
from tests.runtime.hooked import Listening, mail


pytestmark = pytest.mark.anyio
ASKS: dict[str, Any] = {
    "taskComplete": False,
    "nextStep": {"type": "Actions", "actions": [{"name": "mail", "params": {"to": "bob"}}]},
}
ALL = "0.0.0.0"  # noqa: S104 - what is to be refused
PAGE = {"accept": "text/html"}
HERE = {"sec-fetch-site": "same-origin"}


@asynccontextmanager
async def calling(
    app: App, base: str = "https://test", **how: Any
) -> AsyncIterator[httpx2.AsyncClient]:
    transport = httpx2.ASGITransport(app=create_api(app, manage=False, **how))
    async with httpx2.AsyncClient(transport=transport, base_url=base) as client:
        yield client


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


async def test_everybody_is_let_in_until_there_is_a_key() -> None:
    async with App(env={}) as app, calling(app) as client, calling(app, anybody=True) as open_to:
        assert (await client.get("/api/v1/runs")).status_code == 200
        key, row = await app.keys.create("first")
        assert (await client.get("/api/v1/runs")).status_code == 401
        assert (await client.get("/api/v1/runs", headers=bearer(key))).status_code == 200
        await app.keys.revoke(row.id)
        assert (await client.get("/api/v1/runs", headers=bearer(key))).status_code == 401
        assert (await client.get("/healthz")).status_code == 200
        assert (await open_to.get("/api/v1/runs")).status_code == 200


async def test_a_key_works_for_its_own_user_and_tenant() -> None:
    agent = Agent("a", model=Listening(ASKS, ASKS), actions=[mail])
    async with App(agents=[agent], env={}) as app, calling(app, token="t") as client:
        key, _ = await app.keys.create("k", tenant="acme", user="ann")
        body = {"agent": "a", "message": "Go."}
        made = await client.post("/api/v1/runs?wait=20", json=body, headers=bearer(key))
        assert made.status_code == 201
        state = (await app.get(made.json()["id"])).state
        assert (state.user, state.tenant) == ("ann", "acme")
        for other in ({"user": "bob"}, {"tenant": "other"}):
            refused = await client.post("/api/v1/runs", json=body | other, headers=bearer(key))
            assert refused.status_code == 403
        [request] = (await client.get("/api/v1/requests", headers=bearer(key))).json()["requests"]
        answer = {"decision": "approve"}
        address = f"/api/v1/requests/{request['id']}/answer"
        assert (await client.post(address, json=answer, headers=bearer(key))).status_code == 200
        row = await app.store.request(request["id"])
        assert row is not None
        assert row.resolution is not None
        assert row.resolution["by"] == "human:ann"


async def test_an_idempotency_key_is_its_caller_s_own() -> None:
    agent = Agent("a", model=Listening())
    async with App(agents=[agent], env={}) as app, calling(app) as client:
        ids = []
        for tenant in ("acme", "other"):
            key, _ = await app.keys.create("k", tenant=tenant)
            headers = {**bearer(key), "idempotency-key": "same"}
            body = {"agent": "a", "message": "Go."}
            for _ in range(2):
                made = await client.post("/api/v1/runs", json=body, headers=headers)
                ids.append(made.json()["id"])
        assert ids[0] == ids[1] != ids[2] == ids[3]


async def test_a_session_is_kept_nowhere_whatever_the_sign_in_sends_along() -> None:
    async with App(env={}) as app, calling(app) as client:
        key, _ = await app.keys.create("desk")
        headers = {**HERE, "idempotency-key": "same"}
        held = set[str | None]()
        for _ in range(2):
            client.cookies.clear()
            done = await client.post("/signin", data={"key": key}, headers=headers)
            assert done.status_code == 303
            held.add(done.cookies.get(COOKIE))
        assert len(held) == 2
        assert await app.store.recall("/signin\nsame") is None


async def test_the_text_of_a_key_is_kept_nowhere_however_its_address_is_written() -> None:
    async with App(env={}) as app, calling(app) as client:
        made = await app.keys.create("operator", tenant=None, scopes=["admin"])
        headers = {**bearer(made[0]), "idempotency-key": "same"}
        sent = [
            await client.post(f"/api/v1/keys{end}", json={"name": "k"}, headers=headers)
            for end in ("", "%0A", "%0A")
        ]
        assert len({one.json()["key"] for one in sent}) == 3


async def test_no_answer_is_kept_by_a_browser_or_taken_for_something_else() -> None:
    async with App(env={}) as app, calling(app) as client:
        await app.keys.create("desk")
        for path in ("/healthz", "/api/v1/runs", "/signin", "/static/none"):
            headers = (await client.get(path)).headers
            assert headers.get_list("x-content-type-options") == ["nosniff"]
            assert headers.get_list("cache-control") == ["no-store"]


async def test_half_of_a_request_changes_nothing() -> None:
    agent = Agent("a", model=Listening())
    pieces = [b'{"agent": "a", "message": "Go."}']
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/api/v1/runs",
        "query_string": b"",
        "headers": [(b"idempotency-key", b"k"), (b"content-type", b"application/json")],
    }
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        if pieces:
            return {"type": "http.request", "body": pieces.pop(), "more_body": True}
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    async with App(agents=[agent], env={}) as app:
        await create_api(app, manage=False)(scope, receive, send)
        assert sent == []
        assert (await app.runs())[0] == []


async def test_a_key_that_calls_too_often_has_to_wait() -> None:
    now = [1_000.0]
    slow = AccessSettings(requests_per_second=0.5, burst=2)
    async with App(env={}, clock=lambda: now[0]) as app, calling(app, access=slow) as client:
        key, _ = await app.keys.create("k")
        other, _ = await app.keys.create("o")
        seen = [(await client.get("/api/v1/runs", headers=bearer(key))) for _ in range(3)]
        assert [one.status_code for one in seen] == [200, 200, 429]
        assert seen[2].headers["retry-after"] == "2"
        assert seen[2].json()["retryable"] is True
        assert (await client.get("/api/v1/runs", headers=bearer(other))).status_code == 200
        now[0] += 2
        assert (await client.get("/api/v1/runs", headers=bearer(key))).status_code == 200


@pytest.mark.parametrize("secret", ["key", "token"])
async def test_a_person_signs_in_once_and_out_again(secret: str) -> None:
    async with App(env={}) as app, calling(app, token="s3cret") as client:
        key = "s3cret" if secret == "token" else (await app.keys.create("desk"))[0]
        shown = await client.get("/runs?status=failed", headers=PAGE)
        assert shown.status_code == 401
        assert 'value="/runs?status=failed"' in shown.text
        sent = {"key": key, "goes_to": "/runs?status=failed"}
        wrong = await client.post("/signin", data=sent | {"key": "la_x"}, headers=HERE)
        assert wrong.status_code == 401
        done = await client.post("/signin", data=sent, headers=HERE)
        assert (done.status_code, done.headers["location"]) == (303, "/runs?status=failed")
        cookie = done.headers["set-cookie"]
        assert all(one in cookie for one in ("HttpOnly", "SameSite=lax", "Secure", "Path=/"))
        assert key not in cookie
        assert (await client.get("/runs", headers=PAGE)).status_code == 200
        assert (await client.get("/api/v1/runs")).status_code == 200
        kept = client.cookies[COOKIE]
        await client.post("/signout", headers=HERE)
        client.cookies.set(COOKIE, kept)
        assert (await client.get("/api/v1/runs")).status_code == 401


async def test_a_session_is_no_use_to_another_site() -> None:
    async with App(agents=[Agent("a", model=Listening())], env={}) as app, calling(app) as client:
        key, _ = await app.keys.create("desk")
        elsewhere = {"sec-fetch-site": "cross-site"}
        assert (
            await client.post("/signin", data={"key": key}, headers=elsewhere)
        ).status_code == 403
        await client.post("/signin", data={"key": key}, headers=HERE)
        body = {"agent": "a", "message": "Go."}
        for headers, status in ((elsewhere, 403), (HERE, 201)):
            answer = await client.post("/api/v1/runs", json=body, headers=headers)
            assert answer.status_code == status
        assert (await client.post("/signout", headers=elsewhere)).status_code == 403


async def test_sign_in_leads_nowhere_else_and_plain_http_has_no_secure_cookie() -> None:
    async with App(env={}) as app, calling(app, "http://test") as client:
        key, _ = await app.keys.create("desk")
        for goes_to in ("https://evil.example/", "//evil.example", "/\\evil.example", "x"):
            sent = {"key": key, "goes_to": goes_to}
            done = await client.post("/signin", data=sent, headers=HERE)
            assert done.headers["location"] == "/"
            assert "Secure" not in done.headers["set-cookie"]


@pytest.mark.parametrize("how", ["revoked", "signed out", "expired", "first key"])
async def test_a_stream_ends_with_what_opened_it(how: str) -> None:
    now = [1_000.0]
    often = AccessSettings(session_hours=1, stream_check_seconds=0.02)
    agent = Agent("a", model=Listening(ASKS), actions=[mail])
    made = App(agents=[agent], env={}, clock=lambda: now[0])
    async with made as app, calling(app, access=often) as client:
        run = await app.start("a", "Go.")
        await app.wait(run.id)
        if how != "first key":
            key, _ = await app.keys.create("desk")
            await client.post("/signin", data={"key": key}, headers=HERE)
        address = f"/api/v1/runs/{run.id}/stream"
        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            following = group.create_task(client.get(address))
            while not app.bus.heard(run.id):  # noqa: ASYNC110 - nobody says that somebody follows
                await asyncio.sleep(0.01)
            if how == "first key":
                await app.keys.create("desk")
            elif how == "revoked":
                await app.keys.revoke((await app.keys.list())[0].id)
            elif how == "signed out":
                await client.post("/signout", headers=HERE)
            else:
                now[0] += 3_600
        told = following.result().text
        assert "event: request.created" in told
        assert told.endswith(
            f'event: access.ended\ndata: {{"type": "access.ended", "runId": "{run.id}"}}\n\n'
        )
        assert (await client.get(address)).status_code == 401


def serve(folder: Path, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "loopagent", "serve", "--project", str(folder), "--port", "0"]
    return subprocess.run(
        [*command, "--db", str(folder / "runs.db"), *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, **env},
    )


def test_a_server_that_others_reach_needs_keys(tmp_path: Path) -> None:
    folder = make_project(tmp_path / "project")
    for words, env, text in (
        (("--host", ALL), {}, "loopagent keys create"),
        (("--host", ALL, "--no-auth"), {}, "--no-auth"),
        (("--host", ALL), {"LOOPAGENT_API_TOKEN": "s3cret"}, "fewer than 20 characters"),
    ):
        done = serve(folder, *words, **env)
        assert done.returncode != 0
        assert text in done.stdout + done.stderr
