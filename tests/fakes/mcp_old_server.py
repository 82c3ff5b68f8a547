"""A real MCP server of the era before 2026, as a program over standard input and output."""

from __future__ import annotations

import json
import sys
from typing import Any


TOOLS = [
    {
        "name": "look",
        "description": "Looks.",
        "inputSchema": {"type": "object", "properties": {"order": {"type": "string"}}},
    },
    {"name": "ask", "description": "Asks.", "inputSchema": {"type": "object"}},
]


def send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def answer(given: dict[str, Any]) -> None:
    method, params = given.get("method"), given.get("params") or {}
    if method == "initialize":
        about = {"name": "old", "version": "1"}
        result = {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": about,
        }
        send({"id": given["id"], "result": result})
    elif method == "tools/list":
        send({"id": given["id"], "result": {"tools": TOOLS}})
    elif method == "tools/call" and params["name"] == "ask":
        schema = {"type": "object", "properties": {"sure": {"type": "boolean"}}}
        question = {"mode": "form", "message": "Really?", "requestedSchema": schema}
        send({"id": "q1", "method": "elicitation/create", "params": question})
        said = json.loads(sys.stdin.readline())
        text = f"they said {said['result']['action']}"
        send({"id": given["id"], "result": {"content": [{"type": "text", "text": text}]}})
    elif method == "tools/call":
        text = f"order {params['arguments'].get('order')}"
        send({"id": given["id"], "result": {"content": [{"type": "text", "text": text}]}})
    elif "id" in given:
        send({"id": given["id"], "error": {"code": -32601, "message": "no such method"}})


for line in sys.stdin:
    answer(json.loads(line))
