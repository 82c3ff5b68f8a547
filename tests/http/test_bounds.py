"""How much callers may hand in."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from loopagent import Agent, App
from loopagent.http import create_api
from tests.runtime.hooked import Listening


pytestmark = pytest.mark.anyio
RUN = {"agent": "a", "message": "Go."}


async def test_what_runs_begin_with_has_an_end() -> None:
    async with App(agents=[Agent("a", model=Listening())], env={}) as app:
        transport = httpx2.ASGITransport(app=create_api(app, manage=False))
        async with httpx2.AsyncClient(transport=transport, base_url="http://test") as client:

            async def code(path: str, **body: Any) -> str:
                answer = await client.post(f"/api/v1/runs{path}", json=body)
                return f"{answer.status_code} {answer.json().get('code', '')}".strip()

            much = {"a": "x" * 1_000_001}
            assert await code("", **RUN, payload=much) == "422 invalid_payload"
            larger = {"maxPayloadBytes": 2_000_000}
            assert await code("", **RUN, payload=much, limits=larger) == "201"
            assert await code("", **RUN, metadata={"a": "x" * 50_000}) == "422 invalid_metadata"
            made = (await client.post("/api/v1/runs", json=RUN, params={"wait": 60})).json()
            fork = f"/{made['id']}/fork"
            assert await code(fork, metadata={"a": "x" * 50_000}) == "422 invalid_metadata"
            assert await code(fork, metadata={"a": "x"}) == "201"


async def test_strangers_are_not_listened_to_for_long() -> None:
    async with App(env={}) as app:
        await app.keys.create("k")
        transport = httpx2.ASGITransport(app=create_api(app, manage=False))
        async with httpx2.AsyncClient(transport=transport, base_url="http://test") as client:
            for path in ("/signin", "/signout"):
                assert (await client.post(path, data={"key": "x" * 30_000})).status_code == 413
