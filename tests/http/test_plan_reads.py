"""Approving a plan without being asked about reading under it, over HTTP and in the page."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from loopagent import Agent, App, action
from loopagent.core.asking import Asking
from loopagent.http import create_api
from tests.runtime.hooked import Listening, act


pytestmark = pytest.mark.anyio
PLAN = {"taskComplete": False, "nextStep": {"type": "Plan", "plan": "1. Read it."}}

SECOND = {"taskComplete": False, "nextStep": {"type": "Plan", "plan": "2. Read more."}}


@action(effects="read", approval="ask", asking=Asking(remember="run"))
async def peek(name: str) -> str:
    """Read a file."""
    return f"{name} is read"


async def test_reading_under_a_plan_is_waived_listed_and_taken_back() -> None:
    model = Listening(PLAN, act(("peek", {"name": "a"})), act(("peek", {"name": "b"})), SECOND)
    agent = Agent("reader", model=model, actions=[peek], plan_mode="required")
    async with App(agents=[agent], store="memory://") as app:
        transport = httpx2.ASGITransport(app=create_api(app, manage=False))
        async with httpx2.AsyncClient(transport=transport, base_url="http://test") as client:
            body = {"agent": "reader", "message": "Go."}
            run = (await client.post("/api/v1/runs?wait=60", json=body)).json()
            [card] = run["requests"]
            page = (await client.get(f"/requests/{card['requestId']}")).text
            assert "Ask about reading?" in page
            assert "<code>peek</code>" in page
            row = (await client.get(f"/api/v1/requests/{card['requestId']}")).json()
            seen = {one: row["body"][one] for one in ("revision", "contentHash")}
            answer: dict[str, Any] = {"decision": "approve", "remember": "run", **seen}
            at = f"/api/v1/requests/{card['requestId']}/answer"
            edited = await client.post(at, json={**answer, "edited": "1. Another."})
            assert edited.status_code == 422
            assert (await client.post(at, json=answer)).status_code == 200
            where = f"/api/v1/runs/{run['id']}"
            waits = (await client.get(where, params={"wait": 60})).json()
            assert [one["kind"] for one in waits["requests"]] == ["plan"]
            events = [one async for one in app.events(run["id"], live=False)]
            assert [one["type"] for one in events].count("approval.waived") == 2
            assert (await client.get(f"{where}/approvals")).json() == {"approvals": []}
    assert "b is read" in model.text()


async def test_what_is_waived_is_listed_while_the_plan_holds() -> None:
    chat = {"taskComplete": False, "message": "Which?", "nextStep": {"type": "Chat"}}
    model = Listening(PLAN, chat, act(("peek", {"name": "a"})))
    agent = Agent("reader", model=model, actions=[peek], plan_mode="required")
    async with App(agents=[agent], store="memory://") as app:
        transport = httpx2.ASGITransport(app=create_api(app, manage=False))
        async with httpx2.AsyncClient(transport=transport, base_url="http://test") as client:
            run = await app.wait((await app.start("reader", "Go.")).id, timeout_seconds=60)
            await app.answer(
                run.asks[0]["requestId"], decision="approve", remember="run", by="human:ann"
            )
            await app.wait(run.id, timeout_seconds=60)
            where = f"/api/v1/runs/{run.id}/approvals"
            [kept] = (await client.get(where)).json()["approvals"]
            assert (kept["action"], kept["plan"], kept["params"]) == ("peek", 1, {})
            page = (await client.get(f"/runs/{run.id}")).text
            assert "as long as revision 1 of the plan is the approved one" in page
            assert (await client.delete(f"{where}/{kept['id']}")).status_code == 200
            [question] = (await app.get(run.id)).asks
            await app.answer(question["requestId"], decision="answer", feedback="That.")
            waits = await app.wait(run.id, timeout_seconds=60)
            assert [one["kind"] for one in waits.asks] == ["approval"]
