"""A value against a JSON Schema: compiled once, every complaint with place and expectation.

References are resolved inside the schema only; nothing is ever fetched.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, cast

import jsonschema_rs

from loopagent.core.hashing import canonical_json
from loopagent.core.names import closest
from loopagent.core.problems import Problem


Schema: TypeAlias = dict[str, Any]
MAX_GOT_CHARS = 80
MAX_MESSAGE_CHARS = 320
MAX_PROBLEMS = 20
MAX_LEVELS = 200
"""Deeper values are refused unchecked: the validator is recursive native code."""
_MAX_CACHED = 1_000
_MAX_EXPLAINED = 1_000
"""Combinations of nested alternatives that are gone through to explain a misfit."""
_REFERENCE = re.compile(r'"\$ref": "([^"]*)"')
_SHOWN_NAMES = 20


@dataclass(frozen=True, slots=True)
class _Compiled:
    """A schema ready for use.

    `levels`: how deep a bad value may be for its faults to be listed one by one.
    """

    schema: Schema
    validator: jsonschema_rs.Validator
    levels: int


_by_object: dict[int, _Compiled] = {}
_by_text: dict[str, _Compiled] = {}
_parts: dict[tuple[int, int], tuple[Schema, Schema, jsonschema_rs.Validator]] = {}


def _compiled(schema: Schema) -> _Compiled:
    """The compiled form of a schema, cached by the object and by its text.

    Raises:
        ValueError: The schema itself is not valid, refers outside itself, or has a pattern that
            cannot be matched in linear time.
    """
    known = _by_object.get(id(schema))
    if known is not None and known.schema is schema:
        return known
    text = canonical_json(schema)
    same = _by_text.get(text)
    compiled = same or _Compiled(schema, _compile(schema), _levels(schema))
    _keep(_by_text, text, compiled)
    _keep(_by_object, id(schema), replace(compiled, schema=schema))
    return compiled


def _compile(schema: Schema) -> jsonschema_rs.Validator:
    # RegexOptions selects the engine without backtracking, so that no pattern can hang the loop.
    options = jsonschema_rs.RegexOptions()
    return jsonschema_rs.validator_for(schema, pattern_options=options, offline=True)


def checked_levels(schema: Schema) -> int:
    """How deep a value that does not satisfy a schema may be for its faults to be listed."""
    return _compiled(schema).levels


def _keep(cache: dict[Any, Any], key: Any, entry: Any) -> None:
    if len(cache) >= _MAX_CACHED:
        cache.clear()
    cache[key] = entry


def _levels(schema: Schema) -> int:
    """How deep a value may be before listing its faults takes too long.

    The validator explains a misfit by trying every alternative at every level. That grows without
    bound only where a schema with several alternatives for an object or array refers to itself.
    """
    refers = {
        f"#/{place}/{name}": set(_REFERENCE.findall(json.dumps(body)))
        for place in ("$defs", "definitions")
        for name, body in schema.get(place, {}).items()
    }
    refers["#"] = {one for one in _REFERENCE.findall(json.dumps(schema)) if one == "#"}
    while leaves := [name for name, others in refers.items() if not others & refers.keys()]:
        for name in leaves:
            del refers[name]
    width = _width(schema)
    if not refers or width <= 1:
        return MAX_LEVELS
    return int(math.log(_MAX_EXPLAINED, width))


def _width(schema: Any) -> int:
    """The most alternatives of one kind, object or array, that stand together in a schema."""
    inner = max(map(_width, _inside(schema)), default=0)
    if not isinstance(schema, dict):
        return inner
    body = cast("Schema", schema)
    options = [one for key in ("anyOf", "oneOf") for one in _inside(body.get(key))]
    kinds = Counter(_alternative_kind(one) for one in options)
    return max(inner, kinds["object"], kinds["array"])


def _alternative_kind(schema: Any) -> str:
    return str(cast("Schema", schema).get("type", "object")) if isinstance(schema, dict) else ""


def schema_problem(schema: Schema) -> str | None:
    """What is wrong with a schema itself, and where; or None."""
    try:
        _compiled(schema)
    except jsonschema_rs.ValidationError as error:
        place = ".".join(map(str, error.instance_path))
        return _capped(f"{place}: {error.message}" if place else error.message)
    except (ValueError, TypeError, RecursionError) as error:
        return _capped(str(error).partition("\n")[0] or type(error).__name__)
    return None


def is_valid_part(root: Schema, part: Schema, value: Any) -> bool:
    """Whether a value satisfies a part of a schema, which may refer to the whole's definitions."""
    key = (id(root), id(part))
    known = _parts.get(key)
    if known is None or known[0] is not root or known[1] is not part:
        names = ("$schema", "$defs", "definitions")
        shared: Schema = {one: root[one] for one in names if one in root}
        try:
            known = (root, part, _compile({**shared, "allOf": [part]}))
        except ValueError:  # it refers to something else in the whole than definitions
            return False
        _keep(_parts, key, known)
    return known[2].is_valid(value)


