"""`loopagent demo`, as somebody tries it: a plan card waits in the page, then a loop, a form, and the end."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys

from playwright.sync_api import Browser, expect

from tests.http.server import ROOT
from tests.web.browser import watched


def test_the_demo_is_decided_in_the_page(browser: Browser) -> None:
    command = [sys.executable, "-m", "loopagent", "demo", "--port", "0", "--no-open"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env={**os.environ, "COLUMNS": "300"}
    )
    try:
        assert process.stdout is not None
        said = "".join(process.stdout.readline() for _ in range(3))
        found = re.search(r"listening on .*\npages on .*\n.*(http://[^/]+)(/runs/\S+)", said)
        assert found is not None, said
        with watched(browser, found[1]) as seen:
            page = seen.page
            page.goto(found[2])
            page.get_by_role("link", name="Plan, revision 1").click()
            expect(page.get_by_role("heading", name="Notices about late orders")).to_be_visible()
            seen.check()
            page.get_by_role("button", name="Approve").click()
            expect(page.get_by_text("Approved by")).to_be_visible()
            page.get_by_role("link", name=re.compile("run, turn")).click()
            page.locator(".asks a").click()
            seen.check()
            page.locator("button[value=answer]").click()
            expect(page.get_by_text("Answered by")).to_be_visible()
            page.goto(found[2])
            expect(page.locator("#run")).to_have_attribute("data-state", "idle")
            expect(page.get_by_text("All four notices are drafted").first).to_be_visible()
            expect(page.get_by_text("4 of 4 done")).to_be_visible()
            seen.check()
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    assert process.returncode == 0
