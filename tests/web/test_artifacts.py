"""Artifacts and turns in the page, with content that would like to be more than content."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.http.server import make_project, serving
from tests.web.browser import PHONE, watched


Json = dict[str, Any]
SCRIPT = "<script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">"
TURNED = "invoice\u202efdp.exe"
REFUSED = '{"taskComplete": false,\n "nextStep": {"type": "Actions",\n  "actions": [{"name": "nothing"}]}}'
REPAIRED = """Here it is:
{
  taskComplete: false, // not yet
  "reasoning": "SCRIPT",
  "scratchpad": {"notes": "first", "taskList": {"upsert": [{"id": "a", "title": "Look", "status": "in_progress"}]}},
  "artifactToolCalls": [{"artifactId": "A", "tool": "get_lines", "input": {"start": 1}}],
  "payloadChangeRequest": {"newElements": {"seen": "TURNED"}},
  "nextStep": {"type": "ForEach", "forEach": {"collectionPath": "items", "action": {"name": "look", "params": {"item": "{{ item }}"}}}},
}""".replace("SCRIPT", SCRIPT.replace('"', "'")).replace("TURNED", TURNED)
LOOP = {
    "taskComplete": False,
    "nextStep": {
        "type": "ForEach",
        "forEach": {
            "collectionPath": "items",
            "action": {"name": "slow", "params": {"seconds": "{{ item }}"}},
        },
    },
}
DONE = {
    "taskComplete": True,
    "message": f"Seen. {SCRIPT}",
    "scratchpad": {"taskList": {"upsert": [{"id": "a", "title": "Look", "status": "completed"}]}},
}


def picture() -> bytes:
    """A PNG of 2 by 2 pixels."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return (
            struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        )

    pixels = zlib.compress(b"\0\xff\0\0\0\xff\0" * 2)
    head = struct.pack(">IIBBBBB", 2, 2, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")
    )


def poem(line: str) -> bytes:
    """A text of many lines of which one differs; another is huge."""
    lines = [f"line {at}" for at in range(1, 1200)]
    lines[599] = line
    lines[2] = "x" * 300_000
    return "\n".join(lines).encode()


FILES: list[tuple[str, bytes]] = [
    ("poem.txt", poem(SCRIPT)),
    ("poem.txt", poem(TURNED)),
    (
        "read.md",
        f"# Title\n\n{SCRIPT}\n\n[out](javascript:alert(1)) ![](https://evil.example/x.png)".encode(),
    ),
    ("page.html", SCRIPT.encode()),
    (
        "data.json",
        json.dumps({"a<b>": [{"n": at, "t": SCRIPT} for at in range(150)], "e": {}}).encode(),
    ),
    (
        "rows.csv",
        b"name,value\n" + b"".join(f'"{SCRIPT[:8]}{at}",{at}\n'.encode() for at in range(120)),
    ),
    ("dot.png", picture()),
    ("drawing.svg", f'<svg xmlns="http://www.w3.org/2000/svg">{SCRIPT}</svg>'.encode()),
    (f"{TURNED}.txt", b"\x1b[31mr\xf6d\x07"),
]
TYPES = {"svg": "image/svg+xml", "png": "image/png", "html": "text/html"}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx2.Client]:
    folder = make_project(tmp_path_factory.mktemp("artifacts") / "project")
    agent = "name: shower\nmodel: scripted:scripts/shower.jsonl\nactions: [look]\nartifactTools: true\npayload: {read: ['*'], write: ['*:add,update']}\n"
    (folder / "agents" / "shower.agent.yaml").write_text(agent)
    lines = [json.dumps(one) for one in (REFUSED, REPAIRED)]
    (folder / "scripts" / "shower.jsonl").write_text("\n".join([*lines, json.dumps(DONE)]) + "\n")
    (folder / "agents" / "looper.agent.yaml").write_text(
        agent.replace("shower", "looper").replace("look]", "slow]")
    )
    (folder / "scripts" / "looper.jsonl").write_text(json.dumps(LOOP) + "\n")
    with serving(folder, Path(folder).parent / "runs.db") as (found, _):
        yield found


@pytest.fixture(scope="module")
def run(client: httpx2.Client) -> str:
    """A run that was given files and has ended."""
    given = [
        {
            "name": name,
            "data": base64.b64encode(data).decode(),
            "mediaType": TYPES.get(name.rpartition(".")[2], "application/octet-stream"),
        }
        for name, data in FILES
    ]
    body = {
        "agent": "shower",
        "message": f"Show. {SCRIPT}",
        "attachments": given,
        "payload": {"items": ["1", "2"]},
    }
    answer = client.post("/runs", params={"wait": 30}, json=body)
    assert answer.status_code == 201, answer.text
    assert answer.json()["status"] == "completed", answer.text
    return str(answer.json()["id"])


def unharmed(page: Page) -> None:
    assert page.title() != "taken"
    assert page.locator("main script, main iframe, main svg script").count() == 0


