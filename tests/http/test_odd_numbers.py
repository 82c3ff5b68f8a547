"""Numbers and JSON in forms and addresses that are none, or are absurd: said so or left out, never a crash."""

from __future__ import annotations

import httpx2
import pytest

from loopagent import Agent, App
from loopagent.http import create_api
from loopagent.web.render import tidy
from tests.runtime.hooked import Listening, mail


pytestmark = pytest.mark.anyio
ASKS = {
    "taskComplete": False,
    "nextStep": {"type": "Actions", "actions": [{"name": "mail", "params": {"to": "bob"}}]},
}


async def test_odd_numbers_break_nothing() -> None:
    agent = Agent("a", model=Listening(ASKS), actions=[mail])
    async with App(agents=[agent], env={}) as app:
        transport = httpx2.ASGITransport(app=create_api(app, manage=False))
        async with httpx2.AsyncClient(transport=transport, base_url="http://test") as client:
            view = await app.wait((await app.start("a", "Go.")).id)
            (row,), _ = await app.requests()
            for odd in ("9" * 5_000, "\u00b2", "\u0663", "-1"):
                sent = [
                    await client.post(f"/requests/{row.id}", data=form)
                    for form in (
                        {"decision": "approve", "revision": odd},
                        {"decision": odd, "revision": "1"},
                    )
                ]
                assert [one.status_code for one in sent] == [400, 422]
                forked = await client.post(f"/runs/{view.id}", data={"do": "fork", "turn": odd})
                assert forked.status_code in {303, 409, 422}
                several = await client.post("/approve", data={"item": f"{row.id}|{odd}|x"})
                assert several.status_code == 400
                desk = {"do": "snooze", "seconds": odd}
                put_off = await client.post(f"/requests/{row.id}/desk", data=desk)
                assert put_off.status_code in {303, 422}
                assert (await client.get("/", params={"from": odd})).status_code == 200
            deep = {"decision": "approve", "use_edited": "yes", "edited": "[" * 200_000}
            assert (await client.post(f"/requests/{row.id}", data=deep)).status_code == 422
            assert (await app.inbox.row(row.id)).resolution is None


def test_json_that_is_nested_too_deeply_is_shown_as_it_is() -> None:
    assert tidy("[" * 100_000) == "[" * 100_000
