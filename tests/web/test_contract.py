"""The contract of decisions in the page: late, stale, doubled, raced and without a connection."""

from __future__ import annotations

import httpx2
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.web.asking import asked, ended, looked_at, told
from tests.web.browser import PHONE, watched
from tests.web.cuttable import cuttable


def test_a_request_that_expired_stays_readable_and_takes_no_answer(
    browser: Browser, client: httpx2.Client, site: str
) -> None:
    run = client.post("/runs", params={"wait": 60}, json={"agent": "hasty", "message": "Go."})
    while run.json()["status"] != "completed":
        run = client.get(f"/runs/{run.json()['id']}", params={"wait": 60})
    (request,) = client.get(
        "/requests", params={"runId": run.json()["id"], "status": "expired"}
    ).json()["requests"]
    with watched(browser, site) as seen:
        page = seen.page
        page.goto("/?status=expired")
        page.get_by_role("link", name="Run blink in the client").first.click()
        expect(page.locator(".resolved strong")).to_have_text("Expired")
        expect(page.get_by_role("group", name="Answer for the client")).to_have_count(0)
        seen.check()
    late = httpx2.post(f"{site}/requests/{request['id']}", data={"decision": "json", "result": "1"})
    assert late.status_code == 410
    assert "is over" in late.text


@pytest.mark.parametrize("script", [True, False])
def test_a_request_that_was_cancelled_meanwhile_takes_no_answer(
    browser: Browser, client: httpx2.Client, site: str, *, script: bool
) -> None:
    request = asked(client, "mailer")
    with watched(browser, site, java_script_enabled=script) as seen:
        page = seen.page
        page.goto(f"/requests/{request['id']}")
        client.post(f"/runs/{request['runId']}/cancel", json={})
        with page.expect_response("**/requests/*") as answer:
            page.get_by_role("button", name="Approve").click()
        assert answer.value.status == 410
        expect(page.get_by_role("alert")).to_contain_text("no longer needs an answer")
        expect(page.locator(".resolved strong")).to_have_text("Cancelled")
        expect(page.get_by_role("button", name="Approve")).to_have_count(0)
        if script:
            seen.check()


def test_a_card_tells_by_itself_what_others_do(
    browser: Browser, client: httpx2.Client, site: str
) -> None:
    request = asked(client, "mailer")
    looks = "document.dispatchEvent(new Event('visibilitychange'))"
    with watched(browser, site) as seen:
        page = seen.page
        page.goto(f"/requests/{request['id']}")
        page.get_by_label("Feedback for the agent").fill("Half a sen")
        client.post(f"/requests/{request['id']}/assign", json={"to": "mia"})
        page.evaluate(looks)
        expect(page.get_by_role("note")).to_contain_text("mia takes care of this")
        expect(page.get_by_label("Feedback for the agent")).to_have_value("Half a sen")
        client.post(f"/requests/{request['id']}/answer", json={"decision": "approve"})
        page.evaluate(looks)
        expect(page.get_by_text("Approved by")).to_be_visible()
        expect(page.get_by_role("button", name="Approve")).to_be_hidden()
        seen.check()


def test_a_double_click_decides_once(browser: Browser, client: httpx2.Client, site: str) -> None:
    request = asked(client, "mailer")
    with watched(browser, site) as seen:
        page = seen.page
        page.goto(f"/requests/{request['id']}")
        page.get_by_role("button", name="Approve").dblclick(no_wait_after=True)
        expect(page.get_by_text("Approved by")).to_be_visible()
        expect(page.get_by_role("alert")).to_have_count(0)
    assert ended(client, request)["message"] == "Mailed."
    assert len(told(client, request, "request.resolved")) == 1
    # Without a script both clicks arrive; whoever said the same before is shown what became of it.
    sent = {"decision": "approve", "revision": "1"}
    again = httpx2.post(f"{site}/requests/{request['id']}", data=sent)
    assert (again.status_code, again.headers["location"].endswith("?decided=1")) == (303, True)
    assert len(told(client, request, "request.resolved")) == 1


