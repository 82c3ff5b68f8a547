"""Parameters against their JSON Schema, before anything is dispatched.

First a value is brought into the form the schema means (defaults, nulls that mean "left out", JSON
that came as text), then it is checked. Nothing here raises for what a model or a person gave.
"""

from __future__ import annotations

import copy
from typing import Any, cast

from loopagent.core.flat_params import fits_as_it_is
from loopagent.core.problems import Problem
from loopagent.core.schema_check import (
    Schema,
    is_valid_part,
    schema_problem,
    schema_problems,
    short,
    too_deep,
)
from loopagent.core.strict import json_value


MAX_DEPTH = 100
"""Levels of nesting in which values are looked at; deeper ones are refused."""
MAX_TRIALS = 2_000
"""Alternatives tried out in one check; values of later ones are checked as they came."""
DECODED = "the text was decoded as JSON; give the value itself"
"""End of the warning about a text where the schema wants another value."""
_TOO_DEEP = f"is nested more than {MAX_DEPTH} levels deep"
_BOOLEANS = {"true": True, "false": False}


def check_params(
    schema: Schema, params: Any, path: str = "params"
) -> tuple[dict[str, Any], list[Problem], list[str]]:
    """Bring parameters into the form that the action gets, and check them.

    - Nothing at all (`null`, an empty text) is an empty object.
    - Text is decoded where, and only where, the schema wants an object, array, number or boolean
      and the text holds one; a declared string stays byte for byte.
    - A null for an optional parameter that takes no null, or whose default is null, counts as
      left out.
    - Defaults are filled in, in nested objects too.

    Args:
        schema: JSON Schema of the parameters; not to be changed afterwards, as its compiled form
            is cached.
        params: What came.
        path: Where it came from, the start of every problem's path.

    Returns:
        The parameters, all problems (none when they are good), and a warning for every decoded
        text.
    """
    if type(params) is dict and fits_as_it_is(schema)(cast("dict[str, Any]", params)):
        return {**params}, [], []
    broken = schema_problem(schema)
    if broken is not None:
        return {}, [Problem(path, f"cannot be checked, the schema itself is wrong: {broken}")], []
    given = _whole(params)
    if not isinstance(given, dict):
        return {}, [Problem(path, "must be an object that holds the parameters", short(params))], []
    if too_deep(given, MAX_DEPTH):
        return {}, [Problem(path, _TOO_DEEP)], []
    fitter = _Fitter(schema)
    ready = cast("dict[str, Any]", fitter.fit(schema, given, path))
    problems = fitter.problems or schema_problems(schema, ready, path)
    return ready, problems, fitter.warnings


def _whole(params: Any) -> Any:
    if params is None:
        return {}
    if not isinstance(params, str):
        return params
    return _decoded(params) if params.strip() else {}


def _decoded(text: str) -> Any:
    """The JSON value a text holds; the text itself when it holds none."""
    try:
        return json_value(text)
    except (ValueError, RecursionError):
        return text


