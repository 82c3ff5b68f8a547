"""A form with every type of question: drawn, filled in beforehand, refused field by field, answered with typed values."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.http.server import serving
from tests.web.browser import PHONE, watched


Json = dict[str, Any]
OPTIONS = [
    {"value": 1, "label": "One"},
    {"value": "1", "label": "The text one"},
    {"value": True, "label": "Yes"},
]


def question(key: str, kind: str, label: str, /, **more: Any) -> Json:
    """One question; what `type` takes goes into it."""
    outer: Json = {
        name: more.pop(name) for name in ("required", "defaultValue", "helpText") if name in more
    }
    return {"id": key, "label": label, "type": {"type": kind, **more}, **outer}


FORM = {
    "title": "Everything",
    "description": "All *fourteen* types.",
    "submitLabel": "Send it",
    "questions": [
        question("text", "text", "Text", required=True, helpText="A few words.", maxLength=40),
        question("area", "textarea", "Area", defaultValue="two\nlines"),
        question("mail", "email", "Mail"),
        question("number", "number", "Number", min=1, max=10),
        question("money", "currency", "Money", prefix="€"),
        question("day", "date", "Day"),
        question("moment", "datetime", "Moment"),
        question("time", "time", "Time"),
        question("range", "daterange", "Range"),
        question("group", "buttongroup", "Group", options=OPTIONS),
        question("radio", "radio", "Radio", options=OPTIONS, defaultValue="1"),
        question("drop", "dropdown", "Drop", options=OPTIONS),
        question("boxes", "checkbox", "Boxes", options=OPTIONS, multiple=True),
        question("slider", "slider", "Slider", min=0, max=10, step=2, defaultValue=4),
    ],
}
ASK = {
    "taskComplete": False,
    "message": "Please fill in.",
    "responseForm": FORM,
    "nextStep": {"type": "Chat"},
}
DONE = {"taskComplete": True, "message": "Thanks."}


@pytest.fixture(scope="module")
def former(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx2.Client]:
    """A server with an agent that asks with the form."""
    folder: Path = tmp_path_factory.mktemp("forms") / "project"
    (folder / "agents").mkdir(parents=True)
    (folder / "agents" / "former.agent.yaml").write_text(
        "name: former\nmodel: scripted:script.jsonl\n"
    )
    (folder / "script.jsonl").write_text(f"{json.dumps(ASK)}\n{json.dumps(DONE)}\n")
    with serving(folder, folder.parent / "runs.db") as (client, _):
        yield client


def asked(client: httpx2.Client) -> Json:
    """A run that waits for the form."""
    run: Json = client.post(
        "/runs", params={"wait": 20}, json={"agent": "former", "message": "Go."}
    ).json()
    assert run["state"]["state"] == "followup", run
    return run


def fill(page: Page) -> None:
    """Answer everything, one number too large."""
    page.get_by_label("Text needed").fill("hello")
    page.get_by_label("Mail").fill("ann@example.org")
    page.get_by_label("Number").fill("11")
    page.get_by_label("Money").fill("9.5")
    page.get_by_label("Day").fill("2026-12-24")
    page.get_by_label("Moment").fill("2026-12-24T18:30")
    page.get_by_label("Time", exact=True).fill("07:05")
    page.get_by_label("From").fill("2026-01-01")
    page.get_by_label("To", exact=True).fill("2026-01-31")
    page.get_by_role("group", name="Group").get_by_label("Yes").check()
    page.get_by_label("Drop").select_option(label="One")
    page.get_by_role("group", name="Boxes").get_by_label("One", exact=True).check()
    page.get_by_role("group", name="Boxes").get_by_label("The text one").check()


@pytest.mark.parametrize("script", [True, False])
def test_all_types_are_answered_with_typed_values(
    browser: Browser, former: httpx2.Client, *, script: bool
) -> None:
    run = asked(former)
    site = str(former.base_url).partition("/api")[0]
    with watched(browser, site, viewport=PHONE, java_script_enabled=script) as seen:
        page = seen.page
        page.goto(f"/requests/{run['requests'][0]['requestId']}")
        expect(page.get_by_label("Area")).to_have_value("two\nlines")
        expect(page.get_by_role("group", name="Radio").get_by_label("The text one")).to_be_checked()
        fill(page)
        page.get_by_role("button", name="Send it").click()
        expect(page.get_by_label("Number")).to_have_attribute("aria-invalid", "true")
        expect(page.locator("#number-error")).to_have_text("must be at most 10")
        expect(page.get_by_label("Mail")).to_have_value("ann@example.org")
        expect(page.get_by_role("group", name="Group").get_by_label("Yes")).to_be_checked()
        if script:
            seen.check()
        page.get_by_label("Number").fill("7")
        page.get_by_role("button", name="Send it").click()
        expect(page.get_by_text("Answered by")).to_be_visible()
    stored = former.get(f"/requests/{run['requests'][0]['requestId']}").json()
    assert stored["resolution"]["values"] == {
        "text": "hello",
        "area": "two\nlines",
        "mail": "ann@example.org",
        "number": 7,
        "money": 9.5,
        "day": "2026-12-24",
        "moment": "2026-12-24T18:30",
        "time": "07:05",
        "range": {"start": "2026-01-01", "end": "2026-01-31"},
        "group": True,
        "radio": "1",
        "drop": 1,
        "boxes": [1, "1"],
        "slider": 4,
    }
    assert former.get(f"/runs/{run['id']}", params={"wait": 20}).json()["message"] == "Thanks."


def test_a_draft_outlives_a_reload_and_ends_with_the_answer(
    browser: Browser, former: httpx2.Client
) -> None:
    run = asked(former)
    site = str(former.base_url).partition("/api")[0]
    with watched(browser, site) as seen:
        page = seen.page
        page.goto(f"/requests/{run['requests'][0]['requestId']}")
        page.get_by_label("Text needed").fill("half")
        page.get_by_label("Drop").select_option(label="Yes")
        page.reload()
        expect(page.get_by_label("Text needed")).to_have_value("half")
        expect(page.get_by_label("Drop")).to_have_value("true")
        page.get_by_role("button", name="Send it").click()
        expect(page.get_by_text("Answered by")).to_be_visible()
        assert page.evaluate("sessionStorage.length") == 0
