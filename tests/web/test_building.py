"""Making drafts in the page: from curl, from OpenAPI, from MCP servers; secrets by name; trying drafts out."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.web.browser import PHONE, watched
from tests.web.building import DOCUMENT, NAME, TOKEN, building, document


if TYPE_CHECKING:
    import httpx2

    from tests.fakes.web import Web

CURL = (
    "curl -X POST {url}/orders -H 'Authorization: Bearer pasted-CANARY-1' --json '{{\"item\": 7}}'"
)
TEXT = """\
name: {name}
description: Lists orders.
effects: {effects}
# who pays
secrets: [shop_token]
params:
  type: object
  required: [state]
  properties:
    state: {{enum: [open, done]}}
egress: {{hosts: [127.0.0.1], ports: [{port}]}}
run:
  kind: http
  method: {method}
  url: http://127.0.0.1:{port}/orders
  query: {{state: {{from: params.state}}}}
  auth: {{type: bearer, token: {{secret: shop_token}}}}
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, httpx2.Client, Web]]:
    with building(tmp_path_factory.mktemp("building")) as found:
        yield found


@pytest.fixture
def shop(built: tuple[str, httpx2.Client, Web]) -> Web:
    built[2].seen.clear()
    return built[2]


@pytest.fixture
def here(built: tuple[str, httpx2.Client, Web]) -> str:
    return built[0]


def make(page: Page, name: str, text: str) -> None:
    """Save a text as a draft, through the page."""
    page.goto("/actions/new/curl")
    page.get_by_label("Command").fill("curl http://127.0.0.1/")
    page.get_by_role("button", name="Show what comes of it").click()
    page.get_by_label("The action").fill(text)
    page.get_by_label("Name").fill(name)
    page.get_by_role("button", name="Save as draft").click()
    page.goto(f"/actions/{name}/test")


def listing(shop: Web, name: str, effects: str = "read", method: str = "GET") -> str:
    return TEXT.format(name=name, port=shop.port, effects=effects, method=method)


def test_curl_to_draft_to_test_without_scripts(browser: Browser, here: str, shop: Web) -> None:
    with watched(browser, here, java_script_enabled=False, viewport=PHONE) as seen:
        page = seen.page
        page.goto("/actions/new/curl")
        page.get_by_label("Command").fill("wget x")
        page.get_by_role("button", name="Show what comes of it").click()
        expect(page.get_by_role("alert")).to_be_visible()
        page.get_by_label("Command").fill(CURL.format(url=shop.url))
        page.get_by_label("Name").fill("orders.plain")
        page.get_by_role("button", name="Show what comes of it").click()
        assert "CANARY" not in page.content()
        expect(page.get_by_text("Bearer [secret 127_0_0_1_token]")).to_be_visible()
        expect(page.get_by_text("not set up")).to_be_visible()
        expect(page.get_by_text("there are no parameters yet")).to_be_visible()
        text = (
            page.get_by_label("The action").input_value().replace("127_0_0_1_token", "shop_token")
        )
        page.get_by_label("The action").fill(text)
        page.get_by_role("button", name="Save as draft").click()
        page.goto("/actions/orders.plain/test")
        page.get_by_role("button", name="Send", exact=True).click()
        assert shop.seen == [], "nothing is sent before it was confirmed"
        page.get_by_role("button", name="Send it for real").click()
        assert [one.headers["authorization"] for one in shop.seen] == [f"Bearer {TOKEN}"]
        assert TOKEN not in page.content()
        page.locator("#expression").fill("body.lines[0].total")
        page.get_by_role("button", name="Apply").click()
        expect(page.locator("#selected")).to_have_text(re.compile(r"^\s*12\s*$"))
        width = page.locator("html").bounding_box()
        assert width is not None
        assert width["width"] <= PHONE["width"]


def test_a_request_is_shown_and_sent(browser: Browser, here: str, shop: Web) -> None:
    with watched(browser, here) as seen:
        page = seen.page
        make(page, "orders.read", listing(shop, "orders.read"))
        before = len(shop.seen)
        page.get_by_role("button", name="Show the request").click()
        expect(page.locator(".question .error").first).to_contain_text("missing")
        page.get_by_label("state").select_option("open")
        page.get_by_role("button", name="Show the request").click()
        expect(page.get_by_text("Bearer [secret shop_token]")).to_be_visible()
        assert len(shop.seen) == before
        page.get_by_role("button", name="Send", exact=True).click()
        expect(page.get_by_text("57 bytes")).to_be_visible()
        seen.check()
        expression, found = page.locator("#expression"), page.locator("#selected")
        expression.fill("body.rows[?total > 10].id")
        expect(found).to_contain_text("numbers stand in backticks")
        expression.fill("body.rows[?total > `10`].id")
        expect(found).to_contain_text("2")


