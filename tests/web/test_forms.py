"""A form with every type of question: drawn, filled in beforehand, refused field by field, answered with typed values."""

from __future__ import annotations

import httpx2
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.web.asking import asked, ended, looked_at
from tests.web.browser import PHONE, watched


def fill(page: Page) -> None:
    """Answer everything, one number too large."""
    page.get_by_label("Text needed").fill("hello")
    page.get_by_label("Mail").fill("ann@example.org")
    page.get_by_label("Number").fill("11")
    page.get_by_label("Money").fill("9.5")
    page.get_by_label("Day", exact=True).fill("2026-12-24")
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
    browser: Browser, client: httpx2.Client, site: str, *, script: bool
) -> None:
    request = asked(client, "former")
    with watched(browser, site, viewport=PHONE, java_script_enabled=script) as seen:
        page = seen.page
        page.goto(f"/requests/{request['id']}")
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
    stored = looked_at(client, request["id"])
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
    assert ended(client, request)["message"] == "Done."


def test_a_draft_outlives_a_reload_and_ends_with_the_answer(
    browser: Browser, client: httpx2.Client, site: str
) -> None:
    request = asked(client, "former")
    with watched(browser, site) as seen:
        page = seen.page
        page.goto(f"/requests/{request['id']}")
        page.get_by_label("Text needed").fill("half")
        page.get_by_label("Drop").select_option(label="Yes")
        page.reload()
        expect(page.get_by_label("Text needed")).to_have_value("half")
        expect(page.get_by_label("Drop")).to_have_value("true")
        page.get_by_role("button", name="Send it").click()
        expect(page.get_by_text("Answered by")).to_be_visible()
        assert page.evaluate("sessionStorage.length") == 0
