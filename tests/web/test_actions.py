"""Building actions in the page: form and text of one document, checks, publishing, versions, conflicts."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import httpx2
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.web.browser import PHONE, watched


TEXT = """\
# Greets people.
apiVersion: loopagent/v1
kind: Action
name: {name}
title: Greeting
description: Says hello.   # for the model
effects: read
params:
  type: object
  required: [who]
  properties:
    # as they are called
    who: {{type: string}}
run:
  kind: prompt
  template: "Greet {{{{ params.who }}}}."
"""


def post(site: str, path: str, **fields: Any) -> httpx2.Response:
    """A plain form post, as a browser without scripts sends it."""
    return httpx2.post(f"{site}{path}", data=fields, follow_redirects=True)


def hash_in(page: str) -> str:
    """The hash of the draft that a page was made of."""
    found = re.search(r'name="hash" value="(\w*)"', page)
    assert found is not None, page
    return found[1]


def text_in(page: str) -> str:
    """The text that the editor shows."""
    found = re.search(r'<textarea id="text"[^>]*>\n(.*?)</textarea>', page, re.DOTALL)
    assert found is not None, page
    return unescape(found[1])


def build(site: str, name: str, text: str = "") -> str:
    """Keep an action of this name; returns its text."""
    text = text or TEXT.format(name=name)
    page = post(site, "/actions/new", name=name, kind="prompt")
    saved = post(site, f"/actions/{name}/edit", hash=hash_in(page.text), text=text, do="save")
    assert "The draft is saved" in saved.text
    return text


def publish(site: str, name: str, *agents: str, note: str = "") -> None:
    page = httpx2.get(f"{site}/actions/{name}/publish")
    fields = {"hash": hash_in(page.text), "agent": list(agents), "note": note, "do": "published"}
    assert "It is published" in post(site, f"/actions/{name}/publish", **fields).text


def text_of(page: Page) -> str:
    return page.locator("#text").input_value()


def fill_in(page: Page, name: str) -> None:
    """A new action out of its form alone."""
    page.goto("/actions/new")
    page.get_by_label("Name needed").fill(name)
    page.get_by_label("prompt Asks a model").check()
    page.get_by_role("button", name="Begin").click()
    expect(page.get_by_role("link", name="2 wrong")).to_be_visible()
    page.get_by_label("Name of a new parameter").fill("who")
    page.get_by_role("button", name="Add parameter").click()
    expect(page.get_by_role("group", name="Parameter who")).to_be_visible()
    page.get_by_label("Description needed").fill("Says hello.")
    page.get_by_label("Template needed").fill("Greet {{ params.who }}.\nBe brief.")
    page.get_by_role("group", name="Parameter who").get_by_label("Required").check()


@pytest.mark.parametrize("script", [True, False])
def test_an_action_is_built_with_the_form_and_published(
    browser: Browser, site: str, *, script: bool
) -> None:
    name = f"greet.{'live' if script else 'plain'}"
    with watched(browser, site, java_script_enabled=script) as seen:
        page = seen.page
        fill_in(page, name)
        if script:
            expect(page.locator("#checks")).to_contain_text("No complaints")
            assert "required: [who]" in text_of(page)
            seen.check()
        page.get_by_role("button", name="Save draft").click()
        expect(page.get_by_text("The draft is saved.")).to_be_visible()
        assert "    Greet {{ params.who }}.\n    Be brief." in text_of(page)
        assert "  # read, write, external" in text_of(page)
        page.get_by_role("button", name="Publish…").click()
        page.get_by_label("looker").check()
        page.get_by_label("What is new").fill("The first.")
        if script:
            seen.check()
        page.get_by_role("button", name="Publish", exact=True).click()
        expect(page.get_by_text("version 1 is live")).to_be_visible()
        expect(page.get_by_role("link", name="looker")).to_be_visible()
    rows = httpx2.get(f"{site}/actions", params={"q": name, "state": "published"}).text
    assert "used by looker" in rows


def test_text_and_form_follow_each_other_and_checks_lead_to_their_line(
    browser: Browser, site: str
) -> None:
    text = build(site, "greet.both")
    with watched(browser, site) as seen:
        page = seen.page
        page.goto("/actions/greet.both/edit")
        page.locator("#text").fill(text.replace("title: Greeting", "titla: Hallo\ntags: [a]"))
        expect(page.locator("#checks")).to_contain_text("did you mean title?")
        expect(page.get_by_text("not saved")).to_be_visible()
        page.get_by_role("link", name="line 5").click()
        assert page.evaluate("document.getSelection().toString()") in {"", "titla: Hallo"}
        chosen = "[text.selectionStart, text.selectionEnd].join()"
        assert page.evaluate(
            f"(() => {{ const {{text}} = document.forms.editor; return {chosen} }})()"
        ) == (f"{text.index('title')},{text.index('title') + len('titla: Hallo')}")
        expect(page.locator("#gutter")).to_contain_text("17")
        page.locator("#text").fill(text)
        page.get_by_label("Title", exact=True).fill("Hello")
        page.get_by_label("Effects needed").select_option("external")
        expect(page.locator("#text")).to_have_value(
            text.replace("Greeting", "Hello").replace("effects: read", "effects: external")
        )
        page.get_by_label("Name needed").fill("person")
        page.get_by_label("Name needed").press("Enter")
        expect(page.locator("#text")).to_have_value(re.compile(r"# as they are called\n +person: "))
        page.keyboard.press("Control+s")
        expect(page.get_by_text("The draft is saved.")).to_be_visible()


def test_who_saves_second_loses_nothing(browser: Browser, site: str) -> None:
    text = build(site, "greet.two")
    with watched(browser, site, viewport=PHONE, color_scheme="dark") as seen:
        page = seen.page
        page.goto("/actions/greet.two/edit")
        seen.check()
        edited = httpx2.get(f"{site}/actions/greet.two/edit").text
        theirs = text.replace("Says hello.", "Says hello to all.")
        post(site, "/actions/greet.two/edit", hash=hash_in(edited), text=theirs, do="save")
        page.get_by_label("Title", exact=True).fill("Mine")
        page.get_by_role("button", name="Save draft").click()
        expect(page.get_by_role("alert")).to_contain_text("Nothing of yours is lost")
        expect(page.get_by_label("Theirs")).to_have_value(theirs)
        expect(page.get_by_label("Yours")).to_have_value(text.replace("Greeting", "Mine"))
        expect(page.locator(".diff .add").first).to_contain_text("+title: Mine")
        seen.check()
        both = theirs.replace("Greeting", "Mine")
        page.get_by_label("Yours").fill(both)
        page.get_by_role("button", name="Save yours over theirs").click()
        expect(page.locator("#text")).to_have_value(both)


def test_versions_are_compared_and_published_again(browser: Browser, site: str) -> None:
    text = build(site, "greet.old")
    publish(site, "greet.old", "looker", note="The first.")
    edited = httpx2.get(f"{site}/actions/greet.old/edit").text
    shout = text.replace("Says hello.", "Shouts.")
    post(site, "/actions/greet.old/edit", hash=hash_in(edited), text=shout, do="save")
    publish(site, "greet.old", "looker")
    with watched(browser, site) as seen:
        page = seen.page
        page.on("dialog", lambda dialog: dialog.accept())
        page.goto("/actions/greet.old/versions?a=1&b=2")
        expect(page.locator(".diff .add")).to_contain_text("+description: Shouts.")
        seen.check()
        page.get_by_role("button", name="Publish version 1 again").click()
        expect(page.get_by_text("The older version is published again.")).to_be_visible()
        expect(page.locator("#text")).to_have_value(text)
        page.get_by_text("Copy, rename, retire, delete").click()
        page.get_by_role("button", name="Retire").click()
        expect(page.get_by_text("It is retired")).to_be_visible()
        page.get_by_text("Copy, rename, retire, delete").click()
        page.get_by_role("button", name="Delete").click()
        expect(page).to_have_url(f"{site}/actions")
        expect(page.get_by_text("greet.old")).to_have_count(0)
        seen.check()


def test_what_is_typed_badly_stays_where_it_was_typed(site: str) -> None:
    text = build(site, "greet.odd")
    edited = httpx2.get(f"{site}/actions/greet.odd/edit").text
    fields = {"hash": hash_in(edited), "base": text, "text": text, "do": "save"}
    page = post(site, "/actions/greet.odd/edit", **fields, **{"f.limits.perRun": "many"}).text
    assert "&#39;many&#39; is no whole number" in page
    assert 'value="many"' in page
    broken = post(
        site, "/actions/greet.odd/edit", **{**fields, "text": "a: [", "base": "a: ["}
    ).text
    assert "The draft is saved" in broken
    assert "so there is no form" in broken
    refused = post(site, "/actions/greet.odd/publish", hash=hash_in(broken), do="published")
    assert refused.status_code == 422
    assert "not right yet" in refused.text


def test_documents_are_kept_with_an_action_that_needs_one(site: str) -> None:
    page = post(site, "/actions/new", name="shop.order", kind="openapi").text
    text = text_in(page)
    document = '{"openapi": "3.1.0", "info": {"title": "Shop", "version": "1"}, "paths": {}}'
    fields = {"base": text, "text": text, "document.name": "api.json", "document.text": document}
    page = post(site, "/actions/shop.order/edit", hash=hash_in(page), do="document", **fields).text
    assert "The draft is saved with its documents." in page
    assert f"{len(document)} characters" in page
    fields |= {"document.name": "../etc"}
    refused = post(site, "/actions/shop.order/edit", hash=hash_in(page), do="document", **fields)
    assert "is no name of a document" in refused.text
    fields = {"base": text, "text": text, "f.title": "Order", "do": "undocument api.json"}
    page = post(site, "/actions/shop.order/edit", hash=hash_in(page), **fields).text
    assert "Remove the document" not in page
    assert "title: Order" in text_in(page)


def test_names_that_are_taken_or_odd_are_refused_on_the_page(site: str) -> None:
    build(site, "greet.taken")
    for name, kind, said in (
        ("greet.taken", "prompt", "choose another name"),
        ("Not A Name", "prompt", "is no name of an action"),
        ("greet.else", "python", "Choose one of the kinds"),
    ):
        page = post(site, "/actions/new", name=name, kind=kind)
        assert page.status_code >= 400
        assert said in page.text
        assert f'value="{name}"' in page.text
    for act, said in (("rename", "no name of an action"), ("shout", "Choose one of the buttons")):
        assert said in post(site, "/actions/greet.taken/manage", do=act, new_name="?").text
    renamed = post(site, "/actions/greet.taken/manage", do="rename", new_name="greet.other")
    assert "name: greet.other" in renamed.text
    copied = post(site, "/actions/new", **{"from": "greet.other", "name": "greet.copy"})
    assert "name: greet.copy" in copied.text
    assert post(site, "/actions/new", **{"from": "look", "name": "greet.code"}).status_code == 422
    assert httpx2.get(f"{site}/actions/greet.taken").status_code == 404


def test_the_list_says_what_there_is_and_who_uses_it(browser: Browser, site: str) -> None:
    build(site, "greet.listed")
    build(site, "greet.faulty", "name: [")
    with watched(browser, site) as seen:
        page = seen.page
        page.goto("/actions")
        seen.check()
        page.get_by_label("Search").fill("greeting listed")
        page.get_by_label("Kind").select_option("prompt")
        page.get_by_role("button", name="Show").click()
        expect(page).to_have_url(re.compile("q=greeting"))
        expect(page.locator(".row")).to_have_count(1)
        expect(page.locator(".row")).to_contain_text("not used")
        page.goto("/actions?kind=code&agent=looker")
        page.get_by_role("link", name="look", exact=True).click()
        expect(page.get_by_text("comes from the project's files")).to_be_visible()
        seen.check()
    assert "greet.faulty" in httpx2.get(f"{site}/actions?q=faulty").text
    assert "Nothing fits" in httpx2.get(f"{site}/actions?q=nothing-like-it").text
