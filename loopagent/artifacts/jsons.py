"""Tools for JSON: `json_path`, `json_keys`, `json_search`, `json_iterate`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import Field

from loopagent.artifacts.source import Params, Source, ToolError, page, shortened
from loopagent.artifacts.texts import (
    FullParams,
    Position,
    compiled,
    full_page,
    matches,
)
from loopagent.core.json_values import compact_json, is_array, is_object


MAX_PATH_CHARS = 1_000
"""Longest path."""
MATCH_CHARS = 300
"""How much of a found value is shown."""
_STEP = re.compile(
    r"""\.?(?:(?P<name>[^.\[\]"'*]+)|\[(?P<index>-?\d+)\]|\[(?P<all>\*)\]|\[(?P<quoted>"[^"]*"|'[^']*')\]|(?P<star>\*))"""
)
Found = tuple[str, Any]


class PathParams(Params):
    """A path such as `items[0].name`, `items[*].name` or `["a.b"]`; empty for all. Long values come in pages."""

    path: Annotated[str, Field(max_length=MAX_PATH_CHARS)] = ""
    start: Position = 0


class KeysParams(Params):
    """Whose keys to list."""

    path: Annotated[str, Field(max_length=MAX_PATH_CHARS)] = ""
    start: Position = 0


class SearchParams(Params):
    """A key to look for, a pattern for values, or both. `start` is the number of the first match, from 0."""

    key: str | None = None
    pattern: str | None = None
    start: Position = 0
    max_results: Annotated[int, Field(ge=1, le=500)] = 50


class IterateParams(Params):
    """Which list, and which of its items."""

    array_path: Annotated[str, Field(max_length=MAX_PATH_CHARS)] = ""
    start: Position = 0
    count: Annotated[int, Field(ge=1, le=1_000)] = 20


def load(source: Source) -> Any:
    """The content as a JSON value.

    Raises:
        ToolError: It is none.
    """
    text = source.text()
    try:
        return json.loads(text)
    except ValueError as error:
        message = f"this is not valid JSON ({error}); look at it with get_full"
        raise ToolError(message) from None


def json_path(source: Source, params: PathParams) -> dict[str, Any]:
    """The value at a path, or all values that a path with `[*]` leads to."""
    found = select(source, load(source), params.path)
    value = [one for _, one in found] if "*" in params.path else found[0][1]
    return shown(source, value, params.start)


def shown(source: Source, value: Any, start: int) -> dict[str, Any]:
    """A value that fits whole, or a page of a list or text, or the outline of an object."""
    if not start and len(compact_json(value)) <= source.max_chars - 60:
        return {"value": value}
    if is_array(value):
        items = value
        return page(source, items, start, len(items)).told("items", length=len(items))
    if is_object(value):
        return {"tooLong": True, **_outline(source, value, start)}
    return full_page(source, str(value), FullParams(start=start, count=source.max_chars))


def json_keys(source: Source, params: KeysParams) -> dict[str, Any]:
    """The keys of an object, each with what is behind it; of a list its length and the keys of its first item."""
    value = select(source, load(source), params.path)[0][1]
    if is_object(value):
        return _outline(source, value, params.start)
    if is_array(value):
        items = value
        first = items[0] if items else None
        keys = page(source, _keys(first), params.start, 1_000).told("keys")
        return {"type": "list", "length": len(items), "firstItem": keys}
    return {"type": kind(value)}


def _outline(source: Source, value: dict[str, Any], start: int) -> dict[str, Any]:
    found = page(source, _keys(value), start, 1_000)
    return found.told("keys", type="object", length=len(value))


def _keys(value: Any) -> list[dict[str, Any]]:
    if not is_object(value):
        return []
    return [
        {"key": key, "type": kind(one), **({"length": len(one)} if _sized(one) else {})}
        for key, one in value.items()
    ]


def _sized(value: Any) -> bool:
    return isinstance(value, list | dict | str)


def kind(value: Any) -> str:
    """What sort of JSON value it is."""
    names = {dict: "object", list: "list", str: "text", bool: "boolean", type(None): "null"}
    return names.get(type(value), "number")


def json_search(source: Source, params: SearchParams) -> dict[str, Any]:
    """Places whose key is the one asked for and whose value, as text, has the pattern."""
    if params.key is None and params.pattern is None:
        raise ToolError("give a `key`, a `pattern`, or both")
    pattern = None if params.pattern is None else compiled(params.pattern, "i")
    found: list[dict[str, Any]] = []
    after: int | None = None
    number = 0
    for path, key, value in _walk(source, load(source)):
        if params.key is not None and key != params.key:
            continue
        plain = not isinstance(value, list | dict)
        text = value if isinstance(value, str) else compact_json(value) if plain else ""
        if pattern is not None and not (plain and pattern.found_in(text)):
            continue
        if number >= params.start + params.max_results:
            after = number
            break
        if number >= params.start:
            found.append({"match": number, "path": path, "value": _short(value)})
        number += 1
    return matches(source, found, after, key="match")


def _short(value: Any) -> Any:
    return value if len(compact_json(value)) <= MATCH_CHARS else shortened(value, MATCH_CHARS)


def _walk(source: Source, value: Any) -> Iterator[tuple[str, str | None, Any]]:
    """Every place in a value in document order: its path, its own key, and what is there."""
    todo: list[tuple[str, str | None, Any]] = [("", None, value)]
    count = 0
    while todo:
        path, key, one = todo.pop()
        count += 1
        if not count % 1_000:
            source.check_time()
        yield path, key, one
        if is_object(one):
            pairs = one
            todo += [(step(path, name), name, part) for name, part in reversed(pairs.items())]
        elif is_array(one):
            items = one
            todo += [(f"{path}[{at}]", None, items[at]) for at in range(len(items) - 1, -1, -1)]


def step(path: str, name: str) -> str:
    """A path, one key further."""
    if not _STEP.fullmatch(name):
        return f"{path}[{json.dumps(name, ensure_ascii=False)}]"
    return f"{path}.{name}" if path else name


def json_iterate(source: Source, params: IterateParams) -> dict[str, Any]:
    """Some items of a list."""
    value = select(source, load(source), params.array_path)[0][1]
    if not is_array(value):
        raise ToolError(f"there is no list at {params.array_path!r}, but a {kind(value)}")
    items = value
    found = page(source, items, params.start, params.count)
    return found.told("items", length=len(items))


def select(source: Source, value: Any, path: str) -> list[Found]:
    """What a path leads to, each with its own path.

    Raises:
        ToolError: It is no path, or it leads nowhere.
    """
    found: list[Found] = [("", value)]
    for taken in _steps(path):
        source.check_time()
        found = [after for one in found for after in _next(one, taken)]
        if not found:
            raise ToolError(f"nothing at {path!r}")
    return found


def _steps(path: str) -> Iterator[str | int | None]:
    """The steps of a path: keys, positions, None for all."""
    rest = path.strip().removeprefix("$")
    at = 0
    while at < len(rest):
        match = _STEP.match(rest, at)
        if match is None:
            raise ToolError(f"not a path: {path!r}; write it like items[0].name or items[*].name")
        at = match.end()
        name, index, _, quoted, _ = match.groups()
        if index is not None:
            yield int(index)
        elif name is not None or quoted is not None:
            yield name if quoted is None else quoted[1:-1]
        else:
            yield None


def _next(found: Found, taken: str | int | None) -> list[Found]:
    path, value = found
    if is_object(value):
        pairs = value
        if taken is None:
            return [(step(path, name), one) for name, one in pairs.items()]
        name = str(taken)
        return [(step(path, name), pairs[name])] if name in pairs else []
    if is_array(value):
        items = value
        if taken is None:
            return [(f"{path}[{at}]", one) for at, one in enumerate(items)]
        if isinstance(taken, int) and -len(items) <= taken < len(items):
            at = taken % len(items)
            return [(f"{path}[{at}]", items[at])]
    return []