def test_a_call_is_kept(browser: Browser, built: tuple[str, httpx2.Client, Web]) -> None:
    here, client, shop = built
    with watched(browser, here, java_script_enabled=False) as seen:
        page = seen.page
        make(page, "orders.list", listing(shop, "orders.list"))
        page.get_by_label("state").select_option("open")
        page.get_by_role("button", name="Send", exact=True).click()
        page.locator("#expression").fill("body.rows[?total > `10`].id")
        page.get_by_role("button", name="Use as").click()
        expect(page.get_by_text("The draft selects this now.")).to_be_visible()
        for kind, said in (("example", "an example"), ("test", "a test")):
            page.get_by_label("What it shows").fill("dear ones")
            page.get_by_role("button", name=f"Save as {kind}").click()
            expect(page.get_by_text(f"Saved as {said}")).to_be_visible()
        page.get_by_role("button", name="Run the tests").click()
        expect(page.get_by_text("passed")).to_be_visible()
        page.get_by_role("button", name="Save as test").click()
        expect(page.get_by_role("alert")).to_contain_text("choose another")
    text = client.get("/actions/orders.list/draft").json()["draft"]
    assert "# who pays\nsecrets: [shop_token]\n" in text
    assert "body.rows[?total > `10`].id" in text
    assert text.count("name: dear ones") == 2


def test_what_changes_something_is_confirmed_and_stale_drafts_are_told(
    browser: Browser, here: str, shop: Web
) -> None:
    with watched(browser, here) as seen:
        page = seen.page
        make(page, "orders.drop", listing(shop, "orders.drop", "irreversible", "DELETE"))
        page.get_by_text("All of them as JSON").click()
        page.get_by_label("Parameters, JSON").fill('{"state": "done"}')
        before = len(shop.seen)
        page.get_by_role("button", name="Send", exact=True).click()
        expect(page.get_by_role("heading", name="Send it for real?")).to_be_visible()
        seen.check()
        page.get_by_label("Parameters, JSON").fill('{"state": "open"}')
        page.get_by_role("button", name="Send it for real").click()
        expect(page.get_by_role("alert")).to_contain_text("not what was shown")
        assert len(shop.seen) == before
        page.get_by_role("button", name="Send it for real").click()
        expect(page.get_by_text("http_404", exact=True)).to_be_visible()
        assert [one.target for one in shop.seen[before:]] == ["/orders?state=open"]
        page.evaluate("document.querySelector('[name=hash]').value = 'f'.repeat(64)")
        page.get_by_label("What it shows").fill("none of that name")
        page.get_by_role("button", name="Save as test").click()
        expect(page.get_by_role("alert")).to_contain_text("changed")


def look(page: Page, text: str, prefix: str = "shop") -> None:
    """Look at what a document holds."""
    page.goto("/actions/new/openapi")
    page.locator("#document").fill(text)
    page.get_by_text("Names and servers").click()
    page.get_by_label("Names begin with").fill(prefix)
    page.get_by_role("button", name="Show what it holds").click()


def test_operations_are_picked_and_become_drafts(browser: Browser, here: str, shop: Web) -> None:
    with watched(browser, here) as seen:
        page = seen.page
        look(page, document(shop))
        expect(page.get_by_text("leads to another document")).to_be_visible()
        expect(page.get_by_label("shop.get_odd")).to_be_disabled()
        expect(page.locator(".pick", has_text="shop.drop_order")).to_contain_text("irreversible")
        seen.check()
        page.get_by_label("Only those with").fill("post")
        expect(page.get_by_label("shop.list_orders")).to_be_hidden()
        page.get_by_label("shop.add_order").check()
        expect(page.get_by_text("1 of 4 picked")).to_be_visible()
        page.locator(".pick", has_text="shop.add_order").get_by_text("Another name").click()
        page.get_by_label("Name of the action").locator("visible=true").fill("shop.order")
        page.get_by_role("button", name="Save the picked").click()
        expect(page.get_by_role("heading", name="1 draft saved")).to_be_visible()
        page.goto("/actions/shop.order/test")
        expect(page.get_by_role("button", name="Send", exact=True)).to_be_visible()