def too_deep(value: Any, levels: int) -> bool:
    """Whether objects and arrays are nested in more than so many levels; does not recurse."""
    containers = [value] if isinstance(value, (dict, list)) else []
    for _ in range(levels):
        if not containers:
            return False
        containers = [
            inner for one in containers for inner in _inside(one) if isinstance(inner, (dict, list))
        ]
    return bool(containers)


def _inside(value: Any) -> Iterable[Any]:
    """What an object or array holds; nothing for anything else."""
    if isinstance(value, dict):
        return cast("Schema", value).values()
    return cast("list[object]", value) if isinstance(value, list) else ()


def schema_problems(schema: Schema, value: Any, path: str) -> list[Problem]:
    """Everything that keeps a value from satisfying a schema.

    Args:
        schema: JSON Schema (draft 2020-12 unless it says otherwise).
        value: JSON value.
        path: Where the value stands, the start of every problem's path.

    Returns:
        At most `MAX_PROBLEMS` problems, and one that says so when there are more.
    """
    if too_deep(value, MAX_LEVELS):
        return [Problem(path, f"is nested more than {MAX_LEVELS} levels deep")]
    try:
        compiled = _compiled(schema)
        if compiled.validator.is_valid(value):
            return []
        if too_deep(value, compiled.levels):
            text = "does not satisfy its schema; it is nested too deeply to say where"
            return [Problem(path, text, short(value))]
        return _listed(schema, compiled.validator.iter_errors(value), path)
    except (ValueError, TypeError, RecursionError) as error:
        return [
            Problem(
                path,
                f"cannot be checked: {_capped(str(error).partition(chr(10))[0])}",
                short(value),
            )
        ]


def _listed(schema: Schema, errors: Iterator[Any], path: str) -> list[Problem]:
    problems: list[Problem] = []
    for error in errors:
        problems.extend(_problems(schema, error, path))
        if len(problems) > MAX_PROBLEMS:
            return [
                *problems[:MAX_PROBLEMS],
                Problem(path, "has more problems than are listed here"),
            ]
    return problems


def _problems(schema: Schema, error: Any, path: str) -> list[Problem]:
    where = path + "".join(
        f"[{one}]" if isinstance(one, int) else f".{one}" for one in error.instance_path
    )
    kind = error.kind.name
    if kind in {"additionalProperties", "unevaluatedProperties"}:
        return _unknown(schema, error, where)
    if kind == "required":
        return [Problem(f"{where}.{error.kind.property}", "is required and missing")]
    if kind in {"anyOf", "oneOf"} and hasattr(error.kind, "context"):
        return _alternatives(schema, error, path, where)
    return [Problem(where, _capped(_message(error)), short(error.instance))]


