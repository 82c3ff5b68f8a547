"""Types as short TypeScript-like text, for prompts: what a model reads fastest and pays least for."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any, cast

from pydantic import BaseModel

from loopagent.core.flavours import GENERATED, SHAPE, flavour


Schema = dict[str, Any]
MAX_DEPTH = 8
_SIMPLE = {
    "string": "string",
    "integer": "integer",
    "number": "number",
    "boolean": "boolean",
    "null": "null",
}


def model_shape(
    model: type[BaseModel], only: Collection[str] | None = None, *, notes: bool = False
) -> str:
    """The shape of a wire type.

    Args:
        model: The type.
        only: Top-level keys to show, in this order; None shows all.
        notes: One line a field, with its description behind it.
    """
    schema = flavour(model.model_json_schema(by_alias=True), GENERATED)
    if only is not None:
        schema = {**schema, "properties": {key: schema["properties"][key] for key in only}}
    return (
        _Shape(schema.get("$defs", {})).lines(schema)
        if notes
        else _Shape(schema.get("$defs", {})).of(schema, 0)
    )


def schema_shape(schema: Schema) -> str:
    """The shape of a JSON Schema, with what a parameter means as a comment behind it."""
    return _Shape(schema.get("$defs", {}), comments=True).of(schema, 0)


class _Shape:
    def __init__(self, defs: dict[str, Schema], *, comments: bool = False) -> None:
        self._defs = defs
        self._comments = comments

    def lines(self, schema: Schema) -> str:
        """An object with one line a field."""
        rows = [
            f"  {self._member(schema, key, one, 1)};{_note(one)}"
            for key, one in schema.get("properties", {}).items()
        ]
        return "{\n" + "\n".join(rows) + "\n}"

    def of(self, schema: Schema, depth: int) -> str:
        """The text of one schema."""
        schema = self._resolved(schema)
        if SHAPE in schema:
            return str(schema[SHAPE])
        if depth > MAX_DEPTH:
            return "…"
        if "const" in schema:
            return json.dumps(schema["const"], ensure_ascii=False)
        if "enum" in schema:
            return "|".join(json.dumps(one, ensure_ascii=False) for one in schema["enum"])
        options = schema.get("anyOf") or schema.get("oneOf")
        if options:
            return self._union(cast("list[Schema]", options), depth)
        return self._typed(schema, depth)

    def _is_union(self, schema: Schema | None) -> bool:
        found = self._resolved(schema or {})
        return any(len(found.get(key, ())) > 1 for key in ("anyOf", "oneOf", "enum"))

    def _resolved(self, schema: Schema) -> Schema:
        name = str(schema.get("$ref", "")).rpartition("/")[2]
        return self._defs.get(name, schema) if name else schema

    def _union(self, options: list[Schema], depth: int) -> str:
        texts = [self.of(one, depth) for one in options]
        return "|".join(one for one in dict.fromkeys(texts) if one != "null") or "null"

    def _typed(self, schema: Schema, depth: int) -> str:
        kind = schema.get("type")
        if isinstance(kind, list):
            return "|".join(_SIMPLE.get(str(one), str(one)) for one in kind)
        if kind == "array":
            inner = self.of(cast("Schema", schema.get("items") or {}), depth + 1)
            return f"({inner})[]" if self._is_union(schema.get("items")) else f"{inner}[]"
        if kind == "object" or "properties" in schema:
            return self._object(schema, depth)
        return _SIMPLE.get(str(kind), "any")

    def _object(self, schema: Schema, depth: int) -> str:
        properties: dict[str, Schema] = schema.get("properties") or {}
        if not properties:
            return "object" if depth else "{}"
        members = [self._member(schema, key, one, depth + 1) for key, one in properties.items()]
        return "{" + ", ".join(members) + "}"

    def _member(self, schema: Schema, key: str, inner: Schema, depth: int) -> str:
        optional = "" if key in schema.get("required", ()) else "?"
        text = self.of(inner, depth)
        default = inner.get("default")
        if default not in (None, "", [], {}):
            text += f" = {json.dumps(default, ensure_ascii=False)}"
        note = " ".join(str(inner.get("description", "")).split()) if self._comments else ""
        return f"{key}{optional}: {text}" + (f" /* {note} */" if note else "")


def _note(schema: Schema) -> str:
    text = " ".join(str(schema.get("description", "")).split())
    return f" // {text}" if text else ""
