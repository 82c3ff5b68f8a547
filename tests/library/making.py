"""A library over a store, with agents that take its actions and a server that they may call."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from loopagent import Agent, App, action
from loopagent.errors import RequestError
from tests.actions.making import means


TEXT = """\
# sends a letter
name: {name}
description: Sends a letter.
effects: external
egress: {{hosts: [api.example.com]}}
params:
  type: object
  required: [to]
  additionalProperties: false
  properties: {{to: {{type: string}}}}
run: {{kind: http, method: POST, url: "https://api.example.com/{path}", body: {{to: {{from: params.to}}}}}}
tests:
  - name: sends
    params: {{to: ann}}
    mock: [{{request: {{method: POST, path: /{path}, json: {{to: ann}}}}, response: {{json: {{ok: true}}}}}}]
    expect: {{result: {{ok: true}}}}
"""
PIPELINE = """\
name: {name}
description: Two letters.
effects: external
params: {{type: object, properties: {{}}}}
run:
  kind: pipeline
  steps: [{{id: first, action: {step}, with: {{to: ann}}}}]
"""


def text(name: str = "mail.send", path: str = "v1/letters") -> str:
    return TEXT.format(name=name, path=path)


@action(effects="read")
def look(place: str) -> str:
    """Look."""
    return place


def agents() -> list[Agent[Any]]:
    options: dict[str, Any] = {"model": "scripted:none.yaml", "actions": [look]}
    stubborn = Agent("stubborn", instructions="Work.", accepts_actions=False, **options)
    return [Agent("clerk", instructions="Work.", **options), stubborn]


@asynccontextmanager
async def opened(store: Any = "memory://", **more: Any) -> AsyncIterator[App]:
    given: dict[str, Any] = {"agents": agents(), "env": {}, "means": means(), **more}
    async with App(store=store, **given) as app:
        yield app


async def published(app: App, name: str = "mail.send", said: str = "", **more: Any) -> None:
    """Save and publish an action for the clerk of a tenant."""
    given: dict[str, Any] = {"tenant": "acme", "agents": ["clerk"], **more}
    tenant = given.pop("tenant")
    known = {one.name: one.draft_hash for one in await app.library.list(tenant)}
    said = said or text(name)
    row = await app.library.save(tenant, name, said, expected_hash=known.get(name), by="ann")
    await app.library.publish(tenant, name, draft_hash=row.draft_hash, by="ann", **given)


async def code_of(doing: Any) -> str:
    """The code with which something is refused."""
    try:
        await doing
    except RequestError as error:
        return error.code
    return "done"
