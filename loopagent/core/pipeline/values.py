"""Values in a pipeline: what they are as text and as numbers, when two are the same, how large they are."""

from __future__ import annotations

import json
import re
from decimal import Context, Decimal
from typing import Any, Final

from loopagent.core.hashing import canonical_json
from loopagent.core.json_values import is_array, is_object
from loopagent.core.problems import path_text
from loopagent.core.schema_check import too_deep
from loopagent.core.strict import json_value


MAX_NUMBER_CHARS: Final = 40
"""Longest text that is read as a number, in characters."""
WHOLE_BELOW: Final = 1e15
"""Size below which a float without a fraction is written as a whole number."""
MAX_BITS: Final = 13_000
"""Largest whole number that is made, in bits; Python writes numbers of a little more."""
MAX_LEVELS: Final = 100
"""Deepest nesting of JSON that is read out of text."""
SHOWN_KEYS: Final = 8
"""Most keys of an object that a message lists."""
_NUMBER: Final = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?", re.ASCII)
_EXACT: Final = Context(prec=60)


def number_of(value: Any) -> int | float | None:
    """Give a number, also one that came as text; None for everything else, true and false included."""
    kind = value.__class__
    if kind is int or kind is float:
        return value  # type: ignore[no-any-return]
    if kind is not str or len(value) > MAX_NUMBER_CHARS:
        return None
    text = value.strip()
    if not _NUMBER.fullmatch(text):
        return None
    return int(text) if text.lstrip("+-").isdigit() else _finite(float(text))


def total_of(numbers: list[int | float]) -> int | float | None:
    """Add numbers as they are written, so that 0.1 and 0.2 make 0.3; None when the sum is no number."""
    if all(isinstance(one, int) for one in numbers):
        whole = sum(numbers)
        return whole if int(whole).bit_length() <= MAX_BITS else None
    total = Decimal(0)
    for one in numbers:
        total = _EXACT.add(total, Decimal(repr(one)))
    return _finite(float(total))


def mean_of(numbers: list[int | float]) -> int | float | None:
    """The average, with the care of `total_of`."""
    total = total_of(numbers)
    if total is None:
        return None
    try:
        mean = float(_EXACT.divide(Decimal(repr(total)), Decimal(len(numbers))))
    except (ValueError, OverflowError):  # a whole number of thousands of digits
        return None
    return int(mean) if mean.is_integer() and abs(mean) < WHOLE_BELOW else _finite(mean)


def _finite(value: float) -> float | None:
    return value if value - value == 0 else None


def text_of(value: Any) -> str:
    """Give a value as text: text as it is, null as `null`, anything else as compact JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer() and abs(value) < WHOLE_BELOW:
        return str(int(value))
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def identity_of(value: Any) -> str:
    """Give a text that is the same for the same values, whatever the order of keys; 1 and 1.0 are the same."""
    if isinstance(value, str):
        return f'"{value}'
    if is_object(value) or is_array(value):
        return canonical_json(value)
    return text_of(value)


def same(left: Any, right: Any) -> bool:
    """Whether two values are equal: numbers by size, also beside a number in text; others by their text.

    Null equals null alone.
    """
    if left is None or right is None:
        return left is right
    if isinstance(left, str) and isinstance(right, str):
        return left == right
    one, other = number_of(left), number_of(right)
    if one is not None and other is not None:
        return one == other
    if isinstance(left, (dict, list)) and isinstance(right, (dict, list)):
        return canonical_json(left) == canonical_json(right)
    return text_of(left) == text_of(right)


def decoded(value: Any) -> Any:
    """Read text that clearly holds a JSON object or array; anything else stays as it is."""
    if not isinstance(value, str) or value.lstrip()[:1] not in {"{", "["}:
        return value
    try:
        found = json_value(value)
    except (ValueError, RecursionError):
        return value
    return value if too_deep(found, MAX_LEVELS) else found


def rows_of(value: Any) -> Any:
    """Take the array out of an object that is nothing but a wrapper round it: `{"rows": […]}`."""
    if is_object(value) and len(value) == 1 and is_array(value.get("rows")):
        return value["rows"]
    return value


def describe(value: Any) -> str:
    """Say what a value is and how large."""
    if value is None:
        return "null"
    if is_array(value):
        return _counted(len(value), "entry", "entries")
    if is_object(value):
        return f"object with {_counted(len(value), 'key', 'keys')}"
    if isinstance(value, str):
        return f"text of {_counted(len(value), 'character', 'characters')}"
    return text_of(value)


def _counted(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"


def keys_of(value: Any) -> str:
    """List the keys of an object, the first few."""
    if not is_object(value):
        return ""
    shown = ", ".join(path_text((key,)) or '""' for key in list(value)[:SHOWN_KEYS])
    return shown + (", …" if len(value) > SHOWN_KEYS else "")


def is_degenerate(value: Any) -> bool:
    """Whether a value says nothing: null, 0, blank text, or a list or object of nothing but such."""
    if is_array(value):
        return all(one is None for one in value)
    if is_object(value):
        return not value
    return value is None or (isinstance(value, str) and not value.strip())


def size_of(value: Any) -> int:
    """The size of a value as JSON, in bytes."""
    return len(
        json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    )


def excerpt(value: Any, max_chars: int) -> str:
    """The beginning of a value as text."""
    text = text_of(value)
    return text if len(text) <= max_chars else text[:max_chars] + "…"
