"""Parameters and body of an operation as the parameters of an action, and where each of them goes."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Final

from loopagent.actions.importing.document import ApiDocument, UnusableError
from loopagent.actions.importing.schemas import Schemas
from loopagent.actions.importing.texts import tidy
from loopagent.core.json_values import is_array, is_object


_BODY_TYPES: Final = (
    (re.compile(r"application/(?:[\w.+-]+\+)?json|\*/\*|application/\*"), "json"),
    (re.compile(r"application/x-www-form-urlencoded"), "form"),
    (re.compile(r"text/.*"), "text"),
)
_OWN_HEADERS: Final = frozenset({"accept", "content-type", "authorization"})
"""Headers that stand in the list of parameters in vain."""
_CREDENTIAL: Final = re.compile(r"(?i)api[-_]?key|token|secret|password")
_STYLES: Final = frozenset({"form", "simple"})
_SCALARS: Final = frozenset({"string", "integer", "number", "boolean"})
_COMPOSED: Final = ("allOf", "anyOf", "oneOf", "$ref")


@dataclass(slots=True)
class Inputs:
    """What an action is given, and where it goes: parts of its `run`."""

    document: ApiDocument
    properties: dict[str, Any] = field(default_factory=dict[str, Any])
    required: list[str] = field(default_factory=list[str])
    path: dict[str, str] = field(default_factory=dict[str, str])
    query: dict[str, Any] = field(default_factory=dict[str, Any])
    headers: dict[str, Any] = field(default_factory=dict[str, Any])
    arrays: str = "repeat"
    body: Any = None
    body_type: str = "json"
    notes: list[str] = field(default_factory=list[str])
    problems: list[str] = field(default_factory=list[str])

    def schema(self, schemas: Schemas) -> dict[str, Any]:
        """The schema of all parameters."""
        made: dict[str, Any] = {"type": "object"}
        if self.required:
            made["required"] = self.required
        made |= {"additionalProperties": False, "properties": self.properties}
        return {**made, "$defs": schemas.defs} if schemas.defs else made

    def add(self, name: str, place: str, schema: Any, *, required: bool) -> str:
        """Take a parameter in; gives the name under which models know it."""
        plain = re.sub(r"\W", "_", name, flags=re.ASCII)
        plain = plain if re.match(r"[A-Za-z_]", plain) else f"p_{plain}"
        if plain in self.properties:
            self.notes.append(
                f"{name} of the {place} has the name of another parameter: {place}_{plain}"
            )
            plain = f"{place}_{plain}"
        if plain in self.properties:
            raise UnusableError(f"several parameters of the {place} are named {name}")
        self.properties[plain] = schema
        if required:
            self.required.append(plain)
        return plain


def read_inputs(
    document: ApiDocument, path_item: dict[str, Any], operation: dict[str, Any], schemas: Schemas
) -> Inputs:
    """Everything that an operation takes.

    Args:
        document: The document.
        path_item: What holds for all operations of the path.
        operation: The operation.
        schemas: Converts schemas.

    Raises:
        UnusableError: A part refers to what is not there, or cannot be told apart from another.
    """
    made = Inputs(document)
    merged: dict[tuple[str, str], dict[str, Any]] = {}
    for one in (*_listed(path_item), *_listed(operation)):
        parameter = document.object(one)
        merged[str(parameter.get("name")), str(parameter.get("in"))] = parameter
    for (name, place), parameter in merged.items():
        _take(made, name, place, parameter, schemas)
    if operation.get("requestBody") is not None:
        _take_body(made, document.object(operation["requestBody"]), schemas)
    return made


def _listed(value: dict[str, Any]) -> list[Any]:
    found = value.get("parameters")
    return found if is_array(found) else []


def _take(made: Inputs, name: str, place: str, parameter: dict[str, Any], schemas: Schemas) -> None:
    required = parameter.get("required") is True or place == "path"
    if place == "header" and name.lower() in _OWN_HEADERS:
        return
    content = made.document.object(parameter.get("content"))
    raw = (
        made.document.object(next(iter(content.values()), {})).get("schema")
        if content
        else parameter.get("schema")
    )
    style = parameter.get("style", "form")
    if place not in {"path", "query", "header"} or style not in _STYLES:
        what = f"the parameter {name} ({place}, {style}) cannot be sent"
        (made.problems if required else made.notes).append(what)
        return
    schema = _described(schemas.convert(raw), parameter)
    if place == "path":
        made.path[name] = made.add(name, place, _scalar(schema), required=True)
        return
    plain = made.add(name, place, schema, required=required)
    form = (
        {"template": f"{{{{ params.{plain} | json }}}}"} if content else {"from": f"params.{plain}"}
    )
    (made.query if place == "query" else made.headers)[name] = form
    if place == "header" and _CREDENTIAL.search(name):
        made.notes.append(f"the header {name} looks like a credential; make it a secret")
    if place == "query" and parameter.get("explode") is False:
        made.arrays = "comma"


def _scalar(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a segment of a path, which is one text or number whatever the document says."""
    if schema.get("type", "string") in _SCALARS:
        return schema
    return {
        "type": "string",
        **{key: schema[key] for key in ("title", "description") if key in schema},
    }


def _described(schema: Any, parameter: dict[str, Any]) -> dict[str, Any]:
    """A schema with the description that stands beside it."""
    made = dict(schema) if is_object(schema) else {}
    text = tidy(str(parameter.get("description") or "")[:1_000])
    if text and "description" not in made:
        made["description"] = text
    return made


# --- the body --------------------------------------------------------------------------------------


def _take_body(made: Inputs, body: dict[str, Any], schemas: Schemas) -> None:
    required = body.get("required") is True
    chosen = _media(made.document.object(body.get("content")))
    if chosen is None:
        names = ", ".join(map(str, made.document.object(body.get("content")))) or "nothing"
        what = f"a body of type {names[:100]} cannot be sent"
        (made.problems if required else made.notes).append(what)
        return
    name, made.body_type, media = chosen
    if name.endswith("+json"):
        made.headers["Content-Type"] = name
    raw = made.document.object(media).get("schema")
    flat = _flat(made.document, raw)
    if flat is None:
        plain = made.add("body", "body", schemas.convert(raw), required=required)
        made.body = {"from": f"params.{plain}"}
        return
    wanted = flat.get("required")
    needed = {str(one) for one in wanted} if required and is_array(wanted) else set[str]()
    made.body = {}
    for key, schema in flat["properties"].items():
        if not schemas.read_only(schema):
            plain = made.add(key, "body", schemas.convert(schema), required=key in needed)
            made.body[key] = {"from": f"params.{plain}"}


def _media(content: dict[str, Any]) -> tuple[str, str, Any] | None:
    """Media type, how the body is written, and what the document says of it."""
    for pattern, kind in _BODY_TYPES:
        for name, media in content.items():
            if pattern.fullmatch(name.partition(";")[0].strip().lower()):
                return name.partition(";")[0].strip(), kind, media
    return None


def _flat(document: ApiDocument, raw: Any) -> dict[str, Any] | None:
    """An object whose properties can be parameters of their own; None for everything else."""
    found = document.object(raw)
    properties = found.get("properties")
    if not is_object(properties) or not properties or any(one in found for one in _COMPOSED):
        return None
    more = found.get("additionalProperties")
    return None if is_object(more) or more is True else found
