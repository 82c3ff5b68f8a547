"""The inbox and its cards: everything that waits can be found, read and decided, with a script and without."""

from __future__ import annotations

import re

import httpx2
import pytest
from playwright.sync_api import Browser, expect

from tests.web.asking import asked, ended
from tests.web.browser import PHONE, watched


def test_an_action_is_approved_with_the_keyboard_alone(
    browser: Browser, client: httpx2.Client, site: str
) -> None:
    request = asked(client, "mailer")
    with watched(browser, site) as seen:
        page = seen.page
        page.goto("/?agent=mailer")
        expect(page).to_have_title(re.compile(r"^\(\d+\) Inbox"))
        seen.check()
        page.goto(f"/requests/{request['id']}")
        seen.check()
        expect(page.get_by_role("cell", name="ann")).to_be_visible()
        page.keyboard.press("a")
        expect(page.get_by_role("button", name="Approve")).to_be_focused()
        page.keyboard.press("a")
        expect(page.get_by_text("Approved by")).to_be_visible()
        seen.check()
    assert ended(client, request)["message"] == "Mailed."


def test_edited_parameters_run_and_not_those_that_were_proposed(
    browser: Browser, client: httpx2.Client, site: str
) -> None:
    request = asked(client, "mailer")
    with watched(browser, site) as seen:
        page = seen.page
        page.goto(f"/requests/{request['id']}")
        page.keyboard.press("e")
        box = page.get_by_label("Parameters, JSON")
        box.fill('{"to": 7}')
        page.get_by_role("button", name="Approve").click()
        expect(page.get_by_role("alert")).to_contain_text("must be a string")
        expect(box).to_have_value('{"to": 7}')
        box.fill('{"to": "bea"}')
        page.get_by_role("button", name="Approve").click()
        expect(page.get_by_text("Approved by")).to_be_visible()
    run = ended(client, request)
    events = client.get(f"/runs/{run['id']}/events", params={"limit": 1000}).json()["events"]
    (done,) = [one for one in events if one["type"] == "action.completed"]
    assert "bea" in str(done["data"])


def test_the_list_says_in_a_line_what_a_call_is_made_with(client: httpx2.Client, site: str) -> None:
    asked(client, "mailer")
    asked(client, "mapper")
    page = client.get(site).text
    assert 'class="row-gist">to: &#34;ann&#34;</p>' in page
    assert 'class="row-gist">Let somebody pick a place.</p>' in page
    found = client.get(site, params={"q": "pick a place"}).text
    assert "Run open-map in the client" in found
    assert "Run mail?" not in found


def test_lists_without_rows_say_what_to_do(client: httpx2.Client, site: str) -> None:
    for path in ("/", "/runs"):
        page = client.get(f"{site}{path}", params={"agent": "nobody"}).text
        assert f'fits these filters. <a href="{path}">' in page
    assert (
        'No decision fits these filters. <a href="/audit">'
        in client.get(f"{site}/audit?by=nobody").text
    )
    page = client.get(f"{site}/memory?agent=").text
    assert "No notes yet" in page


def test_runs_say_in_words_what_they_wait_for(client: httpx2.Client, site: str) -> None:
    for agent, words in [
        ("mailer", "waits for a decision"),
        ("former", "waits for an answer"),
        ("mapper", "waits for a client"),
    ]:
        run = asked(client, agent)["runId"]
        for path in (f"/runs?agent={agent}", f"/runs/{run}"):
            assert words in client.get(f"{site}{path}").text


def test_a_run_says_what_becomes_of_words_and_what_its_turns_cost(
    client: httpx2.Client, site: str
) -> None:
    run = asked(client, "reader")["runId"]
    client.post(f"/runs/{run}/messages", json={"text": "And be <quick>."})
    page = client.get(f"{site}/runs/{run}").text
    client.post(f"/runs/{run}/cancel", params={"wait": 20}, json={})
    assert "The agent reads before its next turn:" in page
    assert '<li class="text">And be &lt;quick&gt;.</li>' in page
    assert "the most is 940" in page
    assert "<title>turn 1: $0.0021</title>" in page
    run = asked(client, "planner", planMode=True)["runId"]
    page = client.get(f"{site}/runs/{run}").text
    assert "A plan waits: what you say sends it back" in page
    assert "Cost of each turn" not in page


def test_a_plan_says_how_much_of_its_limits_is_used(client: httpx2.Client, site: str) -> None:
    request = asked(client, "planner", planMode=True)
    page = client.get(f"{site}/requests/{request['id']}").text
    assert re.search(r"Turns so far</dt><dd>2 of \d+</dd>", page)


