"""A client tool that a person answers for: a form made of its result schema where that is simple, else JSON."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Final

from loopagent.clients import ToolAnswer
from loopagent.errors import RequestError
from loopagent.web.posts import Fields, one
from loopagent.web.questions import values_of


if TYPE_CHECKING:
    from loopagent.access import Caller
    from loopagent.app import App
    from loopagent.ports import RequestRow

Json = Mapping[str, Any]
WHOLE: Final = "result"
"""Id of the only question where a result is no object."""
OBJECT: Final = frozenset(
    ("type", "properties", "required", "additionalProperties", "title", "description", "$schema")
)
"""What the schema of a simple object may say."""
VALUE: Final = frozenset(
    (
        *("type", "title", "description", "default", "enum", "format", "pattern"),
        *("minLength", "maxLength", "minimum", "maximum", "multipleOf"),
        *("exclusiveMinimum", "exclusiveMaximum"),
    )
)
"""What the schema of a simple value may say."""
FORMATS: Final = {"date": "date", "email": "email"}
KINDS: Final = {"string": "text", "number": "number", "integer": "number", "boolean": "radio"}
LONG_CHARS: Final = 200
"""Longer texts get a box of several lines."""
YES_NO: Final = ({"value": True, "label": "Yes"}, {"value": False, "label": "No"})


def form_of(schema: Json | None) -> dict[str, Any] | None:
    """A response form whose answers make a result; None where the schema is not simple enough for one."""
    if not schema:
        return None
    if schema.get("type") != "object":
        only = _question(WHOLE, schema, required=True)
        return {"questions": [only]} if only else None
    if not schema.get("properties") or schema.keys() - OBJECT:
        return None
    needed: Collection[str] = schema.get("required") or ()
    fields: Mapping[str, Json] = schema["properties"]
    questions = [_question(name, each, required=name in needed) for name, each in fields.items()]
    return {"questions": questions} if all(questions) else None


def _question(name: str, schema: Json, *, required: bool) -> dict[str, Any] | None:
    """A simple value as a question, or None."""
    kind = schema.get("type")
    if schema.keys() - VALUE or not isinstance(kind, str) or kind not in KINDS:
        return None
    return {
        "id": name,
        "label": schema.get("title") or name,
        "required": required,
        "helpText": schema.get("description"),
        "defaultValue": schema.get("default"),
        "type": _kind(kind, schema),
    }


def _kind(kind: str, schema: Json) -> dict[str, Any]:
    if "enum" in schema:
        options = [{"value": one, "label": _label(one)} for one in schema["enum"]]
        return {"type": "dropdown", "options": options}
    if kind == "boolean":
        return {"type": "radio", "options": list(YES_NO)}
    if kind != "string":
        return {"type": "number"}
    most = schema.get("maxLength")
    if most is not None and most > LONG_CHARS:
        return {"type": "textarea", "maxLength": most}
    return {"type": FORMATS.get(str(schema.get("format")), "text"), "maxLength": most}


def _label(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def result_of(form: Json, sent: Fields) -> Any:
    """What the answers of such a form say; the tool's schema tells whether it fits."""
    given = values_of(form, sent)
    values = {
        each["id"]: _typed(each["type"]["type"], given[each["id"]])
        for each in form["questions"]
        if given[each["id"]] not in ("", None) or each["required"]
    }
    return values.get(WHOLE) if [one["id"] for one in form["questions"]] == [WHOLE] else values


def _typed(kind: str, value: Any) -> Any:
    """A number as one, where it is one; what is none goes on as text, to be refused by the schema."""
    if kind != "number":
        return value
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        return value
    return found if isinstance(found, int | float) else value


def answer_of(form: Json | None, sent: Fields) -> ToolAnswer:
    """An answer as somebody gave it in the page.

    Raises:
        RequestError: `bad_form` (400), `no_feedback`, `bad_json` (422).
    """
    decision = one(sent, "decision")
    if decision == "error":
        reason = one(sent, "feedback").strip()
        if not reason:
            text = "Say why it cannot be done: the agent goes on with that."
            raise RequestError("no_feedback", text)
        return ToolAnswer(success=False, error=reason, client="")
    if decision == "result" and form is not None:
        return ToolAnswer(result=result_of(form, sent), client="")
    if decision != "json":
        raise RequestError("bad_form", "Choose one of the buttons.", status=400)
    try:
        return ToolAnswer(result=json.loads(one(sent, "result")), client="")
    except (ValueError, RecursionError) as error:
        raise RequestError("bad_json", f"The result is not JSON: {error}.") from error


async def answer(
    app: App, caller: Caller, row: RequestRow, sent: Fields, *, exclusive: bool
) -> None:
    """Answer for a client. Whoever does takes care of the request by that, so that the log says who it was.

    Raises:
        RequestError: As `answer_of`, `App.answer_call` and `Inbox.claim`.
    """
    given = answer_of(form_of(row.body.get("resultSchema")), sent)
    if row.status == "open":
        await app.inbox.claim(row.id, by=caller.by, take_over=not exclusive)
    await app.answer_call(row.run_id, str(row.body["callId"]), given)
