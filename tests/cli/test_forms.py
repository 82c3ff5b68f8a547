"""A form at the terminal: every kind of question, and an answer that does not fit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.cli.terminal import terminal
from tests.http.server import make_project


def question(key: str, kind: Any, **more: Any) -> dict[str, Any]:
    return {"id": key, "label": key.title(), "type": kind, **more}


OPTIONS = [{"value": 1, "label": "One"}, {"value": 2, "label": "Two"}]
FORM = {
    "questions": [
        question("count", {"type": "number", "max": 9}, required=True),
        question("pick", {"type": "radio", "options": OPTIONS}, defaultValue=2),
        question("tags", {"type": "checkbox", "multiple": True, "options": OPTIONS}),
        question("days", {"type": "daterange"}),
        question("word", {"type": "text"}),
    ]
}


def test_a_form_is_asked_again_until_it_fits(tmp_path: Path) -> None:
    project = make_project(tmp_path / "p")
    ask = {"message": "Tell me.", "nextStep": {"type": "Chat"}, "responseForm": FORM}
    heard = "Count: 3\nPick: 2\nTags: [1, 2]\nDays: "
    end = {"message": "Thanks.", "taskComplete": True, "when": {"contains": heard}}
    (project / "scripts" / "looker.jsonl").write_text(f"{json.dumps(ask)}\n{json.dumps(end)}\n")
    with terminal("run", "looker", "Go.", "--project", str(project)) as person:
        for count in ("12", "3"):
            person.answer("Count", count)
            person.answer("Pick", "")
            person.answer("Tags", "1, Two")
            person.answer("start", "2026-03-01")
            person.answer("end", "2026-03-02")
            person.answer("Word", "")
        seen = person.rest()
    assert "values.count: must be at most 9" in seen
    assert "Thanks." in seen