def test_a_plan_is_sent_back_edited_and_approved(
    browser: Browser, client: httpx2.Client, site: str
) -> None:
    request = asked(client, "planner")
    client.post(f"/requests/{request['id']}/answer", json={"decision": "approve"})
    plan = ended(client, request)["requests"][0]
    with watched(browser, site, viewport=PHONE, color_scheme="dark") as seen:
        page = seen.page
        page.goto(f"/requests/{plan['requestId']}")
        seen.check()
        page.get_by_role("button", name="Send back").click()
        expect(page.get_by_label("Feedback for the agent")).to_be_focused()
        page.get_by_label("Feedback for the agent").fill("Not Ann: Bob.")
        page.reload()
        expect(page.get_by_label("Feedback for the agent")).to_have_value("Not Ann: Bob.")
        page.get_by_role("button", name="Send back").click()
        expect(page.get_by_text("Sent back by")).to_be_visible()
        second = ended(client, request)["requests"][0]
        page.goto(f"/requests/{second['requestId']}")
        page.get_by_text("What changed since revision 1").click()
        expect(page.locator(".diff .add").last).to_contain_text("+1. Mail Bob.")
        page.get_by_text("Edit the plan").click()
        page.get_by_label("The whole plan, Markdown").fill("1. Mail **Bob** twice.")
        expect(page.locator("#preview strong")).to_have_text("Bob")
        expect(page.get_by_label("Approve this text instead")).to_be_checked()
        seen.check()
        page.get_by_role("button", name="Approve").click()
        expect(page.get_by_text("Approved by")).to_be_visible()
        page.get_by_text("Edited before it was approved").click()
        expect(page.locator(".resolved .diff .add").last).to_have_text("+1. Mail **Bob** twice.")
        expect(page.get_by_text("Revisions:")).to_contain_text("1 resolved 2 resolved")
    run = ended(client, request)
    assert (run["plan"]["text"], run["plan"]["edited"]) == ("1. Mail **Bob** twice.", True)


@pytest.mark.parametrize("script", [True, False])
def test_a_second_answer_is_told_what_the_first_was(
    browser: Browser, client: httpx2.Client, site: str, *, script: bool
) -> None:
    request = asked(client, "mailer")
    with watched(browser, site, java_script_enabled=script) as seen:
        page = seen.page
        page.goto(f"/requests/{request['id']}")
        client.post(f"/requests/{request['id']}/answer", json={"decision": "approve"})
        page.get_by_label("Feedback for the agent").fill("No.")
        page.get_by_role("button", name="Send back").click()
        expect(page.get_by_role("alert")).to_contain_text("answered already")
        expect(page.get_by_text("Approved by")).to_be_visible()
        expect(page.get_by_role("button", name="Approve")).to_have_count(0)


def test_another_sites_form_is_refused(client: httpx2.Client, site: str) -> None:
    request = asked(client, "mailer")
    for headers in ({"sec-fetch-site": "cross-site"}, {"origin": "https://evil.example"}):
        answer = httpx2.post(
            f"{site}/requests/{request['id']}", data={"decision": "approve"}, headers=headers
        )
        assert answer.status_code == 403
    assert client.get(f"/requests/{request['id']}").json()["status"] == "open"


def test_a_limit_is_raised_in_its_card(browser: Browser, client: httpx2.Client, site: str) -> None:
    limits = {"maxTurns": 1, "whenReached": "ask"}
    body = {"agent": "looker", "message": "Go.", "limits": limits}
    run = client.post("/runs", params={"wait": 20}, json=body).json()
    with watched(browser, site) as seen:
        page = seen.page
        page.goto("/?kind=limit")
        page.get_by_role("link", name="Raise maxTurns?").first.click()
        seen.check()
        expect(page.get_by_text("2, 1 more")).to_be_visible()
        amount = page.get_by_label("Allow in all, turns")
        for wrong in ("many", "1"):
            amount.fill(wrong)
            page.get_by_role("button", name="Raise it and go on").click()
            expect(page.get_by_role("alert")).to_be_visible()
            expect(amount).to_have_value(wrong)
        amount.fill("5")
        page.get_by_role("button", name="Raise it and go on").click()
        expect(page.get_by_text("Approved by")).to_be_visible()
    run = client.get(f"/runs/{run['id']}", params={"wait": 20}).json()
    assert (run["status"], run["message"]) == ("completed", "Seen.")