class _Fitter:
    """Brings one value into the form its schema means; the value that came is not changed."""

    def __init__(self, root: Schema) -> None:
        self.root = root
        self.trials = 0
        self.warnings: list[str] = []
        self.problems: list[Problem] = []

    def fit(self, schema: Schema, value: Any, path: str, depth: int = 0) -> Any:
        """The value in the form that `schema`, a part of the root schema, means."""
        if isinstance(value, str):
            value = self._decode(schema, value, path)
        if depth > MAX_DEPTH or not isinstance(value, (dict, list)):
            return value
        if "$ref" in schema:
            value = self.fit(self._resolve(str(schema["$ref"])), value, path, depth + 1)
        for part in _schemas(schema.get("allOf")):
            value = self.fit(part, value, path, depth + 1)
        for keyword in ("anyOf", "oneOf"):
            if keyword in schema:
                value = self._alternative(_schemas(schema[keyword]), value, path, depth + 1)
        if isinstance(value, dict):
            return self._object(schema, cast("dict[str, Any]", value), path, depth)
        return self._array(schema, cast("list[object]", value), path, depth)

    def _decode(self, schema: Schema, text: str, path: str) -> Any:
        if schema.get("type") == "string":
            return text
        kinds = self._kinds(schema)
        if kinds is None or "string" in kinds:
            return text
        word = text.strip().lower()
        value = _BOOLEANS[word] if word in _BOOLEANS else _decoded(text)
        if value is None or isinstance(value, str) or not _admits(kinds, value):
            return text
        if too_deep(value, MAX_DEPTH):
            self.problems.append(Problem(path, _TOO_DEEP))
            return text
        self.warnings.append(f"{path}: {DECODED}")
        return value

    def _alternative(self, options: list[Schema], value: Any, path: str, depth: int) -> Any:
        """The value in the form of the alternative it is meant for.

        That is the only one of its type and with its constants, else the first that it satisfies.
        """
        candidates = [one for one in options if self._may_mean(one, value)]
        if len(candidates) == 1:
            return self.fit(candidates[0], value, path, depth)
        for one in candidates:
            self.trials += 1
            if self.trials > MAX_TRIALS:
                break
            mark = len(self.warnings), len(self.problems)
            fitted = self.fit(one, value, path, depth)
            if is_valid_part(self.root, one, fitted):
                return fitted
            del self.warnings[mark[0] :], self.problems[mark[1] :]
        return value

    def _may_mean(self, schema: Schema, value: Any) -> bool:
        """Whether type and constants (a discriminator) leave it open that a value means this."""
        if not _admits(self._kinds(schema), value):
            return False
        if not isinstance(value, dict):
            return True
        if "$ref" in schema:
            schema = self._resolve(str(schema["$ref"]))
        given = cast("dict[str, Any]", value)
        for key, inner in cast("dict[str, Any]", schema.get("properties") or {}).items():
            if key in given and isinstance(inner, dict):
                part = cast("Schema", inner)
                if part.get("const", given[key]) != given[key]:
                    return False
        return True

    def _resolve(self, reference: str) -> Schema:
        """The schema a local reference points to; one that fits everything when there is none."""
        found: Any = self.root
        for token in reference.removeprefix("#").split("/")[1:]:
            key = token.replace("~1", "/").replace("~0", "~")
            found = cast("dict[str, Any]", found).get(key) if isinstance(found, dict) else None
        return cast("Schema", found) if isinstance(found, dict) else {}

    def _object(self, schema: Schema, value: dict[str, Any], path: str, depth: int) -> Schema:
        properties: dict[str, Any] = schema.get("properties") or {}
        others = schema.get("additionalProperties")
        required = schema.get("required", ())
        ready: dict[str, Any] = {}
        for key, one in value.items():
            inner = properties.get(key, others)
            if not isinstance(inner, dict):
                ready[key] = one
                continue
            part = cast("Schema", inner)
            if one is not None or key in required or not self._left_out(part):
                ready[key] = self.fit(part, one, f"{path}.{key}", depth + 1)
        for key, inner in properties.items():
            part = cast("Schema", inner) if isinstance(inner, dict) else {}
            default = part.get("default")
            if default is not None and key not in ready:
                ready[key] = self.fit(part, copy.deepcopy(default), f"{path}.{key}", depth + 1)
        return ready

    def _left_out(self, schema: Schema) -> bool:
        """Whether a null for this optional value says nothing more than leaving it out."""
        kinds = self._kinds(schema)
        nullable = kinds is None or "null" in kinds
        return not nullable or ("default" in schema and schema["default"] is None)

    def _array(self, schema: Schema, value: list[object], path: str, depth: int) -> list[Any]:
        first = _schemas(schema.get("prefixItems"))
        items = schema.get("items")
        if not first and not isinstance(items, dict):
            return value
        rest = cast("Schema", items) if isinstance(items, dict) else {}
        ready: list[Any] = []
        for index, one in enumerate(value):
            part = first[index] if index < len(first) else rest
            ready.append(self.fit(part, one, f"{path}[{index}]", depth + 1))
        return ready

    def _kinds(self, schema: Schema, depth: int = 0) -> frozenset[str] | None:
        """The JSON types a schema names; None when it takes any."""
        kind = schema.get("type")
        if isinstance(kind, str):
            return frozenset((kind,))
        if isinstance(kind, list):
            return frozenset(map(str, cast("list[object]", kind)))
        if depth > MAX_DEPTH:
            return None
        if "$ref" in schema:
            return self._kinds(self._resolve(str(schema["$ref"])), depth + 1)
        if "const" in schema or "enum" in schema:
            return frozenset(map(_kind, schema.get("enum") or [schema.get("const")]))
        return self._union(schema, depth)

    def _union(self, schema: Schema, depth: int) -> frozenset[str] | None:
        options = _schemas(schema.get("anyOf")) + _schemas(schema.get("oneOf"))
        found = [self._kinds(one, depth + 1) for one in options]
        if options and None not in found:
            return frozenset[str]().union(*(one for one in found if one is not None))
        narrowing = (self._kinds(one, depth + 1) for one in _schemas(schema.get("allOf")))
        return next((one for one in narrowing if one is not None), None)


def _schemas(value: Any) -> list[Schema]:
    """The object schemas of a keyword that holds a list of schemas."""
    if not isinstance(value, list):
        return []
    return [cast("Schema", one) for one in cast("list[object]", value) if isinstance(one, dict)]


_KINDS: dict[type[Any], str] = {
    type(None): "null",
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}


def _kind(value: Any) -> str:
    return _KINDS.get(value.__class__, "object")


def _admits(kinds: frozenset[str] | None, value: Any) -> bool:
    if kinds is None:
        return True
    kind = _kind(value)
    if kind in kinds or (kind == "integer" and "number" in kinds):
        return True
    return kind == "number" and "integer" in kinds and float(value).is_integer()
