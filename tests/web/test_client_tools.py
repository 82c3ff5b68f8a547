"""What a client is to do, answered for by a person: with a form, with JSON, or not at all."""

from __future__ import annotations

import httpx2
import pytest
from playwright.sync_api import Browser, expect

from loopagent.web.client_call import form_of
from tests.web.asking import asked, ended, told
from tests.web.browser import watched


@pytest.mark.parametrize("script", [True, False])
def test_a_result_is_given_by_a_form_made_of_its_schema(
    browser: Browser, client: httpx2.Client, site: str, *, script: bool
) -> None:
    request = asked(client, "mapper")
    with watched(browser, site, java_script_enabled=script) as seen:
        page = seen.page
        page.goto("/?kind=client_tool&sort=newest")
        page.get_by_role("link", name="Run open-map in the client").first.click()
        expect(page.get_by_role("cell", name="Porto")).to_be_visible()
        if script:
            seen.check()
        page.get_by_label("Name of the place needed").fill("Serralves")
        page.get_by_label("km needed").fill("-1")
        page.get_by_label("Yes").check()
        page.get_by_role("button", name="Give this result").click()
        expect(page.locator("#km-error")).to_contain_text("at least 0")
        expect(page.get_by_label("Name of the place needed")).to_have_value("Serralves")
        page.get_by_label("km needed").fill("2.5")
        page.get_by_role("button", name="Give this result").click()
        expect(page.get_by_text("the operator took care of it")).to_be_visible()
        if script:
            seen.check()
    assert ended(client, request)["message"] == "Done."
    (done,) = told(client, request, "client_tool.completed")
    assert done["result"] == {"name": "Serralves", "km": 2.5, "walkable": True}


def test_a_result_is_given_as_json_or_the_call_fails_with_a_reason(
    browser: Browser, client: httpx2.Client, site: str
) -> None:
    first, second = asked(client, "mapper"), asked(client, "mapper")
    with watched(browser, site) as seen:
        page = seen.page
        page.goto(f"/requests/{first['id']}")
        page.get_by_text("Give it as JSON instead").click()
        for text, complaint in (("{", "not JSON"), ('{"name": "x"}', "km")):
            page.get_by_label("Result, JSON").fill(text)
            page.get_by_role("button", name="Give this JSON").click()
            expect(page.get_by_role("alert")).to_contain_text(complaint)
            expect(page.get_by_label("Result, JSON")).to_have_value(text)
        page.get_by_label("Result, JSON").fill('{"name": "x", "km": 1}')
        page.get_by_role("button", name="Give this JSON").click()
        expect(page.get_by_text("took care of it")).to_be_visible()
        page.goto(f"/requests/{second['id']}")
        page.get_by_text("It cannot be done").click()
        page.get_by_role("button", name="Tell that it failed").click()
        expect(page.get_by_label("Why")).to_be_focused()
        page.get_by_label("Why").fill("No map here.")
        page.get_by_role("button", name="Tell that it failed").click()
        expect(page.get_by_text("It failed: No map here.")).to_be_visible()
        seen.check()
    assert [ended(client, one)["message"] for one in (first, second)] == ["Done.", "Done."]


def test_a_client_that_keeps_its_calls_for_itself_is_not_answered_for(
    client: httpx2.Client, site: str
) -> None:
    body = {"agent": "mapper", "message": "Go.", "clientTools": []}
    headers = {"Client-Session": "only this client"}
    run = client.post("/runs", params={"wait": 20}, json=body, headers=headers).json()
    path = f"{site}/requests/{run['requests'][0]['requestId']}"
    page = httpx2.get(path).text
    assert "nobody else may answer" in page
    assert "Give this result" not in page
    sent = {"decision": "json", "result": '{"name": "x", "km": 1}'}
    assert httpx2.post(path, data=sent).status_code == 403
    assert httpx2.post(path, data={"decision": "approve"}).status_code == 400


def test_only_simple_schemas_become_forms() -> None:
    simple = {"type": "string", "maxLength": 500}
    assert form_of(simple) == {
        "questions": [
            {
                "id": "result",
                "label": "result",
                "required": True,
                "helpText": None,
                "defaultValue": None,
                "type": {"type": "textarea", "maxLength": 500},
            }
        ]
    }
    for other in (
        None,
        {},
        {"type": "object"},
        {"type": ["string", "null"]},
        {"type": "array", "items": {"type": "string"}},
        {"type": "object", "properties": {"a": {"type": "array"}}},
        {"type": "object", "properties": {"a": {"type": "string"}}, "minProperties": 1},
    ):
        assert form_of(other) is None
