"""Two users of the same agent never see each other's notes, artifacts or messages: every tool, every route."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from loopagent import Agent, App, Attachment, RequestError
from loopagent.http.api import create_api
from loopagent.memory import Viewer
from tests.runtime.hooked import DONE, Json, Listening


pytestmark = pytest.mark.anyio
SECRET = "xyzzy-4711"
PEOPLE = (("bob", ""), ("ann", "acme"), ("", ""))
"""Who is not ann: another user, the same name in another tenant, nobody in particular."""
LEAVES: Json = {
    "taskComplete": True,
    "message": f"The answer is {SECRET}.",
    "memoryWrites": [{"note": f"The code is {SECRET}", "type": "Preference"}],
    "payloadChangeRequest": {"newElements": {"code": SECRET}},
}
CONVERSATION = [
    {"tool": "searchConversation", "input": {"query": "xyzzy"}},
    {"tool": "getMessagesByRange", "input": {"startSequence": 1, "endSequence": 50}},
    {"tool": "getMessageBySequence", "input": {"sequence": 1}},
    {"tool": "summarizeRange", "input": {"startSequence": 1, "endSequence": 9, "lens": "codes"}},
]
ARTIFACTS = [
    {"artifactId": one, "tool": tool, "input": {"pattern": "xyzzy"} if tool == "grep" else {}}
    for one in ("A", "B", "secret.txt", "b" * 64)
    for tool in ("get_full", "grep")
]
TRIES: Json = {
    "taskComplete": False,
    "conversationToolCalls": CONVERSATION,
    "artifactToolCalls": ARTIFACTS,
    "nextStep": {"type": "Retry", "messageIndex": 1},
}


async def meaning(texts: Any) -> list[list[float]]:
    """An embedder for which everything means the same, so that meaning keeps nobody apart."""
    return [[1.0] for _ in texts]


async def left_behind(app: App) -> str:
    """A run of ann that leaves a secret in every place there is; its id."""
    file = Attachment("secret.txt", f"{SECRET} in a file".encode())
    where: dict[str, Any] = {"conversation": "c1", "user": "ann", "attachments": [file]}
    view = await app.wait((await app.start("a", f"My code is {SECRET}.", **where)).id)
    assert view.state.status == "completed", view.state.result
    return view.id


@pytest.mark.parametrize("url", ["memory://", "sqlite:///{}/runs.db"], ids=["memory", "sqlite"])
async def test_no_tool_of_a_model_leads_to_another_user(tmp_path: Path, url: str) -> None:
    model = Listening(LEAVES)
    agent = Agent("a", model=model, memory={}, conversation_tools=True)
    async with App(agents=[agent], store=url.format(tmp_path), embedder=meaning) as app:
        await left_behind(app)
        for user, tenant in PEOPLE:
            model.then(TRIES, TRIES, DONE)
            asked = len(model.asked)
            started = await app.start(
                "a", "Which code?", conversation="c1", user=user, tenant=tenant
            )
            view = await app.wait(started.id)
            assert view.state.status == "completed", view.state.result
            seen = [one.system + repr(one.messages) for one in model.asked[asked:]]
            assert SECRET not in "".join(seen), (user, tenant)
            assert len(seen) >= 3
        model.then(TRIES, DONE)
        again = await app.start("a", "Which code?", conversation="c1", user="ann")
        await app.wait(again.id)
        assert SECRET in model.text(), "the tries would have found it"


async def test_the_library_shows_nobody_what_is_another_user_s() -> None:
    model = Listening(LEAVES)
    async with App(agents=[Agent("a", model=model, memory={})]) as app:
        await left_behind(app)
        [note] = (await app.memory.list(Viewer("ann")))[0]
        for user, tenant in PEOPLE:
            viewer = Viewer(user, tenant)
            whose: dict[str, Any] = {"user": user, "tenant": tenant}
            assert (await app.memory.list(viewer))[0] == []
            assert [one async for one in app.memory.export(viewer)] == []
            assert (await app.conversations.page(**whose))[0] == []
            tries = (
                app.memory.get(note.id, viewer),
                app.memory.delete(note.id, viewer),
                app.conversations.get("c1", **whose),
                app.conversations.messages("c1", **whose),
                app.conversations.delete("c1", **whose),
            )
            for one in tries:
                with pytest.raises(RequestError) as caught:
                    await one
                assert caught.value.status == 404


async def test_every_route_that_takes_a_user_keeps_the_others_out() -> None:
    model = Listening(LEAVES)
    async with App(agents=[Agent("a", model=model, memory={})]) as app:
        run_id = await left_behind(app)
        [note] = (await app.memory.list(Viewer("ann")))[0]
        [artifact] = (await app.get(run_id)).state.artifacts
        other = await app.wait((await app.start("a", "Hello.", user="bob")).id)
        ids = {
            "note_id": note.id,
            "conversation_id": "c1",
            "run_id": other.id,
            "handle": artifact.artifact_id,
            "before": artifact.artifact_id,
        }
        api = create_api(app, manage=False)
        transport = httpx2.ASGITransport(app=api)
        async with httpx2.AsyncClient(transport=transport, base_url="http://test") as client:
            walked = 0
            for path, methods in api.openapi()["paths"].items():
                for method, route in methods.items():
                    params = {one["name"] for one in route.get("parameters", ())}
                    mine = "user" in params or {"run_id", "handle"} <= params
                    if not mine:
                        continue
                    walked += 1
                    for user, tenant in PEOPLE:
                        query = {"user": user, "tenant": tenant} if "user" in params else {}
                        answer = await client.request(
                            method, path.format(**ids), params=query, json={"note": "Mine now."}
                        )
                        assert SECRET not in answer.text, (method, path, user, tenant)
            assert walked >= 8
            kept = await client.get(f"/api/v1/memory/{note.id}", params={"user": "ann"})
            assert SECRET in kept.text, "nobody has changed or removed it"
            said = await client.get("/api/v1/conversations/c1/messages", params={"user": "ann"})
            assert SECRET in json.dumps(said.json())
