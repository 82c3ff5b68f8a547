"""Types as short TypeScript-like text, for prompts: what a model reads fastest and pays least for."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator
from functools import lru_cache
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
    model: type[BaseModel],
    only: Collection[str] | None = None,
    *,
    notes: bool = False,
    named: Collection[str] = (),
    hidden: Collection[str] = (),
) -> str:
    """The shape of a wire type.

    Args:
        model: The type.
        only: Top-level keys to show, in this order; None shows all.
        notes: One line a field, with its description behind it.
        named: Types that are written as their name, because they are declared elsewhere.
        hidden: Keys that are left out, at any depth.
    """
    schema = _generated(model)
    if only is not None:
        schema = {**schema, "properties": {key: schema["properties"][key] for key in only}}
    shape = _Shape(schema.get("$defs", {}), named=named, hidden=hidden)
    return shape.lines(schema) if notes else shape.of(schema, 0)


def shared_shapes(
    models: Collection[type[BaseModel]], hidden: Collection[str] = ()
) -> dict[str, str]:
    """The types that several models refer to, by name, so that a prompt writes each out once.

    A type that is only part of another shared one is written out there.
    """
    schemas = [_without(_generated(model), hidden) for model in models]
    defs: dict[str, Schema] = {}
    holders: Counter[str] = Counter()
    for schema in schemas:
        defs |= schema.get("$defs", {})
        holders.update(list(schema.get("$defs", ())))
    shared = {name for name, count in holders.items() if count > 1}
    own = [{**schema, "$defs": None} for schema in schemas]
    own += [one for name, one in defs.items() if name not in shared]
    direct = Counter(name for one in own for name in _references(one))
    shape = _Shape(defs)
    return {
        name: shape.of(defs[name], 0)
        for name in sorted(shared)
        if direct[name] > 1 and SHAPE not in defs[name]
    }


@lru_cache(maxsize=128)
def _generated(model: type[BaseModel]) -> Schema:
    """The generation schema of a type; made once, as types do not change, and not to be changed."""
    return flavour(model.model_json_schema(by_alias=True), GENERATED)


def _without(schema: Schema, hidden: Collection[str]) -> Schema:
    """The schema without the properties that are hidden, and without the types that nothing else refers to."""
    if not hidden:
        return schema
    defs = {name: _cut(one, hidden) for name, one in schema.get("$defs", {}).items()}
    own = _cut({key: one for key, one in schema.items() if key != "$defs"}, hidden)
    used: set[str] = set()
    todo = list(_references(own))
    while todo:
        name = todo.pop()
        if name not in used:
            used.add(name)
            todo += _references(defs[name])
    return {**own, "$defs": {name: one for name, one in defs.items() if name in used}}


def _cut(schema: Schema, hidden: Collection[str]) -> Schema:
    properties = schema.get("properties")
    if not properties:
        return schema
    kept = {key: one for key, one in properties.items() if key not in hidden}
    return {**schema, "properties": kept}


def _references(schema: Any) -> Iterator[str]:
    """Names of the definitions that a schema refers to itself, as often as it does."""
    if isinstance(schema, dict):
        for key, one in schema.items():
            if key == "$ref":
                yield _ref_name(one)
            else:
                yield from _references(one)
    elif isinstance(schema, list):
        for one in schema:
            yield from _references(one)


def _ref_name(ref: Any) -> str:
    return str(ref).rpartition("/")[2]


def schema_shape(schema: Schema) -> str:
    """The shape of a JSON Schema, with what a parameter means as a comment behind it."""
    return _Shape(schema.get("$defs", {}), comments=True).of(schema, 0)


class _Shape:
    def __init__(
        self,
        defs: dict[str, Schema],
        *,
        comments: bool = False,
        named: Collection[str] = (),
        hidden: Collection[str] = (),
    ) -> None:
        self._hidden = hidden
        self._defs = defs
        self._named = named
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
        name = _ref_name(schema.get("$ref", ""))
        if name in self._named:
            return {SHAPE: name}
        return self._defs.get(name, schema)

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
        members = [
            self._member(schema, key, one, depth + 1)
            for key, one in properties.items()
            if key not in self._hidden
        ]
        return "{" + ", ".join(members) + "}"

    def _member(self, schema: Schema, key: str, inner: Schema, depth: int) -> str:
        optional = "" if key in schema.get("required", ()) else "?"
        text = self.of(inner, depth)
        default = inner.get("default")
        if default:  # what is left out is false, zero or empty anyway
            text += f" = {json.dumps(default, ensure_ascii=False)}"
        note = " ".join(str(inner.get("description", "")).split()) if self._comments else ""
        return f"{key}{optional}: {text}" + (f" /* {note} */" if note else "")


def _note(schema: Schema) -> str:
    text = " ".join(str(schema.get("description", "")).split())
    return f" // {text}" if text else ""