def _unknown(schema: Schema, error: Any, where: str) -> list[Problem]:
    known = _known_names(schema, error.schema_path)
    listed = ", ".join(known[:_SHOWN_NAMES]) or "none"
    problems: list[Problem] = []
    for name in error.kind.unexpected:
        near = closest(str(name), known)
        hint = f"did you mean {' or '.join(near)}? " if near else ""
        problems.append(
            Problem(f"{where}.{name}", f"is not known here; {hint}known: {listed}", short(name))
        )
    return problems


def _known_names(schema: Schema, path: list[str | int]) -> list[str]:
    """Property names of the schema whose keyword complained."""
    at: Any = schema
    try:
        for token in path[:-1]:
            at = at[token]
        return list(at["properties"])
    except (KeyError, IndexError, TypeError):
        return []


def _alternatives(schema: Schema, error: Any, path: str, where: str) -> list[Problem]:
    """Complaints of the alternative that was meant, when that is clear; else what each wants."""
    options: list[list[Any]] = error.kind.context
    meant = [one for one in options if not _other_type(one, error.instance_path)]
    if len(meant) == 1:
        return [problem for inner in meant[0] for problem in _problems(schema, inner, path)]
    firsts = [_problems(schema, one[0], path)[0] for one in meant or options if one]
    wanted = " or ".join(dict.fromkeys(f"{_below(one.path, where)}{one.message}" for one in firsts))
    return [
        Problem(where, _capped(wanted or "fits more than one alternative"), short(error.instance))
    ]


def _other_type(errors: list[Any], place: list[str | int]) -> bool:
    return any(one.kind.name == "type" and list(one.instance_path) == list(place) for one in errors)


def _below(path: str, where: str) -> str:
    rest = path.removeprefix(where).lstrip(".")
    return f"({rest}) " if rest else ""


def _types(names: list[str]) -> str:
    return " or ".join(
        f"{'an' if one[0] in 'aio' else 'a'} {one}" if one != "null" else one for one in names
    )


_MESSAGES: dict[str, Callable[[Any], str]] = {
    "type": lambda kind: f"must be {_types(sorted(kind.types, key=lambda one: one == 'null'))}",
    "enum": lambda kind: f"must be one of {', '.join(short(one) for one in kind.options)}",
    "const": lambda kind: f"must be {short(kind.expected_value)}",
    "minimum": lambda kind: f"must be at least {kind.limit}",
    "maximum": lambda kind: f"must be at most {kind.limit}",
    "exclusiveMinimum": lambda kind: f"must be more than {kind.limit}",
    "exclusiveMaximum": lambda kind: f"must be less than {kind.limit}",
    "multipleOf": lambda kind: f"must be a multiple of {kind.multiple_of}",
    "minLength": lambda kind: f"must have at least {kind.limit} characters",
    "maxLength": lambda kind: f"must have at most {kind.limit} characters",
    "pattern": lambda kind: f"must match the pattern {kind.pattern}",
    "minItems": lambda kind: f"must have at least {kind.limit} items",
    "maxItems": lambda kind: f"must have at most {kind.limit} items",
    "uniqueItems": lambda _: "must not hold the same item twice",
    "minProperties": lambda kind: f"must have at least {kind.limit} properties",
    "maxProperties": lambda kind: f"must have at most {kind.limit} properties",
}


def _message(error: Any) -> str:
    if error.kind.name == "falseSchema":
        at_all = error.schema_path[-1] == "additionalProperties"
        return "must have no properties" if at_all else "must not be given"
    known = _MESSAGES.get(error.kind.name)
    return str(error.message) if known is None else known(error.kind)


def _capped(text: str) -> str:
    return text if len(text) <= MAX_MESSAGE_CHARS else text[:MAX_MESSAGE_CHARS] + "…"


def short(value: Any) -> str:
    """A value as JSON, cut to a length that can be shown in a complaint."""
    if isinstance(value, str):
        value = value[: MAX_GOT_CHARS + 1]
    text = json.dumps(value, ensure_ascii=False, default=str, skipkeys=True)
    return text if len(text) <= MAX_GOT_CHARS else text[:MAX_GOT_CHARS] + "…"
