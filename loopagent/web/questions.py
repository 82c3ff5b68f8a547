"""The questions of a response form as fields of a page, and back: what a browser sends becomes answers by question id.

Whether an answer fits its question is for the core to say; here only shapes are made, so that a number that is not
one reaches the check as it was typed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from loopagent.web.posts import Fields, one


Json = Mapping[str, Any]
PREFIX = "q."
WIDGETS = {
    "text": "input",
    "email": "input",
    "textarea": "textarea",
    "number": "number",
    "currency": "number",
    "slider": "slider",
    "date": "input",
    "datetime": "datetime",
    "time": "input",
    "daterange": "daterange",
    "buttongroup": "choices",
    "radio": "choices",
    "checkbox": "choices",
    "dropdown": "dropdown",
}
INPUT_TYPES = {"text": "text", "email": "email", "date": "date", "time": "time"}


@dataclass(frozen=True, slots=True)
class Option:
    """One choice; `token` is what a browser sends for it."""

    token: str
    label: str
    chosen: bool


@dataclass(frozen=True, slots=True)
class Question:
    """One question as a template draws it. `values` are the texts that its inputs hold."""

    id: str
    name: str
    label: str
    widget: str
    kind: Json
    required: bool
    help: str
    width: str
    values: list[str]
    options: list[Option] = field(default_factory=list[Option])
    input_type: str = "text"
    boxes: bool = False
    """Choices as boxes to tick; otherwise one excludes the others."""
    error: str = ""


def questions_of(
    form: Json, sent: Fields | None = None, errors: Mapping[str, str] | None = None
) -> list[Question]:
    """The questions of a form with what they hold: what was sent, or what they are filled in with beforehand.

    Args:
        form: An `AgentResponseForm` as camelCase JSON.
        sent: The fields of a form that was sent and refused.
        errors: What was wrong, by question id.
    """
    return [_question(one, sent, (errors or {}).get(one["id"], "")) for one in form["questions"]]


def _question(raw: Json, sent: Fields | None, error: str) -> Question:
    kind: Json = raw["type"]
    name, type_ = f"{PREFIX}{raw['id']}", str(kind["type"])
    widget = WIDGETS.get(type_, "textarea")
    values = _held(name, widget, raw.get("defaultValue"), sent)
    boxes = type_ == "checkbox" and (bool(kind.get("multiple")) or len(kind["options"]) == 1)
    return Question(
        id=str(raw["id"]),
        name=name,
        label=str(raw["label"]),
        widget=widget,
        kind=kind,
        required=bool(raw.get("required")),
        help=str(raw.get("helpText") or ""),
        width=str(raw.get("widthHint") or "auto"),
        values=values,
        options=[_option(each, values) for each in kind.get("options") or ()],
        input_type=INPUT_TYPES.get(type_, "text"),
        boxes=boxes,
        error=error,
    )


def _held(name: str, widget: str, default: Any, sent: Fields | None) -> list[str]:
    """The texts that the inputs of a question hold."""
    if sent is not None:
        parts = [f"{name}.start", f"{name}.end"] if widget == "daterange" else [name]
        found = [one(sent, each) for each in parts]
        return list(sent.get(name, [])) if widget == "choices" else found
    if widget == "daterange":
        given = default if isinstance(default, dict) else {}
        return [str(given.get("start") or ""), str(given.get("end") or "")]
    if widget in {"choices", "dropdown"}:
        chosen = default if isinstance(default, list) else [default]
        return [token(each) for each in chosen if each is not None]
    if default is None:
        return [""]
    return [default if isinstance(default, str) else json.dumps(default)]


def _option(raw: Json, values: list[str]) -> Option:
    known = token(raw["value"])
    return Option(known, str(raw["label"]), known in values)


def token(value: Any) -> str:
    """A choice as text that tells 1 from "1" and true from "true"."""
    return json.dumps(value, ensure_ascii=False)


def values_of(form: Json, sent: Fields) -> dict[str, Any]:
    """Answers by question id, as they were typed; the core checks and types them."""
    return {
        question["id"]: READERS[WIDGETS.get(question["type"]["type"], "textarea")](
            f"{PREFIX}{question['id']}", question, sent
        )
        for question in form["questions"]
    }


def _text(name: str, question: Json, sent: Fields) -> Any:
    del question
    return one(sent, name)


def _range(name: str, question: Json, sent: Fields) -> Any:
    del question
    return {"start": one(sent, f"{name}.start"), "end": one(sent, f"{name}.end")}


def _choice(name: str, question: Json, sent: Fields) -> Any:
    known = {token(each["value"]): each["value"] for each in question["type"].get("options") or ()}
    chosen = [known.get(each, each) for each in sent.get(name, []) if each]
    if question["type"]["type"] == "checkbox" and question["type"].get("multiple"):
        return chosen
    if len(chosen) > 1:
        return chosen
    return chosen[0] if chosen else None


READERS: dict[str, Callable[[str, Json, Fields], Any]] = {
    "input": _text,
    "textarea": _text,
    "number": _text,
    "slider": _text,
    "datetime": _text,
    "daterange": _range,
    "choices": _choice,
    "dropdown": _choice,
}
