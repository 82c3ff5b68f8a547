"""Agents of the server whose pages are tested, beside those of the API's tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


Json = dict[str, Any]
OPTIONS = [
    {"value": 1, "label": "One"},
    {"value": "1", "label": "The text one"},
    {"value": True, "label": "Yes"},
]


def question(key: str, kind: str, label: str, /, **more: Any) -> Json:
    """One question; what `type` takes goes into it."""
    outer: Json = {
        name: more.pop(name) for name in ("required", "defaultValue", "helpText") if name in more
    }
    return {"id": key, "label": label, "type": {"type": kind, **more}, **outer}


FORM = {
    "title": "Everything",
    "description": "All *fourteen* types.",
    "submitLabel": "Send it",
    "questions": [
        question("text", "text", "Text", required=True, helpText="A few words.", maxLength=40),
        question("area", "textarea", "Area", defaultValue="two\nlines"),
        question("mail", "email", "Mail"),
        question("number", "number", "Number", min=1, max=10),
        question("money", "currency", "Money", prefix="€"),
        question("day", "date", "Day"),
        question("moment", "datetime", "Moment"),
        question("time", "time", "Time"),
        question("range", "daterange", "Range"),
        question("group", "buttongroup", "Group", options=OPTIONS),
        question("radio", "radio", "Radio", options=OPTIONS, defaultValue="1"),
        question("drop", "dropdown", "Drop", options=OPTIONS),
        question("boxes", "checkbox", "Boxes", options=OPTIONS, multiple=True),
        question("slider", "slider", "Slider", min=0, max=10, step=2, defaultValue=4),
    ],
}
ASK = {
    "taskComplete": False,
    "message": "Please fill in.",
    "responseForm": FORM,
    "nextStep": {"type": "Chat"},
}
DONE = {"taskComplete": True, "message": "Done."}


RESULT: Json = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Name of the place"},
        "km": {"type": "number", "minimum": 0},
        "walkable": {"type": "boolean"},
        "kind": {"enum": ["museum", "park"], "type": "string"},
    },
    "required": ["name", "km"],
    "additionalProperties": False,
}
TOOLS: list[Json] = [
    {
        "name": "open-map",
        "effects": "read",
        "description": "Let somebody **pick** a place.",
        "result": RESULT,
    },
    {"name": "blink", "effects": "read", "timeoutMs": 100},
]


READER: Json = {
    "taskComplete": False,
    "nextStep": {"type": "Actions", "actions": [{"name": "look", "params": {"item": 7}}]},
    "usage": {"inputTokens": 900, "outputTokens": 40, "costUsd": 0.0021},
}


def client_tool(name: str, **params: Any) -> Json:
    """A reply that asks the client for something."""
    calls = [{"name": name, "params": params}]
    return {"taskComplete": False, "nextStep": {"type": "ClientTools", "clientTools": calls}}


AGENTS: dict[str, tuple[Json, list[Json]]] = {
    "reader": ({"actions": ["look"], "approval": {"read": "ask"}}, [READER]),
    "mapper": ({"clientTools": TOOLS}, [client_tool("open-map", place="Porto")]),
    "hasty": ({"clientTools": TOOLS}, [client_tool("blink")]),
    "former": ({}, [ASK]),
}
"""What is said of each agent, and what it says before it is done."""


def add_agents(folder: Path) -> None:
    """Add them to a project."""
    for name, (about, replies) in AGENTS.items():
        agent = {"name": name, "model": f"scripted:scripts/{name}.jsonl", **about}
        (folder / "agents" / f"{name}.agent.yaml").write_text(json.dumps(agent))
        lines = "".join(f"{json.dumps(one)}\n" for one in (*replies, DONE))
        (folder / "scripts" / f"{name}.jsonl").write_text(lines)
