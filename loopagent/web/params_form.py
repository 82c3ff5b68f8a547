"""The parameters of an action as fields of a page, made of its JSON Schema and `ui`; and back.

Each parameter becomes a question like those of response forms, so that both are drawn alike. What no field fits, such
as an object, is typed as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from loopagent.core.json_values import is_array, is_object
from loopagent.core.params import check_params
from loopagent.web.posts import Fields, one
from loopagent.web.questions import PREFIX, values_of


Json = dict[str, Any]
WHOLE: Final = "params"
"""The field that holds all parameters as JSON; when it is used, the others are not."""
MAX_OPTIONS: Final = 200
_LONG_CHARS: Final = 200
_FORMATS: Final = {
    "date": "date",
    "date-time": "datetime",
    "email": "email",
    "time": "time",
}
_WIDGETS: Final = {"textarea": "textarea", "radio": "radio", "select": "dropdown"}
_WRITTEN: Final = "JSON"


def params_form(schema: Json, ui: Mapping[str, Any], given: Mapping[str, Any]) -> Json:
    """A form that asks for parameters, as `web.questions` takes it.

    Args:
        schema: JSON Schema of the parameters, an object.
        ui: How to show them, a uiSchema by parameter.
        given: What they are filled in with.
    """
    required: list[str] = schema.get("required") or []
    properties: Json = schema.get("properties") or {}
    return {
        "questions": [
            _question(name, _followed(schema, raw), ui.get(name), name in required, given.get(name))
            for name, raw in properties.items()
        ]
    }


def _question(name: str, schema: Json, ui: Any, needed: bool, given: Any) -> Json:
    hints: Json = ui if is_object(ui) else {}
    kind = _kind(schema, str(hints.get("ui:widget") or ""))
    value = given if given is not None else schema.get("default")
    if value is not None and kind.get("written"):
        value = json.dumps(value, ensure_ascii=False, indent=2)
    notes = [schema.get("description"), hints.get("ui:help"), kind.get("written")]
    title = schema.get("title")
    return {
        "id": name,
        "label": f"{title} ({name})" if title else name,
        "type": kind,
        "required": needed and not kind.get("options"),
        "defaultValue": value,
        "helpText": " ".join(f"{one}".rstrip(".") + "." for one in notes if one),
    }


def _followed(root: Json, raw: Any) -> Json:
    """A schema, or what its reference into the same document leads to."""
    found = raw
    for _ in range(10):
        reference = found.get("$ref") if is_object(found) else None
        if not isinstance(reference, str) or not reference.startswith("#/"):
            break
        target: Any = root
        for part in reference[2:].split("/"):
            target = target.get(part) if is_object(target) else None
        found = {**(target or {}), **{key: one for key, one in found.items() if key != "$ref"}}
    return found if is_object(found) else {}


def _kind(schema: Json, widget: str) -> Json:
    """The type of question that fits a schema."""
    types = schema.get("type")
    plain = [one for one in types if one != "null"] if is_array(types) else [types]
    kind = plain[0] if len(plain) == 1 else None
    if "const" in schema:
        return _choice([schema["const"]], "dropdown")
    if is_array(schema.get("enum")) and len(schema["enum"]) <= MAX_OPTIONS:
        return _choice(schema["enum"], _WIDGETS.get(widget, "dropdown"))
    make = _KINDS.get(str(kind))
    return make(schema, widget) if make is not None else _written(schema)


def _choice(values: list[Any], kind: str) -> Json:
    options = [{"value": one, "label": _label(one)} for one in values if one is not None]
    return {"type": kind if kind in {"radio", "dropdown"} else "dropdown", "options": options}


def _label(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _text(schema: Json, widget: str) -> Json:
    made: Json = {"type": _FORMATS.get(str(schema.get("format")), "text")}
    longest = schema.get("maxLength")
    if widget == "textarea" or (isinstance(longest, int) and longest > _LONG_CHARS):
        made["type"] = "textarea"
    examples = schema.get("examples")
    if is_array(examples) and examples and made["type"] in {"text", "textarea", "email"}:
        made["placeholder"] = f"{examples[0]}"
    if isinstance(longest, int) and made["type"] != "datetime":
        made["maxLength"] = longest
    return made


def _number(schema: Json, widget: str) -> Json:
    del widget
    return {"type": "number", "min": schema.get("minimum"), "max": schema.get("maximum")}


def _flag(schema: Json, widget: str) -> Json:
    del schema, widget
    options = [{"value": True, "label": "yes"}, {"value": False, "label": "no"}]
    return {"type": "dropdown", "options": options}


def _list(schema: Json, widget: str) -> Json:
    del widget
    items = schema.get("items")
    known = items.get("enum") if is_object(items) else None
    if not is_array(known) or len(known) > MAX_OPTIONS:
        return _written(schema)
    return {**_choice(known, "radio"), "type": "checkbox", "multiple": True}


def _written(schema: Json) -> Json:
    del schema
    return {"type": "textarea", "written": _WRITTEN}


_KINDS: Final[dict[str, Callable[[Json, str], Json]]] = {
    "string": _text,
    "number": _number,
    "integer": _number,
    "boolean": _flag,
    "array": _list,
}


def params_of(schema: Json, form: Json, sent: Fields) -> tuple[dict[str, Any], dict[str, str]]:
    """What was filled in as parameters, and what is wrong by field; the empty field is the whole of them.

    Args:
        schema: JSON Schema of the parameters.
        form: The form that was filled in.
        sent: The fields.
    """
    typed = one(sent, WHOLE).strip()
    if one(sent, "as_json") == "yes" and typed:
        given, errors = _parsed(typed, WHOLE)
    else:
        given, errors = _typed(form, sent)
    if errors:
        return {}, errors
    params, problems, _ = check_params(schema, given, "")
    names = {each["id"] for each in form["questions"]}
    for problem in problems:
        name = problem.path.lstrip("./").replace("[", ".").split(".")[0]
        where = name if name in names else ""
        errors.setdefault(where, str(problem))
    return params, errors


def _typed(form: Json, sent: Fields) -> tuple[dict[str, Any], dict[str, str]]:
    """The fields that hold something; JSON where it has to be."""
    given: dict[str, Any] = {}
    errors: dict[str, str] = {}
    for name, value in values_of(form, sent).items():
        kind = next(each["type"] for each in form["questions"] if each["id"] == name)
        blank = value is None or value in ("", [])
        if blank:
            continue
        given[name], wrong = _parsed(str(value), name) if kind.get("written") else (value, {})
        errors |= wrong
    return given, errors


def _parsed(text: str, name: str) -> tuple[Any, dict[str, str]]:
    try:
        return json.loads(text), {}
    except (ValueError, RecursionError) as error:
        where = "" if name == WHOLE else name
        return None, {where: f"This is no JSON: {error}."}


def named(name: str) -> str:
    """The name of a parameter's field."""
    return f"{PREFIX}{name}"
