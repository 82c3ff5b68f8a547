"""What pages of other sites can do through a browser on the machine of a server that lets everybody in: nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
import pytest

from loopagent import Agent, App
from loopagent.access import AccessSettings
from loopagent.host_names import is_own_name
from loopagent.http import create_api
from loopagent.triggers import TriggerSpec
from tests.runtime.hooked import Listening


pytestmark = pytest.mark.anyio
BODY = {"agent": "a", "message": "Go."}
PAGE = {"accept": "text/html"}
HOOK = TriggerSpec.model_validate(
    {"name": "hook", "agent": "a", "message": "Go.", "webhook": {"auth": {"type": "server"}}}
)


@asynccontextmanager
async def called(base: str, *hosts: str) -> AsyncIterator[httpx2.AsyncClient]:
    agent = Agent("a", model=Listening())
    async with App(agents=[agent], triggers=[HOOK], env={}) as app:
        api = create_api(app, manage=False, access=AccessSettings(hosts=hosts))
        transport = httpx2.ASGITransport(app=api)
        async with httpx2.AsyncClient(transport=transport, base_url=base) as client:
            yield client


@pytest.mark.parametrize(
    ("host", "own"),
    [
        ("127.0.0.1:8080", True),
        ("[::1]:8080", True),
        ("192.168.1.20", True),
        ("localhost:8080", True),
        ("a.localhost.", True),
        ("host.docker.internal:8080", True),
        ("agents", True),
        ("", True),
        ("agents.example.com:443", True),
        ("evil.example:8080", False),
        ("127.0.0.1.evil.example", False),
        ("localhost.evil.example.", False),
        ("evil.example@127.0.0.1.nip.io", False),
        ("[::1", False),
        (":8080", False),
    ],
)
def test_names_that_no_other_site_can_have(host: str, own: bool) -> None:
    assert is_own_name(host, ("agents.example.com",)) is own


async def test_a_name_of_another_site_opens_nothing() -> None:
    async with called("http://evil.example:8080") as client:
        for path in ("/api/v1/runs", "/api/v1/keys", "/openapi.json"):
            refused = await client.get(path, headers={"authorization": "Bearer x"})
            assert (refused.status_code, refused.json()["code"]) == (401, "foreign_name")
        for path in ("/api/v1/runs", "/api/v1/triggers/hook"):
            started = await client.post(path, json=BODY, headers={"sec-fetch-site": "same-origin"})
            assert started.status_code == 401
        page = await client.get("/runs", headers=PAGE)
        assert page.status_code == 401
        assert "hosts" in page.text
        assert (await client.get("/healthz")).status_code == 200


async def test_a_name_that_the_operator_gave_is_fine() -> None:
    async with called("http://agents.example.com", "Agents.example.com") as client:
        assert (await client.get("/api/v1/runs")).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [{"sec-fetch-site": "cross-site"}, {"sec-fetch-site": "same-site"}, {"origin": "null"}],
)
async def test_what_a_page_of_another_site_sends_starts_nothing(headers: dict[str, str]) -> None:
    async with called("http://127.0.0.1:8080") as client:
        form = [
            ("agent", (None, b"a")),
            ("message", (None, b"Go.")),
        ]
        sent = [
            await client.post("/api/v1/runs", files=form, headers=headers),
            await client.post("/api/v1/runs/stream", files=form, headers=headers),
            await client.post("/api/v1/triggers/hook", content=b"{}", headers=headers),
        ]
        assert [one.json()["code"] for one in sent] == ["cross_site"] * 3
        assert (await client.get("/api/v1/runs")).json()["runs"] == []
        for own in ({}, {"origin": "http://127.0.0.1:8080"}, {"sec-fetch-site": "same-origin"}):
            done = await client.post("/api/v1/runs", files=form, headers=own)
            assert done.status_code == 201
