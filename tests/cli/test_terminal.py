"""A person at a real terminal: what is asked there, and what becomes of what is typed."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.cli.terminal import terminal


FAKES = Path(__file__).parent.parent / "fakes"
AGENT = """
name: picker
model: scripted:picker.jsonl
clientTools: [{name: pick, effects: read, result: {type: object, required: [file]}}]
"""
SCRIPT = """
{"nextStep": {"type": "ClientTools", "clientTools": [{"name": "pick"}, {"name": "pick"}]}}
{"taskComplete": true, "message": "Picked."}
"""


def test_the_person_at_the_terminal_stands_in_for_the_client(tmp_path: Path) -> None:
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "picker.agent.yaml").write_text(AGENT)
    (tmp_path / "picker.jsonl").write_text(SCRIPT.lstrip())
    asks = "Result, as JSON or text"
    with terminal("run", "picker", "Go.", "--project", str(tmp_path)) as shown:
        shown.answer(asks, '{"name": "a.txt"}')  # not what the tool's schema wants
        shown.until("/result/file: is required")
        shown.answer(asks, '{"file": "a.txt"}')
        shown.answer(asks, "")
        shown.answer("Why", "no file there")
    assert "Picked." in shown.seen
    assert "no file there" in shown.seen


BUYER = """
name: buyer
model: scripted:buyer.jsonl
actions: [shop.ask]
"""
BUYS = """
{"nextStep": {"type": "Actions", "actions": [{"name": "shop.ask", "params": {}}]}}
{"taskComplete": true, "message": "Bought."}
"""
ASKS = """
name: shop.ask
description: Asks in the middle of its work.
effects: external
approval: {policy: auto}
timeout: 60s
params: {type: object, properties: {}}
run: {kind: mcp, server: shop, tool: ask}
"""


def shop(folder: Path) -> Path:
    """A project whose action is a tool of a server that keeps its calls open while it asks."""
    for name in ("agents", "actions"):
        (folder / name).mkdir()
    (folder / "agents" / "buyer.agent.yaml").write_text(BUYER)
    (folder / "actions" / "ask.action.yaml").write_text(ASKS)
    (folder / "buyer.jsonl").write_text(BUYS.lstrip())
    server = {"command": sys.executable, "args": [str(FAKES / "mcp_old_server.py"), "stdio"]}
    lines = [f"{name} = {json.dumps(value)}" for name, value in server.items()]
    (folder / "loopagent.toml").write_text("\n".join(["[mcp.shop]", *lines]) + "\n")
    return folder


def test_a_question_in_the_middle_of_a_call_is_asked_while_the_run_goes_on(tmp_path: Path) -> None:
    with terminal("run", "buyer", "Go.", "--project", str(shop(tmp_path))) as shown:
        shown.until("Really?")
        shown.answer("Answer it?", "y")
        shown.answer("sure", "True")
    assert "they said accept" in shown.seen
    assert "Bought." in shown.seen


def test_whoever_is_asked_may_stop_the_run_instead(tmp_path: Path) -> None:
    where = str(shop(tmp_path))
    with terminal("run", "buyer", "Go.", "--project", where, ends=4) as shown:
        shown.until("Answer it?")
        shown.interrupt()
    assert "cancelled" in shown.seen
