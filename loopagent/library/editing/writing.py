"""Plain data as YAML, the way people write it: short things on one line, long texts over several."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from loopagent.core.json_values import is_array, is_object


WIDTH: Final = 96
"""Longest line that holds an object or a list; longer ones go over several lines."""
_PLAIN: Final = re.compile(
    r"[A-Za-z/_][A-Za-z0-9 ._/+()@$~;-]*(?::(?=[^\s,\[\]{}])[^\s,\[\]{}#\"'`]*)?"
    r"|[0-9]+(?:ms|s|m|h|d|xx|/[smhd])"
)
_WORDS: Final = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n"})
"""Words that a reader of YAML, an older one too, takes for something else than text."""
_ODD: Final = re.compile("[\x7f-\xa0\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]")
_KEPT: Final = re.compile(r"[^\s#](?:.*[^\s])?", re.DOTALL)


def scalar(value: Any) -> str:
    """A text, number, boolean or null on one line."""
    if not isinstance(value, str):
        return json.dumps(value)
    fine = _PLAIN.fullmatch(value) and value.lower() not in _WORDS and value[-1] not in " :"
    return value if fine else quoted(value)


def quoted(text: str) -> str:
    """A text in double quotes; what cannot be seen is escaped."""
    return _ODD.sub(lambda one: f"\\u{ord(one[0]):04x}", json.dumps(text, ensure_ascii=False))


def on_one_line(value: Any) -> str:
    """Any value in a single line: `{type: string, enum: [a, b]}`."""
    if is_object(value):
        return "{" + ", ".join(f"{scalar(k)}: {on_one_line(v)}" for k, v in value.items()) + "}"
    if is_array(value):
        return "[" + ", ".join(map(on_one_line, value)) + "]"
    return scalar(value)


def after_key(value: Any, column: int, *, flow: bool = False) -> list[str]:
    """What follows `key:` in lines; the first belongs beside the colon, and is empty when all goes below it.

    Args:
        value: The value.
        column: Where the key stands, from 0.
        flow: Prefer braces and brackets as long as they fit a line.
    """
    pad = " " * (column + 2)
    if isinstance(value, str) and _is_block(value):
        return [
            "|" + ("" if value.endswith("\n") else "-"),
            *(f"{pad}{one}".rstrip() for one in value.splitlines()),
        ]
    if not is_object(value) and not is_array(value):
        return [scalar(value)]
    line = on_one_line(value)
    if not value or (len(line) + column < WIDTH and (flow or _is_short(value))):
        return [line]
    return ["", *(below(value, column + 2))]


def below(value: Any, column: int) -> list[str]:
    """An object or a list that is not empty, over several lines."""
    made: list[str] = []
    for key, one in value.items() if is_object(value) else ():
        made += entry(key, one, column)
    for one in value if is_array(value) else ():
        made += item(one, column)
    return made


def entry(key: str, value: Any, column: int, *, flow: bool = False) -> list[str]:
    """One key with its value."""
    first, *rest = after_key(value, column, flow=flow)
    return [f"{' ' * column}{scalar(key)}: {first}".rstrip(), *rest]


def item(value: Any, column: int) -> list[str]:
    """One item of a list, its dash in the column."""
    first, *rest = after_key(value, column)
    if first:
        return [f"{' ' * column}- {first}", *rest]
    return [f"{' ' * column}- {rest[0].lstrip()}", *rest[1:]]


def _is_block(text: str) -> bool:
    """Whether a text is the same after it was written with `|`."""
    body = text.removesuffix("\n")
    return (
        "\n" in text
        and _KEPT.fullmatch(body) is not None
        and _ODD.search(body) is None
        and not re.search(r"[\x00-\x09\x0b-\x1f]| \n", body)
    )


def _is_short(value: Any) -> bool:
    """Whether something holds only plain values, or an object whose lists hold only those."""
    inner = value.values() if is_object(value) else value
    return all(not is_object(one) and not (is_array(one) and not _is_flat(one)) for one in inner)


def _is_flat(values: list[Any]) -> bool:
    return all(not is_object(one) and not is_array(one) for one in values)