def test_of_two_browsers_one_decides_and_both_are_told_so(
    browser: Browser, client: httpx2.Client, site: str
) -> None:
    request = asked(client, "mailer")
    with watched(browser, site) as first, watched(browser, site) as second:
        pages = [first.page, second.page]
        for page in pages:
            page.goto(f"/requests/{request['id']}")
        pages[1].get_by_label("Feedback for the agent").fill("No.")
        pages[0].get_by_role("button", name="Approve").click(no_wait_after=True)
        pages[1].get_by_role("button", name="Send back").click(no_wait_after=True)
        for page in pages:
            expect(page.locator(".resolved strong")).to_be_visible()
        outcomes = {page.locator(".resolved strong").text_content() for page in pages}
        refused = [page.get_by_role("alert").count() for page in pages]
    (done,) = told(client, request, "request.resolved")
    assert outcomes == {{"approve": "Approved", "reject": "Sent back"}[done["decision"]]}
    assert sorted(refused) == [0, 1]


def test_without_a_connection_nothing_is_sent_and_nothing_is_lost(
    browser: Browser, client: httpx2.Client, site: str
) -> None:
    request = asked(client, "mailer")
    with watched(browser, site) as seen:
        page = seen.page
        page.goto(f"/requests/{request['id']}")
        page.get_by_label("Feedback for the agent").fill("To Bob, please.")
        page.context.set_offline(True)
        expect(page.get_by_text("You are offline.", exact=False).first).to_be_visible()
        page.get_by_role("button", name="Send back").click()
        expect(page.get_by_label("Feedback for the agent")).to_have_value("To Bob, please.")
        seen.check()
        assert looked_at(client, request["id"])["status"] == "open"
        page.context.set_offline(False)
        expect(page.locator("#offline")).to_be_hidden()
        page.get_by_role("button", name="Send back").click()
        expect(page.get_by_text("Sent back by")).to_be_visible()
    assert looked_at(client, request["id"])["resolution"]["feedback"] == "To Bob, please."


def test_a_page_of_a_run_goes_on_where_its_connection_broke(
    browser: Browser, client: httpx2.Client, site: str
) -> None:
    request = asked(client, "mailer")
    with cuttable(site) as line, watched(browser, line.url) as seen:
        page = seen.page
        with page.expect_request("**/stream*"):
            page.goto(f"/runs/{request['runId']}")
        line.cut()
        client.post(f"/requests/{request['id']}/answer", json={"decision": "approve"})
        assert ended(client, request)["message"] == "Mailed."
        expect(page.locator("#run")).to_have_attribute("data-state", "interactive")
        with page.expect_request("**/stream*"):
            line.mend()
        expect(page.locator("#run")).to_have_attribute("data-state", "idle")
        expect(page.get_by_text("Mailed.", exact=True).first).to_be_visible()
        seen.complaints = [one for one in seen.complaints if "net::" not in one]


def in_view(page: Page, name: str) -> bool:
    """Whether a button can be seen without scrolling."""
    box = page.get_by_role("button", name=name).bounding_box()
    assert box is not None
    return box["y"] >= 0 and box["y"] + box["height"] <= PHONE["height"]


def test_on_a_phone_the_decision_stays_at_hand(
    browser: Browser, client: httpx2.Client, site: str
) -> None:
    plan = client.post(
        "/runs", params={"wait": 20}, json={"agent": "planner", "message": "Go.", "planMode": True}
    ).json()["requests"][0]
    with watched(browser, site, viewport=PHONE, has_touch=True, is_mobile=True) as seen:
        page = seen.page
        page.goto(f"/requests/{plan['requestId']}")
        for scrolled in (0, 400, 100_000):
            page.evaluate("(to) => window.scrollTo(0, to)", scrolled)
            assert all(in_view(page, one) for one in ("Approve", "Send back", "Stop the run"))
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        seen.check()
        page.get_by_role("button", name="Approve").tap()
        expect(page.get_by_text("Approved by")).to_be_visible()
