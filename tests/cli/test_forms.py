"""A form at the terminal: every kind of question, and an answer that does not fit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.cli.commands import loopagent
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


def test_values_of_options_are_typed_by_the_form(tmp_path: Path) -> None:
    project = make_project(tmp_path / "p")
    ask = {"message": "Tell me.", "nextStep": {"type": "Chat"}, "responseForm": FORM}
    end = {"message": "Thanks.", "taskComplete": True}
    (project / "scripts" / "looker.jsonl").write_text(f"{json.dumps(ask)}\n{json.dumps(end)}\n")
    db = ("--project", str(project), "--db", str(tmp_path / "runs.db"))
    started = json.loads(loopagent("run", "looker", "Go.", "--json", *db).stdout)
    days = {"start": "2026-03-01", "end": "2026-03-02"}
    given = ("count=3", "pick=One", "tags=1", "tags=Two", f"days={json.dumps(days)}", "word=2026")
    values = [word for one in given for word in ("--value", one)]
    request = started["requests"][0]["requestId"]
    assert loopagent("requests", "answer", request, *values, *db).returncode == 0
    shown = json.loads(loopagent("requests", "show", request, "--json", *db).stdout)
    typed = {"count": 3, "pick": 1, "tags": [1, 2], "days": days, "word": "2026"}
    assert shown["resolution"]["values"] == typed
