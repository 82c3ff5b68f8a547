"""Actions of kind `openapi`: an operation of a document beside the file, called, tested and refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from loopagent.actions.build import FileAction, make_action
from loopagent.actions.preview import preview
from loopagent.errors import ConfigError
from loopagent.trials.action_tests import run_action_test
from tests.actions.making import Secrets, call, means, read
from tests.fakes.web import Got, Reply, Web, as_json


pytestmark = pytest.mark.anyio
DOCUMENT: dict[str, Any] = {
    "openapi": "3.1.0",
    "info": {"title": "Shop", "version": "1"},
    "servers": [{"url": "https://api.shop.example"}],
    "paths": {
        "/orders/{id}": {
            "get": {
                "operationId": "getOrder",
                "parameters": [
                    {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}},
                    {"name": "full", "in": "query", "schema": {"type": "boolean"}},
                ],
            }
        }
    },
}
FILE = """\
name: look
description: Looks.
effects: read
secrets: [shop]
egress: {{hosts: [127.0.0.1], ports: [{port}]}}
run:
  kind: openapi
  spec: shop.json
  operation: {operation}
  server: http://127.0.0.1:{port}
  auth: {{type: bearer, token: {{secret: shop}}}}
errors: [{{when: "status == `404`", code: NOT_FOUND}}]
result: {{select: body.path}}
tests:
  - name: asks for it
    params: {{id: a/1, full: true}}
    mock: [{{request: {{method: GET, path: /orders/a%2F1, query: {{full: "true"}}}}, response: {{json: {{path: x}}}}}}]
    expect: {{result: x}}
"""


@pytest.fixture
def web() -> Iterator[Web]:
    def answer(got: Got) -> Reply:
        return as_json({"path": got.target, "token": got.headers["authorization"]})

    with Web(answer) as running:
        yield running


def made(folder: Path, port: int, operation: str = "getOrder", **more: str) -> FileAction:
    (folder / "shop.json").write_text(json.dumps(DOCUMENT))
    text = FILE.format(port=port, operation=operation)
    for before, after in more.items():
        text = text.replace(before, after)
    store = Secrets(shop="CANARY-1")
    return make_action(read(text), means(secrets=store), folder / "look.action.yaml")


async def test_it_is_called_like_http(tmp_path: Path, web: Web) -> None:
    action = made(tmp_path, web.port)
    assert list(action.spec.parameters["properties"]) == ["id", "full"]
    assert (await call(action, {"id": "a/1"})).value == "/orders/a%2F1"
    shown = preview(action.sent, {"id": "7", "full": True})
    assert shown["url"] == f"http://127.0.0.1:{web.port}/orders/7?full=true"


def test_its_own_tests_run(tmp_path: Path) -> None:
    action = made(tmp_path, 8080)
    file = action.file
    result = run_action_test(file, file.tests[0], means=means(), path=action.path)
    assert result.problems == []


def test_what_does_not_fit_is_said(tmp_path: Path) -> None:
    for operation, more, said in (
        ("getOrders", {}, "did you mean getOrder?"),
        ("getOrder", {"hosts: [127.0.0.1]": "hosts: [x.example]"}, "egress.hosts"),
        ("getOrder", {"spec: shop.json": "spec: ../shop.json"}, "has to lie"),
        ("getOrder", {"spec: shop.json": "spec: none.json"}, "cannot be read"),
        ("getOrder", {"server: http://127.0.0.1": "server: ftp://127.0.0.1"}, "no whole address"),
    ):
        with pytest.raises(ConfigError) as caught:
            made(tmp_path, 8080, operation, **more)
        assert said in str(caught.value)
