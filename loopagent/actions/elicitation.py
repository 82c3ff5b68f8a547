"""Questions that MCP servers put in the middle of a call, as data: a form, or an address to go to.

What a server says is a stranger's text: it is cut, shown as text, and marked where it asks for what should be typed
into no form.
"""

from __future__ import annotations

import re
from typing import Any, Final, cast

from loopagent.core.hashing import json_hash
from loopagent.egress import EgressDeniedError
from loopagent.egress.client import checked_url
from loopagent.egress.policy import plain_host


MAX_QUESTIONS: Final = 50
"""Fields of one form."""
MAX_CHARS: Final = 2_000
"""Longest text of a server that is shown."""
_SECRET: Final = re.compile(
    r"pass(?:word|phrase|code|wd)|secret|token|api.?key|credential|private.?key|\bpin\b|\bcvv|\bcvc"
    r"|card.?number|seed.?phrase|one.?time|\botp\b|\bssn\b",
    re.IGNORECASE,
)
WARNING: Final = (
    "The server seems to ask for a secret. Answers to forms are kept in the log and sent to it as they are:"
    " a password or key does not belong here."
)
_TEXTS: Final = {"email": "email", "date": "date", "date-time": "datetime"}
"""Kind of question by the format of a text; an address, `uri`, is plain text."""


class NotAQuestionError(ValueError):
    """What a server asks cannot be put to a person."""


def question_of(key: str, params: dict[str, Any]) -> dict[str, Any]:
    """A question as `core.call_questions` takes it.

    Args:
        key: The server's name for it.
        params: What was asked, as camelCase JSON.

    Raises:
        NotAQuestionError: It cannot be put to a person.
    """
    message = str(params.get("message") or "")[:MAX_CHARS]
    said = {"message": message, "url": params.get("url"), "schema": params.get("requestedSchema")}
    question: dict[str, Any] = {"id": key, "hash": json_hash(said), "message": message}
    if params.get("mode") == "url":
        return {**question, **_address(str(params.get("url") or ""))}
    schema = params.get("requestedSchema")
    fields = _fields(cast("dict[str, Any]", schema) if isinstance(schema, dict) else {})
    told = " ".join(
        [message, *(f"{one['id']} {one['label']} {one.get('helpText', '')}" for one in fields)]
    )
    if _SECRET.search(told):
        question["warning"] = WARNING
    return {**question, "form": {"questions": fields}} if fields else question


def _address(url: str) -> dict[str, Any]:
    try:
        target = checked_url(url)
    except (EgressDeniedError, ValueError) as error:
        raise NotAQuestionError(f"the address it wants to be opened is none: {error}") from error
    if target.scheme not in {"https", "http"} or not target.host or len(url) > MAX_CHARS:
        raise NotAQuestionError("the address it wants to be opened is not that of a page")
    return {"url": url, "host": plain_host(target.host)}


def _fields(schema: dict[str, Any]) -> list[dict[str, Any]]:
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return []
    named = cast("dict[str, Any]", properties)
    if len(named) > MAX_QUESTIONS:
        raise NotAQuestionError(
            f"its form has {len(named)} fields, at most {MAX_QUESTIONS} are shown"
        )
    needed = schema.get("required")
    required = cast("list[Any]", needed) if isinstance(needed, list) else []
    return [
        _field(name, cast("dict[str, Any]", one), required=name in required)
        for name, one in named.items()
        if isinstance(one, dict)
    ]


def _field(name: str, schema: dict[str, Any], *, required: bool) -> dict[str, Any]:
    field: dict[str, Any] = {
        "id": name,
        "label": str(schema.get("title") or name)[:MAX_CHARS],
        "type": _kind(schema),
        "required": required,
    }
    if schema.get("description"):
        field["helpText"] = str(schema["description"])[:MAX_CHARS]
    if schema.get("default") is not None:
        field["defaultValue"] = schema["default"]
    return field


def _kind(schema: dict[str, Any]) -> dict[str, Any]:
    """How a field is answered; texts where nothing more is known."""
    offered = _options(schema)
    if offered:
        return {"type": "dropdown", "options": offered}
    kind = schema.get("type")
    if kind == "array":
        items = schema.get("items")
        several = _options(cast("dict[str, Any]", items) if isinstance(items, dict) else {})
        if not several:
            raise NotAQuestionError("its form has a list that offers nothing")
        return {"type": "checkbox", "multiple": True, "options": several}
    if kind == "boolean":
        words = (("Yes", True), ("No", False))
        return {"type": "radio", "options": [{"label": one, "value": yes} for one, yes in words]}
    if kind in {"number", "integer"}:
        return {"type": "number", **_taken(schema, minimum="min", maximum="max")}
    named = _TEXTS.get(str(schema.get("format")), "text")
    return {"type": named, **(_taken(schema, maxLength="maxLength") if named == "text" else {})}


def _taken(schema: dict[str, Any], **names: str) -> dict[str, Any]:
    """Bounds of a field that are numbers, under the names that forms have for them."""
    found = {ours: schema.get(theirs) for theirs, ours in names.items()}
    return {
        name: one
        for name, one in found.items()
        if isinstance(one, int | float) and not isinstance(one, bool)
    }


def _options(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """What can be chosen: of `enum` with or without names, or of titled constants."""
    titled = schema.get("oneOf") or schema.get("anyOf")
    if isinstance(titled, list):
        entries = [
            cast("dict[str, Any]", one)
            for one in cast("list[Any]", titled)
            if isinstance(one, dict)
        ]
        return [
            {"label": str(one.get("title") or one["const"])[:MAX_CHARS], "value": one["const"]}
            for one in entries
            if isinstance(one.get("const"), str | int | float)
        ]
    values = schema.get("enum")
    if not isinstance(values, list):
        return []
    names = schema.get("enumNames")
    labels = cast("list[Any]", names if isinstance(names, list) else values)
    pairs = zip(labels, cast("list[Any]", values), strict=False)
    return [{"label": str(label)[:MAX_CHARS], "value": value} for label, value in pairs]
