"""Writes a plain JSON Schema in the dialect of one family of constrained decoders.

| | openai | anthropic | grammar |
|---|---|---|---|
| optional field | required, null allowed | left out of `required` | left out of `required` |
| free object | text that holds JSON | text that holds JSON | open object |
| recursion | as it is | cut: text that holds JSON | as it is |
| bounds | numbers, list lengths | `minItems` 0 or 1 | integers, `minItems` |

Everywhere: objects say whether they are closed, no patterns and text lengths (engines drop or choke on them), and
no closed object without properties, which would only allow `{}`.

Source:
    model layer notes 2.1 to 2.4, taken from the providers' documentation and from trials.
"""

from __future__ import annotations

from typing import Any, Final, Literal, cast

from loopagent.core.flavours import NULL_MATTERS


Schema = dict[str, Any]
Dialect = Literal["openai", "anthropic", "grammar"]

JSON_OBJECT: Final = "A JSON object, written as text."
JSON_LIST: Final = "A JSON list, written as text."
JSON_VALUE: Final = "A JSON value, written as text."
OPEN: Final[Schema] = {"type": "object", "additionalProperties": True}
"""A free object, before it is written in a dialect."""
_BOUNDS: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_KEPT: Final[dict[Dialect, dict[str, tuple[str, ...]]]] = {
    "openai": {"integer": _BOUNDS, "number": _BOUNDS, "array": ("minItems", "maxItems")},
    "anthropic": {},
    "grammar": {"integer": _BOUNDS[:2], "array": ("minItems",)},
}
"""Bounds that a dialect enforces, by type; the others are left to validation."""
_SIMPLE: Final = frozenset({"string", "integer", "number", "boolean"})
_JSON_TYPES: Final = {str: "string", bool: "boolean", int: "integer", float: "number"}
_INEXPRESSIBLE: Final = frozenset(
    {
        "allOf", "not", "if", "then", "else", "patternProperties", "prefixItems", "contains",
        "dependentSchemas", "dependentRequired", "propertyNames", "unevaluatedProperties",
        "$dynamicRef", "$recursiveRef",
    }
)  # fmt: skip
_MAX_DEPTH: Final = 8
"""Deepest parameter schema of an action that is written out, in levels."""


class _InexpressibleError(Exception):
    """A schema says something that no dialect can."""


class Writer:
    """Writes schemas for one dialect.

    Args:
        dialect: Whose subset to write.
        defs: All definitions that references may lead to, not written yet.
        root: The schema that starts everything.
    """

    def __init__(self, dialect: Dialect, defs: dict[str, Schema], root: Schema) -> None:
        self._dialect: Dialect = dialect
        self._defs = defs
        self._cut = (
            _recursive(defs, root) if dialect == "anthropic" else frozenset[tuple[str, str]]()
        )
        self._written: dict[str, Schema] = {}

    def definition(self, name: str) -> Schema:
        """The definition of that name, written."""
        if name not in self._written:
            self._written[name] = self.write(self._defs[name], name)
        return self._written[name]

    def write(self, schema: Schema, name: str = "") -> Schema:
        """The schema, written.

        Args:
            schema: A plain schema.
            name: Its name, when it is a definition.
        """
        if "$ref" in schema:
            return {"$ref": schema["$ref"]}
        options = schema.get("anyOf") or schema.get("oneOf")
        if options:
            return self._union(schema, cast("list[Schema]", options))
        if "const" in schema or "enum" in schema:
            return _values(schema)
        kind = schema.get("type")
        if kind == "object":
            return self._object(schema, name)
        if kind == "array":
            return {**self._plain(schema), "items": self.write(schema.get("items") or {})}
        return (
            self._plain(schema)
            if kind in _SIMPLE or kind == "null"
            else self._free(schema, JSON_VALUE)
        )

    def _plain(self, schema: Schema) -> Schema:
        kind = schema["type"]
        kept = _KEPT[self._dialect].get(kind, ())
        made = {"type": kind, **_said(schema)}
        made |= {key: schema[key] for key in kept if key in schema}
        if self._dialect == "anthropic" and kind == "array" and schema.get("minItems"):
            made["minItems"] = 1
        return made

    def _union(self, schema: Schema, options: list[Schema]) -> Schema:
        said = _said(schema)
        written = [self.write(one) for one in options]
        return {**said, **written[0]} if len(written) == 1 else {**said, "anyOf": written}

    def _object(self, schema: Schema, name: str) -> Schema:
        properties: dict[str, Schema] = schema.get("properties") or {}
        if not properties:
            return self._free(schema, JSON_OBJECT)
        required: list[str] = schema.get("required", [])
        split = schema.get(NULL_MATTERS)
        if split in properties and self._dialect == "openai":
            return self._with_or_without(schema, split)
        written = {
            key: _text(JSON_LIST, one)
            if (name, key) in self._cut
            else self._member(one, optional=key not in required)
            for key, one in properties.items()
        }
        needed = (
            list(written)
            if self._dialect == "openai"
            else [one for one in written if one in required]
        )
        closed = {"properties": written, "required": needed, "additionalProperties": False}
        return {"type": "object", **_said(schema), **closed}

    def _with_or_without(self, schema: Schema, name: str) -> Schema:
        """An object in which one field is left out instead of being null."""
        fields: dict[str, Schema] = {**schema["properties"]}
        fields[name] = without_null(fields[name])
        others = {key: one for key, one in fields.items() if key != name}
        given: Schema = {"type": "object", "properties": fields, "required": [name]}
        absent: Schema = {"type": "object", "properties": others, "required": list(others)}
        return {**_said(schema), "anyOf": [self.write(given), self.write(absent)]}

    def _member(self, schema: Schema, *, optional: bool) -> Schema:
        if not optional:
            return self.write(schema)
        written = self.write(without_null(schema))
        if self._dialect != "openai":
            return written
        if written.get("type") in _SIMPLE and "enum" not in written:
            return {**written, "type": [written["type"], "null"]}
        null: Schema = {"type": "null"}
        inner = written.get("anyOf") or [
            {key: one for key, one in written.items() if key != "description"}
        ]
        return {**_said(written), "anyOf": [*inner, null]}

    def _free(self, schema: Schema, text: str) -> Schema:
        if self._dialect != "grammar":
            return _text(text, schema)
        return {**OPEN, **_said(schema)} if text == JSON_OBJECT else _said(schema)


