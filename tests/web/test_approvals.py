"""The card of an approval with all that an action can say, and taking back what was remembered."""

from __future__ import annotations

import json
from collections.abc import Iterator

import httpx2
import pytest
from playwright.sync_api import Browser, expect

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


def order(**params: object) -> str:
    calls = [{"name": "shop.order", "params": params}]
    return json.dumps({"taskComplete": False, "nextStep": {"type": "Actions", "actions": calls}})


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
        "actions/shop.action.yaml": ACTION,
        "loopagent.toml": SETTINGS,
        "shop.key": "key-for-the-test",
        "agents/buyer.agent.yaml": "name: buyer\nmodel: scripted:scripts/buyer.jsonl\nactions: [shop.order]\n",
        "scripts/buyer.jsonl": "\n".join(REPLIES) + "\n",
    }
    for name, text in texts.items():
        path = folder / "project" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    with serving(folder / "project", folder / "runs.db") as (found, _):
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
        page.set_viewport_size(PHONE)
        seen.check()
        page.get_by_role("button", name="Approve").click()
        expect(page.get_by_text("Approved by")).to_be_visible()
        ended(client, request)
        page.goto(f"/runs/{request['runId']}")
        expect(page.get_by_role("heading", name="Not asked about again")).to_be_visible()
        seen.check()
        page.get_by_role("button", name="Ask again about shop.order").click()
        expect(page.get_by_role("heading", name="Not asked about again")).to_be_hidden()
