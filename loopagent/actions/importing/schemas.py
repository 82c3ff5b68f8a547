"""Schemas of OpenAPI 3.0 and 3.1 as JSON Schema, recursive ones too: what they refer to comes along as `$defs`."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from loopagent.actions.importing.document import ApiDocument, UnusableError
from loopagent.actions.importing.texts import tidy
from loopagent.core.json_values import is_array, is_object
from loopagent.core.schema_check import schema_problem


MAX_DEFINITIONS: Final = 200
MAX_PARTS: Final = 10_000
"""Objects in one converted schema."""
MAX_LEVELS: Final = 60
_MAPS: Final = frozenset({"properties", "patternProperties", "dependentSchemas"})
_LISTS: Final = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_SINGLE: Final = frozenset(
    {"items", "additionalProperties", "not", "contains", "if", "then", "else", "propertyNames"}
    | {"unevaluatedProperties", "unevaluatedItems"}
)
_KEPT: Final = frozenset(
    {"type", "enum", "const", "default", "examples", "title", "description", "format"}
    | {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}
    | {"minLength", "maxLength", "minItems", "maxItems", "uniqueItems"}
    | {"minProperties", "maxProperties", "required", "dependentRequired", "pattern"}
)
_WORDS: Final = frozenset({"title", "description", "format", "pattern"})
"""What has to be text, and is not in every document."""


class Schemas:
    """Converts the schemas of one action; `defs` is what they refer to.

    Args:
        document: Where they stand.
    """

    def __init__(self, document: ApiDocument) -> None:
        self._document = document
        self._names: dict[str, str] = {}
        self._parts = 0
        self.defs: dict[str, Any] = {}
        self.notes: list[str] = []

    def convert(self, schema: Any, level: int = 0) -> Any:
        """A schema as JSON Schema.

        Args:
            schema: As it stands in the document.
            level: How deep it lies in the one that was asked for.

        Raises:
            UnusableError: It refers to what is not there, or is too large.
        """
        if not is_object(schema):
            return schema if isinstance(schema, bool) else {}
        self._parts += 1
        if self._parts > MAX_PARTS or level > MAX_LEVELS:
            raise UnusableError("the schema of the parameters is too large")
        if "$ref" not in schema:
            return self._plain(schema, level)
        reference = {"$ref": self._definition(str(schema["$ref"]))}
        rest = {key: one for key, one in schema.items() if key != "$ref"}
        return reference if self._document.old else {**self._plain(rest, level), **reference}

    def _definition(self, reference: str) -> str:
        name = self._names.get(reference)
        if name is None:
            target = self._document.at(reference)
            name = self._named(reference)
            if len(self._names) > MAX_DEFINITIONS:
                raise UnusableError("the schema of the parameters refers to too many others")
            self.defs[name] = {}  # so that it can refer to itself
            # A definition starts anew: recursion in the document is none here.
            self.defs[name] = self.convert(target, level=len(self._names) // 8)
        return f"#/$defs/{name}"

    def _named(self, reference: str) -> str:
        plain = re.sub(r"\W+", "_", reference.rpartition("/")[2]) or "part"
        name, count = plain, 1
        while name in self.defs:
            count += 1
            name = f"{plain}_{count}"
        self._names[reference] = name
        return name

    def _plain(self, schema: dict[str, Any], level: int) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for key, value in schema.items():
            if key in _MAPS and is_object(value):
                made[key] = {name: self.convert(one, level + 1) for name, one in value.items()}
            elif key in _LISTS and is_array(value):
                made[key] = [self.convert(one, level + 1) for one in value]
            elif key in _SINGLE:
                made[key] = self.convert(value, level + 1)
            elif key in _KEPT and (key not in _WORDS or isinstance(value, str)):
                made[key] = tidy(value) if key == "description" else value
        for change in (_example, _without_read_only(self), _bounds, _required, self._pattern):
            change(schema, made)
        return _nullable(schema, made) if self._document.old else made

    def _pattern(self, schema: dict[str, Any], made: dict[str, Any]) -> None:
        """Leave out a pattern that cannot be matched safely; the server checks it anyway."""
        pattern = schema.get("pattern")
        if pattern is not None and schema_problem({"type": "string", "pattern": pattern}):
            made.pop("pattern", None)
            self.notes.append(f"the pattern {str(pattern)[:60]!r} is left to the server")

    def read_only(self, schema: Any) -> bool:
        """Whether a property is the server's alone."""
        return self._document.object(schema).get("readOnly") is True


_Change = Callable[[dict[str, Any], dict[str, Any]], None]


def _without_read_only(schemas: Schemas) -> _Change:
    def change(schema: dict[str, Any], made: dict[str, Any]) -> None:
        given = schema.get("properties")
        hidden = (
            [one for one, of in given.items() if schemas.read_only(of)] if is_object(given) else []
        )
        for name in hidden:
            made["properties"].pop(name)
        if hidden and is_array(made.get("required")):
            made["required"] = [one for one in made["required"] if one not in hidden]

    return change


def _example(schema: dict[str, Any], made: dict[str, Any]) -> None:
    if "example" in schema and "examples" not in made:
        made["examples"] = [schema["example"]]
    if not is_array(made.get("examples", [])):
        made.pop("examples")


def _bounds(schema: dict[str, Any], made: dict[str, Any]) -> None:
    """Version 3.0 says with `true` that a bound is exclusive."""
    for exclusive, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if isinstance(schema.get(exclusive), bool):
            made.pop(exclusive)
            if schema[exclusive] and bound in made:
                made[exclusive] = made.pop(bound)


def _required(schema: dict[str, Any], made: dict[str, Any]) -> None:
    wanted = schema.get("required")
    if not is_array(wanted) and wanted is not None:
        made.pop("required")
    elif is_array(wanted):
        made["required"] = list(dict.fromkeys(map(str, made["required"])))


def _nullable(schema: dict[str, Any], made: dict[str, Any]) -> dict[str, Any]:
    if schema.get("nullable") is not True:
        return made
    if not isinstance(made.get("type"), str):
        return {"anyOf": [made, {"type": "null"}]} if made else made
    made["type"] = [made["type"], "null"]
    if is_array(made.get("enum")) and None not in made["enum"]:
        made["enum"] = [*made["enum"], None]
    return made