def typed(parameters: Schema) -> Schema | None:
    """Prepare the parameter schema of an action for any dialect.

    Args:
        parameters: Any JSON Schema.

    Returns:
        The schema with references filled in; an open object when no dialect could express it; None when the
        action has no parameters.
    """
    if parameters.get("type", "object") == "object" and not parameters.get("properties"):
        return (
            dict(OPEN) if parameters.get("additionalProperties") or len(parameters) == 0 else None
        )
    try:
        return _typed(parameters, cast("Schema", parameters.get("$defs", {})), _MAX_DEPTH)
    except _InexpressibleError:
        return dict(OPEN)


def _typed(schema: Any, defs: Schema, depth: int) -> Schema:
    if not isinstance(schema, dict) or not depth or _INEXPRESSIBLE & cast("Schema", schema).keys():
        raise _InexpressibleError
    found = cast("Schema", schema)
    if "$ref" in found:
        return _typed(defs.get(str(found["$ref"]).removeprefix("#/$defs/")), defs, depth - 1)
    made: Schema = dict(found)
    kinds: Any = found.get("type")
    if isinstance(kinds, list):
        rest = {key: one for key, one in found.items() if key not in ("type", "description")}
        made = {
            **_said(found),
            "anyOf": [{**rest, "type": kind} for kind in cast("list[str]", kinds)],
        }
    for key in ("anyOf", "oneOf"):
        if key in made:
            made[key] = [_typed(one, defs, depth - 1) for one in made[key]]
    if "properties" in made and "anyOf" not in made:
        fields: Schema = made["properties"]
        made["properties"] = {key: _typed(one, defs, depth - 1) for key, one in fields.items()}
        made["type"] = "object"
    if isinstance(made.get("items"), dict):
        made["items"] = _typed(made["items"], defs, depth - 1)
    return made


def references(schema: object) -> set[str]:
    """Names of the definitions that a schema refers to."""
    found: set[str] = set()
    if isinstance(schema, dict):
        fields = cast("Schema", schema)
        if isinstance(fields.get("$ref"), str):
            found.add(fields["$ref"].rpartition("/")[2])
        for one in fields.values():
            found |= references(one)
    elif isinstance(schema, list):
        for one in cast("list[object]", schema):
            found |= references(one)
    return found


def _recursive(defs: dict[str, Schema], root: Schema) -> frozenset[tuple[str, str]]:
    """Properties that lead back to a definition they are part of."""
    cut: set[tuple[str, str]] = set()
    seen: set[str] = set()

    def visit(name: str, path: frozenset[str]) -> None:
        seen.add(name)
        for key, one in defs[name].get("properties", {}).items():
            inner = references(one)
            if inner & path:
                cut.add((name, key))
                continue
            for other in inner - seen:
                visit(other, path | {other})

    for name in references(root):
        visit(name, frozenset({name}))
    return frozenset(cut)


def without_null(schema: Schema) -> Schema:
    """The schema without the option of being null."""
    options = cast("list[Schema]", schema.get("anyOf") or [])
    kept = [one for one in options if one.get("type") != "null"]
    return {**schema, "anyOf": kept} if kept and len(kept) < len(options) else schema


def _values(schema: Schema) -> Schema:
    values: list[Any] = [schema["const"]] if "const" in schema else schema["enum"]
    kinds = {_JSON_TYPES.get(type(one), "null") for one in values}
    kind: Schema = {"type": kinds.pop()} if len(kinds) == 1 else {}
    return {**kind, **_said(schema), "enum": values}


def _text(how: str, schema: Schema) -> Schema:
    said = _said(schema).get("description")
    return {"type": "string", "description": f"{said} {how}" if said else how}


def _said(schema: Schema) -> Schema:
    """The description, on one line."""
    text = " ".join(str(schema.get("description", "")).split())
    return {"description": text} if text else {}