def test_importing_again_shows_what_is_different(browser: Browser, here: str, shop: Web) -> None:
    with watched(browser, here) as seen:
        page = seen.page
        row = page.locator(".pick", has_text="again.add_order")
        look(page, document(shop), "again")
        row.get_by_role("checkbox").check()
        page.get_by_role("button", name="Save the picked").click()
        paths: dict[str, Any] = {**DOCUMENT["paths"]}
        paths["/orders"] = {"post": {"operationId": "addOrder", "summary": "Orders it."}}
        look(page, document(shop, paths=paths), "again")
        expect(row).to_contain_text("different now")
        row.get_by_text("What is different").click()
        expect(row).to_contain_text("+description: Orders it.")
        row.get_by_role("checkbox").check()
        page.get_by_role("button", name="Save the picked").click()
        look(page, document(shop, paths=paths), "again")
        expect(row).to_contain_text("saved")
        look(page, document(shop, paths={"/odd": paths["/odd"]}), "again")
        expect(page.get_by_role("link", name="again.add_order")).to_be_visible()


def test_an_address_is_fetched_only_when_that_was_confirmed(
    browser: Browser, here: str, shop: Web
) -> None:
    with watched(browser, here, java_script_enabled=False) as seen:
        page = seen.page
        page.goto("/actions/new/openapi")
        page.locator("#address").fill(f"{shop.url}/openapi.json")
        before = len(shop.seen)
        page.get_by_role("button", name="Show what it holds").click()
        expect(page.get_by_text("Nothing has been fetched yet")).to_be_visible()
        assert len(shop.seen) == before
        page.get_by_role("button", name="Fetch it").click()
        expect(page.get_by_text("shop.list_orders")).to_be_visible()
        assert len(shop.seen) == before + 1
        page.get_by_label("Only those with").fill("delete")
        page.get_by_role("button", name="Filter").last.click()
        expect(page.get_by_text("shop.list_orders")).to_be_hidden()
        expect(page.get_by_text("shop.drop_order")).to_be_visible()
        assert len(shop.seen) == before + 1, "the document goes along"


def test_a_file_is_uploaded_and_faults_are_told(browser: Browser, here: str, shop: Web) -> None:
    with watched(browser, here) as seen:
        page = seen.page
        for name, content in (("old.json", '{"swagger": "2.0"}'), ("x.json", document(shop))):
            page.goto("/actions/new/openapi")
            file = {"name": name, "mimeType": "application/json", "buffer": content.encode()}
            page.locator("#file").set_input_files(files=[file])  # type: ignore[list-item]
            page.get_by_role("button", name="Show what it holds").click()
            if name == "old.json":
                expect(page.get_by_role("alert")).to_contain_text("Swagger 2.0")
        expect(page.get_by_text("shop.list_orders")).to_be_visible()
        page.get_by_role("button", name="Save the picked").click()
        expect(page.get_by_role("alert")).to_contain_text("Pick at least one")
        expect(page.get_by_text("shop.list_orders")).to_be_visible()


def test_tools_of_a_server_become_drafts(browser: Browser, here: str) -> None:
    with watched(browser, here, viewport=PHONE, color_scheme="dark") as seen:
        page = seen.page
        page.goto("/actions/new/mcp")
        seen.check()
        page.get_by_role("link", name="mailbox").click()
        row = page.locator(".pick", has_text="mailbox.look")
        row.get_by_text("Schema and annotations").click()
        expect(row).to_contain_text("readOnlyHint")
        row.get_by_role("checkbox").check()
        seen.check()
        page.get_by_role("button", name="Save the picked").click()
        page.goto("/actions/new/mcp/mailbox")
        expect(row).to_contain_text("As it was when mailbox.look was reviewed")
        page.goto("/actions/mailbox.look/test")
        page.get_by_label("order").fill("7")
        page.get_by_role("button", name="Show the request").click()
        expect(page.get_by_text("arguments")).to_be_visible()
        page.get_by_role("button", name="Send", exact=True).click()
        expect(page.get_by_text("done", exact=True)).to_be_visible()
        page.goto("/actions/new/mcp/unknown")
        expect(page.get_by_role("alert")).to_contain_text("no MCP server")


def test_secrets_are_listed_without_values(browser: Browser, here: str, shop: Web) -> None:
    with watched(browser, here) as seen:
        page = seen.page
        make(page, "orders.secret", listing(shop, "orders.secret"))
        page.goto("/secrets")
        rows = page.locator(".row")
        expect(rows.filter(has_text="shop_token").first).to_contain_text("set")
        expect(rows.filter(has_text="shop_token").first).to_contain_text("orders.secret")
        expect(rows.filter(has_text="unset")).to_contain_text("missing")
        seen.check()
        assert TOKEN not in page.content()


