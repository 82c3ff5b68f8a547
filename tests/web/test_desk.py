"""Who takes care of a request, what is put off, views that are kept, and calls that are approved together."""

from __future__ import annotations

import re

import httpx2
import pytest
from playwright.sync_api import Browser, expect

from tests.web.asking import asked, ended, looked_at, told
from tests.web.browser import watched


@pytest.mark.parametrize("script", [True, False])
def test_a_request_is_claimed_given_away_and_taken_over(
    browser: Browser, client: httpx2.Client, site: str, *, script: bool
) -> None:
    request = asked(client, "mailer")
    with watched(browser, site, java_script_enabled=script) as seen:
        page = seen.page
        page.goto("/?agent=mailer&sort=newest")
        page.get_by_role("button", name="Claim: Run mail?").first.click()
        expect(page.get_by_text("yours").first).to_be_visible()
        assert looked_at(client, request["id"])["holder"] == "human"
        page.goto(f"/requests/{request['id']}")
        expect(page.get_by_text("You take care of this")).to_be_visible()
        page.get_by_text("Give it to somebody, or put it off").click()
        page.get_by_label("Name").fill("bob")
        page.get_by_role("button", name="Assign").click()
        expect(page.get_by_role("note")).to_contain_text("bob takes care of this")
        if script:
            seen.check()
        page.on("dialog", lambda dialog: dialog.accept())
        page.get_by_role("button", name="Take over").click()
        page.get_by_role("button", name="Release").click()
        expect(page.get_by_text("Nobody takes care of this yet.")).to_be_visible()
        client.post(f"/requests/{request['id']}/assign", json={"to": "bob"})
        page.get_by_role("button", name="Approve").click()  # a claim of somebody else only warns
        expect(page.get_by_text("Approved by")).to_be_visible()
    holders = [one["holder"] for one in told(client, request, "request.claimed")]
    assert holders == ["human", "human:bob", "human", "human:bob"]


def test_what_is_put_off_leaves_the_list_and_views_are_kept(
    browser: Browser, client: httpx2.Client, site: str
) -> None:
    request = asked(client, "planner")
    row = f"#row-{re.sub('[:.]', '-', request['id'])}"
    with watched(browser, site) as seen:
        page = seen.page
        page.goto(f"/requests/{request['id']}")
        page.get_by_text("Give it to somebody, or put it off").click()
        page.get_by_label("Put off for").select_option(label="4 hours")
        page.get_by_role("button", name="Put off").click()
        expect(page.get_by_text("back in 3 h 59 min")).to_be_visible()
        page.goto("/?agent=planner")
        expect(page.locator(row)).to_have_count(0)
        page.get_by_role("link", name="1 put off").click()
        expect(page.locator(row)).to_be_visible()
        page.get_by_text("Keep this view").click()
        page.get_by_label("Name").fill("Later <b>")
        page.get_by_role("button", name="Keep", exact=True).click()
        page.goto("/")
        seen.check()
        page.get_by_role("navigation", name="Views").get_by_role("link", name="Later <b>").click()
        expect(page.locator(row)).to_be_visible()
        assert "snoozed=only" in page.url
        page.get_by_text("Keep this view").click()
        page.get_by_role("button", name="Remove “Later <b>”").click()
        expect(page.get_by_role("navigation", name="Views")).to_have_count(0)
        page.goto(f"/requests/{request['id']}")
        page.get_by_role("button", name="Have it back now").click()
        expect(page.get_by_text("Put off:")).to_have_count(0)


def test_calls_that_only_read_are_approved_together_and_no_others(
    browser: Browser, client: httpx2.Client, site: str
) -> None:
    for one in client.get("/requests", params={"status": "open"}).json()["requests"]:
        if one["agent"] == "reader":  # of other tests
            client.post(f"/requests/{one['id']}/answer", json={"decision": "terminate"})
    reads = [asked(client, "reader") for _ in range(3)]
    write = asked(client, "mailer")
    with watched(browser, site) as seen:
        page = seen.page
        page.goto("/")
        expect(page.get_by_text("calls of mail")).to_have_count(0)
        page.get_by_role("link", name="3 calls of look").click()
        expect(page.locator("tbody tr")).to_have_count(3)
        expect(page.locator("tbody pre").first).to_have_text(re.compile(r'"item": 7'))
        seen.check()
        page.get_by_label("Call 2").uncheck()
        client.post(f"/requests/{reads[2]['id']}/answer", json={"decision": "terminate"})
        page.get_by_role("button", name="Approve those that are ticked").click()
        expect(page.get_by_text("approved", exact=True)).to_have_count(1)
        expect(page.get_by_text("answered already: terminate")).to_have_count(1)
        seen.check()
    assert ended(client, reads[0])["message"] == "Done."
    assert looked_at(client, reads[1]["id"])["status"] == "open"
    item = f"{write['id']}|1|{write['body']['contentHash']}"
    refused = httpx2.post(f"{site}/approve", data={"item": item, "action": "mail"})
    assert refused.status_code == 422
    assert looked_at(client, write["id"])["status"] == "open"
    for bad in ("x", "a|b|c"):
        assert httpx2.post(f"{site}/approve", data={"item": bad}).status_code == 400


def test_an_unknown_button_is_refused(client: httpx2.Client, site: str) -> None:
    request = asked(client, "mailer")
    path = f"{site}/requests/{request['id']}/desk"
    answers = [httpx2.post(path, data={"do": do}) for do in ("", "snooze")]
    assert [one.status_code for one in answers] == [400, 422]