def test_artifacts_are_found_and_looked_into(
    browser: Browser, client: httpx2.Client, site: str, run: str
) -> None:
    with watched(browser, site) as seen:
        page = seen.page
        page.goto("/artifacts")
        seen.check()
        assert page.locator(".row").count() == len(FILES)
        page.get_by_label("Name holds").fill("DATA")
        page.get_by_role("button", name="Show").click()
        page.get_by_role("link", name="data.json").click()
        page.get_by_text("list, 150").click()
        page.get_by_role("link", name="further entries of").click()
        expect(page.get_by_text("[149]")).to_be_visible()
        page.goto(f"/runs/{run}/artifacts/B")
        expect(page.get_by_text("1199 lines")).to_be_visible()
        page.get_by_label("Find").fill("EXE")
        page.get_by_role("button", name="Find").click()
        expect(page.locator("mark")).to_have_text("exe")
        expect(page.locator(".odd")).to_have_text("U+202E")
        page.get_by_role("link", name="Changes").click()
        expect(page.locator(".diff .add")).to_contain_text("invoice")
        expect(page.locator(".diff .del")).to_contain_text("<script>")
        for handle in "CDHI":
            page.goto(f"/runs/{run}/artifacts/{handle}")
            unharmed(page)
            assert page.locator("img").count() == 0
        expect(page.get_by_text("Read as windows-1252, a guess.")).to_be_visible()
        page.goto(f"/runs/{run}/artifacts/F?start=100")
        expect(page.get_by_text("Rows 101 to 120 of 120")).to_be_visible()
        page.goto(f"/runs/{run}/artifacts/G")
        expect(page.locator("img.preview")).to_have_js_property("naturalWidth", 2)
        seen.check()


def test_a_turn_says_what_was_wrong_repaired_and_changed(
    browser: Browser, client: httpx2.Client, site: str, run: str
) -> None:
    with watched(browser, site, viewport=PHONE, color_scheme="dark") as seen:
        page = seen.page
        page.goto(f"/runs/{run}/turns/1")
        page.get_by_role("link", name="3", exact=True).click()
        expect(page.locator(".line.wrong")).to_contain_text("nothing")
        page.goto(f"/runs/{run}/turns/2")
        expect(page.locator("pre mark.repaired").first).to_have_text("taskComplete")
        expect(page.locator("pre del.cut").first).to_contain_text("Here it is")
        expect(page.locator("#payload .odd").first).to_be_attached()
        expect(page.locator("#operations")).to_contain_text("1199")
        expect(page.locator("#decided")).to_contain_text("model")
        unharmed(page)
        seen.check()
        page.goto(f"/runs/{run}/messages")
        unharmed(page)
        page.goto(f"/runs/{run}?show=loop")
        assert page.locator(".turn[value]").count() == 1
        expect(page.locator(".turn .progress")).to_contain_text("2 of 2 done")
        page.get_by_text("How it came about").click()
        expect(page.locator(".history")).to_contain_text("in progress → completed")
        unharmed(page)
        seen.check()


def test_the_api_has_what_the_pages_show(client: httpx2.Client, run: str) -> None:
    first = client.get("/artifacts", params={"limit": 2, "runId": run}).json()
    assert [one["handle"] for one in first["artifacts"]] == ["I", "H"]
    rest = client.get("/artifacts", params={"cursor": first["nextCursor"], "minSize": 100}).json()
    assert [one["handle"] for one in rest["artifacts"]] == ["F", "E", "C", "B", "A"]
    where = f"/runs/{run}/artifacts"
    found = client.get(f"{where}/f/look", params={"tool": "get_rows", "params": '{"start": 119}'})
    assert found.json()["result"]["rows"][0][1] == "119"
    wrong = [
        client.get(f"{where}/F/look", params={"tool": "get_rows", "params": one})
        for one in ("[", "[]", '{"start": -1}')
    ]
    assert [(one.status_code, one.json()["code"]) for one in wrong] == [(422, "bad_params")] * 3
    assert client.get(f"{where}/Z/look", params={"tool": "x"}).status_code == 404
    assert client.get(f"{where}/F/look", params={"tool": "x"}).json()["code"] == "no_tool"
    changes = client.get(f"{where}/B/changes/A").json()
    assert (changes["same"], len(changes["lines"])) == (False, 9)
    assert client.get(f"{where}/B/changes/G").status_code == 422
    said = client.get(f"/runs/{run}/messages", params={"first": 2, "limit": 1}).json()
    assert [one["number"] for one in said["messages"]] == [2]
    turn = client.get(f"/runs/{run}/turns/2").json()
    assert turn["operations"][0]["result"]["totalLines"] == 1199
    assert turn["changes"] == [{"path": "/seen", "change": "added", "after": TURNED}]
    assert {one["kind"] for one in turn["marks"]} == {"cut", "repaired"}
    body = {"message": "Go.", "replies": [json.dumps(DONE)]}
    tried = client.post("/agents/shower/dry-run", json=body).json()
    assert (tried["status"], tried["run"]["message"]) == ("completed", DONE["message"])


def test_a_loop_shows_how_far_it_is_and_the_page_stands_still_when_asked(
    browser: Browser, client: httpx2.Client, site: str
) -> None:
    body = {"agent": "looper", "message": "Loop.", "payload": {"items": [0, 600]}}
    run = client.post("/runs", json=body).json()["id"]
    with watched(browser, site) as seen:
        page = seen.page
        page.goto(f"/runs/{run}")
        expect(page.locator("[data-looping]")).to_contain_text("1 of 2 done", timeout=60_000)
        page.reload()
        expect(page.locator("[data-looping]")).to_contain_text("1 of 2 done")
        page.get_by_label("Follow").uncheck()
        client.post(f"/runs/{run}/cancel")
        expect(page.locator("#unfollowed")).to_contain_text("since")
        expect(page.locator("#run")).not_to_have_attribute("data-state", "idle")
        page.get_by_label("Follow").check()
        expect(page.locator("#run")).to_have_attribute("data-state", "idle")