def test_the_same_over_http(built: tuple[str, httpx2.Client, Web]) -> None:
    _, client, shop = built
    secrets = client.get("/secrets").json()["secrets"]
    assert {one["name"]: one["state"] for one in secrets}["shop_token"] == "set"
    assert TOKEN not in json.dumps(secrets)
    [server] = client.get("/mcp-servers").json()["servers"]
    assert (server["name"], server["transport"]) == ("mailbox", "http")
    tools = client.post("/actions/import/mcp", json={"server": "mailbox"}).json()["tools"]
    assert {one["tool"]: one["state"] for one in tools}["drop"] == "new"
    assert client.post("/actions/import/mcp", json={"server": "x"}).status_code == 422
    asked = {"document": document(shop), "name": "api", "pick": ["add*"], "save": True}
    made = client.post("/actions/import/openapi", json=asked).json()
    assert (made["saved"], made["gone"]) == ({"api.add_order": ""}, [])
    again = client.post("/actions/import/openapi", json={**asked, "pick": ["*"], "save": False})
    changes = {one["name"]: one["change"] for one in again.json()["operations"]}
    assert (changes["api.add_order"], changes["api.drop_order"]) == ("same", "new")
    assert client.post("/actions/import/openapi", json={**asked, "pick": []}).status_code == 422
    found = client.post(
        "/actions/select", json={"expression": "a[?b > `1`].b", "data": {"a": [{"b": 2}]}}
    )
    assert found.json() == {"value": [2]}
    wrong = client.post("/actions/select", json={"expression": "a[?b > 1]", "data": {}})
    assert (wrong.status_code, "backticks" in wrong.json()["detail"]) == (422, True)


def build_and_publish(page: Page, shop: Web) -> None:
    """Build an action from curl, test it, and publish it to an agent."""
    page.goto("/actions")
    page.get_by_role("link", name="New action").click()
    page.get_by_role("link", name="From curl").click()
    page.get_by_label("Command").fill(CURL.format(url=shop.url))
    page.get_by_label("Name").fill(NAME)
    page.get_by_role("button", name="Show what comes of it").click()
    text = page.get_by_label("The action").input_value()
    page.get_by_label("The action").fill(text.replace("127_0_0_1_token", "shop_token"))
    page.get_by_role("button", name="Save as draft").click()
    page.get_by_role("link", name="Test", exact=True).click()
    page.get_by_role("button", name="Send", exact=True).click()
    page.get_by_role("button", name="Send it for real").click()
    expect(page.get_by_text("201", exact=True)).to_be_visible()
    page.get_by_label("What it shows").fill("as it was")
    page.get_by_role("button", name="Save as test").click()
    page.get_by_role("button", name="Run the tests").click()
    expect(page.get_by_text("passed")).to_be_visible()
    page.get_by_role("link", name="Publish", exact=True).click()
    page.get_by_label("buyer").check()
    page.get_by_role("button", name="Publish", exact=True).click()
    expect(page.get_by_text("It is published")).to_be_visible()


def test_what_was_built_is_used_after_approval(
    browser: Browser, built: tuple[str, httpx2.Client, Web]
) -> None:
    here, client, shop = built
    with watched(browser, here) as seen:
        page = seen.page
        build_and_publish(page, shop)
        before = len(shop.seen)
        page.goto("/agents/buyer")
        page.get_by_label("Task").fill("Order it.")
        page.get_by_role("button", name="Start").click()
        page.locator(".asks a").click()
        page.get_by_text("The request, exactly").click()
        expect(page.get_by_text(f"{shop.url}/orders")).to_be_visible()
        expect(page.get_by_text("Bearer [secret shop_token]")).to_be_visible()
        seen.check()
        assert len(shop.seen) == before
        page.get_by_role("button", name="Approve").click()
        expect(page.get_by_text("Approved by")).to_be_visible()
        page.get_by_role("link", name=re.compile("run, turn")).click()
        expect(page.get_by_text("Ordered.").first).to_be_visible()
    assert [(one.method, one.target, one.json) for one in shop.seen[before:]] == [
        ("POST", "/orders", {"item": 7})
    ]
    assert shop.seen[-1].headers["authorization"] == f"Bearer {TOKEN}"
    [run] = client.get("/runs").json()["runs"]
    assert (run["status"], TOKEN in json.dumps(run)) == ("completed", False)
