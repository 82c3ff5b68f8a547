"""The card of an approval with all that an action can say, and taking back what was remembered."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from playwright.sync_api import Browser, expect

from tests.folders import filled
from tests.http.server import serving
from tests.web.browser import PHONE, watched
from tests.web.test_inbox import asked, ended


ACTION = """\
name: shop.order
title: Order
description: Orders something at the shop.
effects: external
approval:
  policy: ask
  when: "params.count > `1`"
  show: [count]
  expires: 24h
  approvers: ["scope:admin"]
  remember: session
params:
  type: object
  required: [item, count]
  additionalProperties: false
  properties: {item: {type: string}, count: {type: integer}, note: {type: string}}
secrets: [key]
egress: {hosts: [127.0.0.1], ports: [9]}
run:
  kind: http
  method: POST
  url: http://127.0.0.1:9/orders/{item}
  auth: {type: bearer, token: {secret: key}}
  body: {count: {from: params.count}, note: {from: params.note}}
"""
SETTINGS = """\
[egress]
privateNetworks = ["127.0.0.0/8"]
[credentials.key]
file = "shop.key"
hosts = ["127.0.0.1"]
"""


FAKE = Path(__file__).parent.parent / "fakes" / "mcp_server.py"
SERVER = f"""\
[mcp.shop]
command = {json.dumps(sys.executable)}
args = {json.dumps([str(FAKE), "stdio"])}
"""
ASKING = """\
---
name: shop.ask
description: Asks first.
effects: read
params: {type: object}
run: {kind: mcp, server: shop, tool: ask}
timeout: 60s
---
name: shop.pay
description: Has somebody pay first.
effects: read
params: {type: object}
run: {kind: mcp, server: shop, tool: pay}
timeout: 60s
"""


def call(name: str, **params: object) -> str:
    calls = [{"name": name, "params": params}]
    return json.dumps({"taskComplete": False, "nextStep": {"type": "Actions", "actions": calls}})


def order(**params: object) -> str:
    return call("shop.order", **params)


AGENT = "name: {name}\nmodel: scripted:scripts/{name}.jsonl\nactions: [shop.order, shop.ask, shop.pay]\n"
REPLIES = [
    order(item="a b", count=90, note="soon"),
    order(item="a b", count=9, note="soon"),
    '{"taskComplete": true, "message": "Ordered."}',
]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx2.Client]:
    """A client of a server whose agent orders at a shop that is closed."""
    folder = tmp_path_factory.mktemp("approvals")
    texts = {
        "actions/shop.action.yaml": ACTION + ASKING,
        "loopagent.toml": SETTINGS + SERVER,
        "agents/asker.agent.yaml": AGENT.format(name="asker"),
        "scripts/asker.jsonl": f"{call('shop.ask', order='9')}\n{call('shop.pay')}\n",
        "shop.key": "key-for-the-test",
        "agents/buyer.agent.yaml": AGENT.format(name="buyer"),
        "scripts/buyer.jsonl": "\n".join(REPLIES) + "\n",
    }
    with serving(filled(folder / "project", **texts), folder / "runs.db") as (found, _):
        yield found


def test_the_card_shows_what_the_action_says_and_what_is_different(
    browser: Browser, client: httpx2.Client, site: str
) -> None:
    request = asked(client, "buyer")
    with watched(browser, site) as seen:
        page = seen.page
        page.goto(f"/requests/{request['id']}")
        expect(page.get_by_text("params.count > `1` holds.")).to_be_visible()
        expect(page.get_by_text("scope:admin")).to_be_visible()
        first = page.locator("table.params tbody tr").first
        expect(first).to_contain_text("count")
        page.get_by_text("The request, exactly").click()
        expect(page.get_by_text("Bearer [secret key]")).to_be_visible()
        page.get_by_label("Feedback for the agent").fill("far too many")
        page.get_by_role("button", name="Send back").click()
        expect(page.get_by_text("Sent back", exact=True)).to_be_visible()
        ended(client, request)
        page.goto("/")
        page.locator("main a", has_text="Run shop.order?").first.click()
        expect(page.get_by_role("heading", name="Different from before")).to_be_visible()
        expect(page.get_by_role("cell", name="90")).to_be_visible()
        page.get_by_label("Not in this run").check()
        seen.check()
        page.set_viewport_size({"width": PHONE["width"], "height": PHONE["height"]})
        seen.check()
        page.get_by_role("button", name="Approve").click()
        expect(page.get_by_text("Approved by")).to_be_visible()
        ended(client, request)
        page.goto(f"/runs/{request['runId']}")
        expect(page.get_by_role("heading", name="Not asked about again")).to_be_visible()
        seen.check()
        page.get_by_role("button", name="Ask again about shop.order").click()
        expect(page.get_by_role("heading", name="Not asked about again")).to_be_hidden()


def test_a_server_s_question_is_a_form_or_an_address_that_nobody_opens_by_itself(
    browser: Browser, client: httpx2.Client, site: str
) -> None:
    request = asked(client, "asker")
    with watched(browser, site) as seen:
        page = seen.page
        page.goto(f"/requests/{request['id']}")
        expect(page.get_by_text("Really 9?")).to_be_visible()
        expect(page.get_by_role("button", name="Decline")).to_be_visible()
        page.get_by_label("Yes").check()
        seen.check()
        page.get_by_role("button", name="Submit").or_(
            page.get_by_role("button", name="Answer")
        ).click()
        expect(page.get_by_text("Answered", exact=True)).to_be_visible()
        run = ended(client, request)
        page.goto(f"/requests/{run['requests'][0]['requestId']}")
        link = page.get_by_role("link", name="https://pay.example/7?x=1")
        expect(link).to_have_attribute("rel", "noopener noreferrer nofollow")
        expect(page.get_by_text("pay.example", exact=True)).to_be_visible()
        seen.check()
        page.get_by_role("button", name="Decline").click()
        expect(page.get_by_text("Declined", exact=True)).to_be_visible()
