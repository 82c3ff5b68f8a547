"""A real browser, and what every page is held to: no complaint of the browser, no violation of accessibility rules."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from typing import Any

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    expect,
    sync_playwright,
)


FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
PHONE = {"width": 390, "height": 844}
WAIT_MS = 20_000
expect.set_options(timeout=WAIT_MS)


@contextmanager
def launched() -> Iterator[Browser]:
    """Chromium, as the system has it."""
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        missing = "there is no chromium; on Debian: apt-get install chromium"
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)
    expect.set_options(timeout=WAIT_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


class Watched:
    """A page, and what the browser complained about on it."""

    def __init__(self, context: BrowserContext) -> None:
        self.complaints: list[str] = []
        self.page: Page = context.new_page()
        self.page.set_default_timeout(WAIT_MS)
        self.page.on("console", self._hear)
        self.page.on("pageerror", lambda error: self.complaints.append(f"uncaught: {error}"))

    def _hear(self, message: ConsoleMessage) -> None:
        refused = "Failed to load resource" in message.text  # a refusal that a test provokes
        if message.type in {"error", "warning"} and not refused:
            self.complaints.append(f"{message.type}: {message.text}")

    def check(self) -> None:
        """Complain about whatever the browser complained about, and about accessibility."""
        found = [*self.complaints, *violations(self.page)]
        assert not found, "\n".join(found)


@contextmanager
def watched(browser: Browser, base_url: str, **options: Any) -> Iterator[Watched]:
    """A page in a fresh context; at the end it must have had no complaints."""
    context = browser.new_context(base_url=base_url, **options)
    try:
        one = Watched(context)
        yield one
        assert not one.complaints, "\n".join(one.complaints)
    finally:
        context.close()


def violations(page: Page, only: list[str] | None = None) -> list[str]:
    """What axe finds on the page as it is, one line each; by these rules alone, if any are named."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8"))
    wanted = {"type": "rule", "values": only} if only else {"type": "tag", "values": RULES}
    # What passes is not described, and style sheets are not fetched again: no rule of these needs it.
    options = {"runOnly": wanted, "resultTypes": ["violations"], "preload": False}
    found = page.evaluate("(options) => axe.run(document, options)", options)
    return [
        f"{one['id']}: {one['help']}: {[node['html'][:200] for node in one['nodes']]}"
        for one in found["violations"]
    ]
