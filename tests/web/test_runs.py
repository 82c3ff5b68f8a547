"""Runs in the page: start one, watch it, say something to it, look into every turn."""

from __future__ import annotations

import json
import re
from typing import Any

import httpx2
from playwright.sync_api import Browser, expect

from tests.web.browser import PHONE, watched


Json = dict[str, Any]


def started(client: httpx2.Client, agent: str) -> Json:
    """A run that waits or has ended."""
    body = {"agent": agent, "message": "Go."}
    run: Json = client.post("/runs", params={"wait": 20}, json=body).json()
    return run


def test_a_run_is_started_watched_and_decided_from_the_page(browser: Browser, site: str) -> None:
    with watched(browser, site) as seen:
        page = seen.page
        page.goto("/agents")
        page.get_by_role("link", name="mailer").click()
        page.get_by_label("Task").fill("Mail Ann.")
        page.get_by_text("Payload to start with").click()
        page.get_by_label("JSON; empty takes the agent's own").fill("{")
        page.get_by_role("button", name="Start").click()
        expect(page.get_by_role("alert")).to_contain_text("not JSON")
        page.get_by_label("JSON; empty takes the agent's own").fill('{"a": 1}')
        page.get_by_role("button", name="Start").click()
        expect(page).to_have_url(re.compile(r"/runs/run_"))
        expect(page.get_by_role("link", name="Run mail?")).to_be_visible()
        seen.check()
        card = page.context.new_page()
        card.goto(f"{site}{page.get_by_role('link', name='Run mail?').get_attribute('href')}")
        card.get_by_role("button", name="Approve").click()
        expect(card.get_by_text("Approved by")).to_be_visible()
        expect(page.locator("#run")).to_have_attribute("data-state", "idle")
        expect(page.get_by_text("Mailed.", exact=True).first).to_be_visible()
        expect(page.get_by_role("heading", name="When it worked")).to_be_visible()
        seen.check()


def test_every_turn_can_be_looked_into(browser: Browser, client: httpx2.Client, site: str) -> None:
    run = started(client, "looker")
    with watched(browser, site, viewport=PHONE, color_scheme="dark") as seen:
        page = seen.page
        page.goto(f"/runs/{run['id']}")
        seen.check()
        expect(page.locator(".work code").first).to_have_text("look")
        page.get_by_role("link", name="turn 2").click()
        expect(page.get_by_role("heading", name="Changes of the payload")).to_be_visible()
        expect(page.get_by_role("cell", name="/seen", exact=True)).to_be_visible()
        page.get_by_text("system: protocol").click()
        expect(page.get_by_text("taskComplete").first).to_be_visible()
        seen.check()
        page.goto(f"/runs/{run['id']}")
        page.get_by_role("link", name="Who decided what").click()
        seen.check()
    answer = httpx2.get(f"{site}/runs/{run['id']}/log")
    assert "attachment" in answer.headers["content-disposition"]
    events = [json.loads(line) for line in answer.text.splitlines()]
    assert [one["seq"] for one in events] == list(range(1, run["seq"] + 1))


def test_a_run_is_steered_and_cancelled(browser: Browser, client: httpx2.Client, site: str) -> None:
    body = {"agent": "sleeper", "message": "Sleep."}
    run = client.post("/runs", json=body).json()
    with watched(browser, site) as seen:
        page = seen.page
        page.goto(f"/runs/{run['id']}")
        page.get_by_label("Say something to the agent").fill("Wake up.")
        page.get_by_role("button", name="Send").click()
        expect(page).to_have_url(re.compile(rf"/runs/{run['id']}$"))
        page.on("dialog", lambda dialog: dialog.accept())
        page.get_by_role("button", name="Cancel the run").click()
        expect(page.locator("#run")).to_have_attribute("data-state", "idle")
        page.goto("/runs?status=cancelled")
        expect(page.get_by_role("link", name="Sleep.").first).to_be_visible()
        seen.check()


def test_the_message_box_keeps_its_text_while_the_page_is_renewed(
    browser: Browser, client: httpx2.Client, site: str
) -> None:
    run = client.post("/runs", json={"agent": "planner", "message": "Go."}).json()
    run = client.get(f"/runs/{run['id']}", params={"wait": 20}).json()
    with watched(browser, site) as seen:
        page = seen.page
        page.goto(f"/runs/{run['id']}")
        page.get_by_label("Say something to the agent").fill("Half a sen")
        answer = f"/requests/{run['requests'][0]['requestId']}/answer"
        client.post(answer, json={"decision": "approve"})
        expect(page.get_by_role("link", name="Plan, revision 1")).to_be_visible()
        expect(page.get_by_label("Say something to the agent")).to_have_value("Half a sen")


def test_notes_are_listed_and_filtered(browser: Browser, site: str) -> None:
    with watched(browser, site) as seen:
        seen.page.goto("/memory?status=provisional")
        expect(seen.page.get_by_text("No note fits these filters.")).to_be_visible()
        seen.check()


def test_a_run_is_paused_resumed_forked_and_compared(
    browser: Browser, client: httpx2.Client, site: str
) -> None:
    run = started(client, "looker")
    waits = started(client, "mailer")
    with watched(browser, site) as seen:
        page = seen.page
        page.goto(f"/runs/{waits['id']}")
        page.get_by_role("button", name="Pause").click()
        expect(page.locator("#run")).to_have_attribute("data-state", "resumable")
        seen.check()
        page.get_by_role("button", name="Resume").click()
        expect(page.locator("#run")).to_have_attribute("data-state", "interactive")
        page.goto(f"/runs/{run['id']}")
        page.get_by_text("Fork: go on from an earlier turn").click()
        page.get_by_label("Take this turn anew").fill("9")
        page.get_by_role("button", name="Fork").click()
        expect(page.get_by_role("alert")).to_contain_text("turn")
        page.get_by_text("Fork: go on from an earlier turn").click()
        page.get_by_label("Take this turn anew").fill("2")
        page.get_by_role("button", name="Fork").click()
        expect(
            page.get_by_role("link", name="Compare with what it was forked from")
        ).to_be_visible()
        page.get_by_role("link", name="Compare with what it was forked from").click()
        expect(page.get_by_text("The first 2 turns are the same.")).to_be_visible()
        seen.check()


def test_an_agent_is_tried_out_on_pasted_replies(browser: Browser, site: str) -> None:
    with watched(browser, site) as seen:
        page = seen.page
        page.goto("/agents/mailer")
        page.get_by_label("Task").fill("Mail Ann.")
        page.get_by_text("Dry run: your replies").click()
        page.get_by_label("Replies").fill(
            '{"taskComplete": true, "message": "<script>Tried.</script>"}'
        )
        page.get_by_role("button", name="Play").click()
        expect(page.locator("#tried .turn .prose")).to_have_text("<script>Tried.</script>")
        expect(page.get_by_label("Task")).to_have_value("Mail Ann.")
        seen.check()
