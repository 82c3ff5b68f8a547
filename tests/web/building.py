"""A server with everything that building actions needs: a network to call, a secret, an MCP server, an agent."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.fakes.web import Got, Reply, Web, as_json
from tests.http.server import serving


if TYPE_CHECKING:
    import httpx2

TOKEN = "tok-CANARY-4711"
NAME = "orders.create"
FAKE = Path(__file__).parent.parent / "fakes" / "mcp_server.py"
SETTINGS = """\
[egress]
privateNetworks = ["127.0.0.0/8"]

[credentials.shop_token]
env = "SHOP_TOKEN"
hosts = ["127.0.0.1"]

[credentials.unset]
env = "NOBODY_SETS_THIS"
hosts = ["api.shop.example"]

[mcp.mailbox]
url = "http://127.0.0.1:{port}/mcp"
"""
DOCUMENT: dict[str, Any] = {
    "openapi": "3.1.0",
    "info": {"title": "Shop"},
    "paths": {
        "/orders": {
            "get": {"operationId": "listOrders", "tags": ["orders"]},
            "post": {"operationId": "addOrder", "tags": ["orders"]},
        },
        "/orders/{id}": {
            "delete": {
                "operationId": "dropOrder",
                "parameters": [
                    {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
                ],
            }
        },
        "/odd": {
            "get": {"parameters": [{"$ref": "https://elsewhere.example/p.json"}]},
        },
    },
}


def document(web: Web, **changes: Any) -> str:
    """An OpenAPI document of the server."""
    return json.dumps({**DOCUMENT, "servers": [{"url": web.url}], **changes})


def answer(got: Got) -> Reply:
    """A shop: orders are made, its document is there, all else is not."""
    if got.target.startswith("/openapi.json"):
        return as_json({**DOCUMENT, "servers": [{"url": f"http://{got.headers['host']}"}]})
    if got.method == "POST":
        sent = json.loads(got.body or b"{}")
        return as_json({"id": 5, "item": sent.get("item"), "lines": [{"total": 12}]}, 201)
    if got.method == "GET" and got.target.startswith("/orders"):
        return as_json({"rows": [{"id": 1, "total": 9}, {"id": 2, "total": 30}]})
    return as_json({"why": "nothing here"}, 404)


def wait_until_open(port: int) -> None:
    """Wait until somebody listens."""
    for _ in range(1_200):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise TimeoutError(port)


@contextmanager
def mailbox() -> Iterator[int]:
    """The port of an MCP server."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    with subprocess.Popen([sys.executable, str(FAKE), "http", str(port)]) as process:
        try:
            wait_until_open(port)
            yield port
        finally:
            process.terminate()


@contextmanager
def building(folder: Path) -> Iterator[tuple[str, httpx2.Client, Web]]:
    """The address of the pages, a client of the API, and the network."""
    project = folder / "project"
    (project / "agents").mkdir(parents=True)
    (project / "agents" / "buyer.agent.yaml").write_text(
        "name: buyer\nmodel: scripted:script.jsonl\n"
    )
    call = {"type": "Actions", "actions": [{"name": NAME, "params": {}}]}
    turns = [
        {"taskComplete": False, "message": "Ordering.", "nextStep": call},
        {"taskComplete": True, "message": "Ordered."},
    ]
    (project / "script.jsonl").write_text("".join(json.dumps(one) + "\n" for one in turns))
    with mailbox() as port, Web(answer) as web:
        (project / "loopagent.toml").write_text(SETTINGS.format(port=port))
        with serving(project, folder / "runs.db", SHOP_TOKEN=TOKEN) as (client, _):
            yield str(client.base_url).partition("/api")[0], client, web
