"""What holds on every page: nothing that axe finds, in light and dark; and the keyboard."""

from __future__ import annotations

import re

import httpx2
from playwright.sync_api import Browser, expect

from tests.web.asking import asked, ended
from tests.web.browser import violations, watched


OPEN_ALL = "document.querySelectorAll('main details').forEach((one) => { one.open = true; })"


def test_every_page_is_accessible_in_light_and_dark(
    browser: Browser, client: httpx2.Client, site: str
) -> None:
    requests = [asked(client, one) for one in ("mailer", "mapper", "reader", "reader")]
    client.post(f"/requests/{requests[0]['id']}/answer", json={"decision": "approve"})
    run = ended(client, requests[0])["id"]
    pages = ["/signin", "/?agent=reader", "/?agent=mailer&status=resolved", "/runs?agent=mapper"]
    pages += [f"/runs/{run}", f"/runs/{run}/turns/1"]
    pages += [f"/runs/{run}/explain", f"/compare?a={run}&b={run}", "/agents", "/agents/mailer"]
    pages += ["/memory", "/artifacts", "/nowhere", "/approve?action=look"]
    pages += [f"/requests/{one['id']}" for one in requests]
    found: list[str] = []
    with watched(browser, site) as seen:
        for path in pages:
            seen.page.goto(path)
            seen.page.evaluate(OPEN_ALL)
            found += [f"{path}: {one}" for one in violations(seen.page)]
            seen.page.emulate_media(color_scheme="dark")
            found += [f"{path}, dark: {one}" for one in violations(seen.page, ["color-contrast"])]
            seen.page.emulate_media(color_scheme="light")
    assert not found, "\n".join(found)


def test_the_menu_shows_where_one_is(browser: Browser, client: httpx2.Client, site: str) -> None:
    request = asked(client, "mailer")
    with watched(browser, site, viewport={"width": 390, "height": 844}) as seen:
        for path, label in (
            (f"/requests/{request['id']}", "Inbox"),
            ("/notifications", "Notifications"),
        ):
            seen.page.goto(path)
            expect(seen.page.locator(".top nav [aria-current]")).to_contain_text(label)
            expect(seen.page.locator(".top nav [aria-current]")).to_be_in_viewport(ratio=1)


def test_a_hundred_runs_are_listed_page_by_page(
    browser: Browser, client: httpx2.Client, site: str
) -> None:
    for number in range(100):
        client.post("/runs", json={"agent": "looker", "message": f"Number {number}."})
    with watched(browser, site) as seen:
        page = seen.page
        page.goto("/runs?agent=looker")
        expect(page.locator(".row")).to_have_count(50)
        listed = page.locator(".row-title").all_text_contents()
        page.get_by_role("link", name="Older").click()
        expect(page.get_by_role("link", name="Number 0.", exact=True)).to_be_visible()
        listed += page.locator(".row-title").all_text_contents()
    assert listed[:100] == [f"Number {number}." for number in reversed(range(100))]


def test_the_keyboard_leads_everywhere(browser: Browser, client: httpx2.Client, site: str) -> None:
    asked(client, "mailer")
    with watched(browser, site) as seen:
        page, keys = seen.page, seen.page.keyboard
        page.goto("/runs")
        expect(page.locator("#badge")).to_have_text(re.compile(r"^\d+$"))
        expect(page).to_have_title(re.compile(r"^\(\d+\) Runs"))
        keys.press("?")
        expect(page.get_by_role("dialog")).to_be_visible()
        seen.check()
        keys.press("g")
        keys.press("i")  # a dialog is no place to go elsewhere from
        expect(page).to_have_url(f"{site}/runs")
        keys.press("Escape")
        expect(page.get_by_role("dialog")).to_be_hidden()
        for key, there in (("a", "/agents"), ("r", "/runs"), ("i", "/")):
            keys.press("g")
            keys.press(key)
            expect(page).to_have_url(site + there)


def test_the_keyboard_finds_opens_and_fills_a_card(
    browser: Browser, client: httpx2.Client, site: str
) -> None:
    for _ in range(2):
        asked(client, "mailer")
    with watched(browser, site) as seen:
        page, keys = seen.page, seen.page.keyboard
        page.goto("/?agent=mailer&sort=newest&status=open")
        search, feedback = page.get_by_label("Search"), page.get_by_label("Feedback for the agent")
        keys.press("/")
        keys.type("jg?")
        expect(search).to_have_value("jg?")
        keys.press("Escape")
        for key, row in (("j", 0), ("j", 1), ("k", 0)):
            keys.press(key)
            expect(page.locator(".row-title").nth(row)).to_be_focused()
        keys.press("Enter")
        expect(page).to_have_url(re.compile("/requests/"))
        keys.press("r")
        keys.type("aa")  # in a field letters are letters
        expect(feedback).to_have_value("aa")
        for key in ("Escape", "a", "j", "a"):  # not twice in a row
            keys.press(key)
        expect(page.get_by_role("button", name="Approve")).to_be_focused()
        keys.press("e")
        expect(page.get_by_label("Parameters, JSON")).to_be_focused()
