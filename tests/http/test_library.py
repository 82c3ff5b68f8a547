"""Actions that are built over HTTP: a life from the first draft to its removal."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from loopagent.http import create_api
from tests.fakes.web import Web, as_json
from tests.library.making import opened, text
from tests.library.test_runs import letter


NOBODY = {"tenant": ""}
"""Takes the place of the tenant that all other requests are about."""
pytestmark = pytest.mark.anyio


@pytest.fixture
async def client() -> AsyncIterator[httpx2.AsyncClient]:
    async with opened() as app:
        transport = httpx2.ASGITransport(app=create_api(app, manage=False))
        where: dict[str, Any] = {"base_url": "http://test/api/v1", "params": {"tenant": "acme"}}
        async with httpx2.AsyncClient(transport=transport, **where) as opened_client:
            yield opened_client


async def saved(client: httpx2.AsyncClient, said: str, expected: str = "") -> httpx2.Response:
    body = {"text": said, "expectedHash": expected}
    return await client.put("/actions/mail.send", json=body)


async def test_the_second_of_two_who_save_is_told_what_the_first_saved(
    client: httpx2.AsyncClient,
) -> None:
    first = (await saved(client, "half: [")).json()
    assert (first["state"], first["draft"]) == ("draft", "half: [")
    lint = (await client.post("/actions/lint", json={"text": "half: ["})).json()
    assert (lint["fine"], lint["complaints"][0]["line"]) == (False, 1)
    row = (await saved(client, text(), first["draftHash"])).json()
    late = await saved(client, "mine", first["draftHash"])
    assert (late.status_code, late.json()["code"]) == (409, "stale")
    assert late.json()["current"]["text"] == text()
    assert late.json()["current"]["hash"] == row["draftHash"]


async def test_versions_from_the_first_to_the_last(client: httpx2.AsyncClient) -> None:
    at = "/actions/mail.send"
    row = (await saved(client, text())).json()
    publish = {"draftHash": row["draftHash"], "agents": ["clerk"], "note": "first"}
    live = (await client.post(f"{at}/publish", json=publish)).json()
    assert (live["state"], live["published"], live["agents"]) == ("published", 1, ["clerk"])
    moved = (await saved(client, text(path="v2"), row["draftHash"])).json()
    assert moved["state"] == "changed"
    await client.post(f"{at}/publish", json={"draftHash": moved["draftHash"]})
    diff = (await client.get(f"{at}/versions/2/diff")).json()["diff"]
    assert "+run: " in diff
    assert "-run: " in diff
    back = (await client.post(f"{at}/rollback", json={"version": 1})).json()
    assert (back["published"], back["draft"]) == (3, text())
    versions = (await client.get(f"{at}/versions")).json()["versions"]
    assert [one["number"] for one in versions] == [3, 2, 1]
    assert (await client.get(f"{at}/versions/1")).json()["text"] == text()
    assert (await client.delete(at)).json()["code"] == "published"
    none = (await client.post(f"{at}/grant", json={"agents": []})).json()
    assert none["agents"] == []
    assert (await client.post(f"{at}/retire")).json()["state"] == "retired"
    assert (await client.delete(at)).status_code == 204
    assert (await client.get(f"{at}/draft")).status_code == 404
    changes = (await client.get("/library/changes")).json()["changes"]
    assert [one["what"] for one in changes][:3] == ["deleted", "retired", "granted"]
    assert {one["by"] for one in changes} == {"human"}


async def test_lists_have_what_files_have_and_what_was_built(client: httpx2.AsyncClient) -> None:
    row = (await saved(client, text())).json()
    publish = {"draftHash": row["draftHash"], "agents": ["clerk"]}
    await client.post("/actions/mail.send/publish", json=publish)
    await client.put("/actions/half", json={"text": "half: ["})
    rows = (await client.get("/actions")).json()["actions"]
    found = [(one["name"], one["source"], one["state"], one["published"]) for one in rows]
    assert found == [
        ("half", "library", "draft", None),
        ("look", "file", "published", None),
        ("mail.send", "library", "published", 1),
    ]
    assert [
        one["name"] for one in (await client.get("/actions", params=NOBODY)).json()["actions"]
    ] == ["look"]
    shown = (await client.get("/actions/mail.send")).json()
    assert (shown["kind"], shown["hosts"]) == ("http", ["api.example.com"])
    assert shown["usedBy"] == ["clerk"]
    assert (await client.get("/actions/mail.send", params=NOBODY)).status_code == 404
    about = (await client.get("/library")).json()
    assert (about["agents"], about["models"]) == (["clerk"], ["scripted:none.yaml"])


async def test_a_call_is_shown_sent_and_tested(client: httpx2.AsyncClient) -> None:
    with Web(lambda got: as_json({"at": got.target})) as web:
        at = "/actions/mail.send"
        await saved(client, letter(web, "v1"))
        body = {"params": {"to": "ann"}}
        shown = (await client.post(f"{at}/test", json=body)).json()
        assert (shown["sent"], shown["preview"]["url"]) == (False, f"{web.url}/v1")
        assert web.seen == []
        sent = (await client.post(f"{at}/test", json={**body, "send": True})).json()
        assert (sent["ok"], sent["result"]) == (True, {"at": "/v1"})
        assert sent["exchanges"][0]["response"]["status"] == 200
        other = {**body, "send": True, "text": letter(web, "v9")}
        await client.post(f"{at}/test", json=other)
        assert [one.target for one in web.seen] == ["/v1", "/v9"]
    ran = (await client.post(f"{at}/tests", json={"text": text()})).json()
    assert (ran["passed"], ran["failed"]) == (1, 0)
