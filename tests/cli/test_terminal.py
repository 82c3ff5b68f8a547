"""A person at a real terminal: what is asked there, and what becomes of what is typed."""

from __future__ import annotations

from pathlib import Path

from tests.cli.terminal import terminal


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
