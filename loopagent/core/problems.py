"""What is wrong with a value: where, what was expected, what came.

The core never raises for what a model or a person wrote; it returns problems, all of them at once.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast


if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

GOT_CHARS: Final = 60
"""Longest piece of a wrong value that a message repeats, in characters."""
LINE_CHARS: Final = 300
"""Longest piece of other people's words in a sentence of ours, in characters."""
GOT_KEYS: Final = 6
"""Most keys of a wrong object that a message lists."""

_IDENTIFIER: Final = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
_SPACE: Final = re.compile(r"\\S")
_EXPECTED: Final[dict[str, str]] = {
    "string_type": "text",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a number",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "list_type": "a list",
    "tuple_type": "a list",
    "set_type": "a list",
    "frozen_set_type": "a list",
    "literal_error": "{expected}",
    "union_tag_invalid": "one of {expected_tags}",
    "too_short": "at least {min_length} of them",
    "too_long": "at most {max_length} of them",
    "string_too_short": "at least {min_length} characters",
    "string_too_long": "at most {max_length} characters",
    "greater_than": "a number above {gt}",
    "greater_than_equal": "a number of at least {ge}",
    "less_than": "a number below {lt}",
    "less_than_equal": "a number of at most {le}",
}


_MISSING: Final = frozenset({"missing", "union_tag_not_found"})
_TAGGED: Final = frozenset({"union_tag_invalid", "union_tag_not_found"})
"""What is wrong with the key that says which alternative an object is."""
_SAYS_WHERE: Final = frozenset({"missing", "extra_forbidden"})
"""Complaints about a key that need not be found in the data as it was given."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong.

    Args:
        path: Where, as in `nextStep.actions[0].name`; empty for the whole value.
        message: What was expected and what came.
        got: The wrong value in short; empty when nothing came.
    """

    path: str
    message: str
    got: str = ""

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class Fault:
    """Stands where a value should be and says what is wrong there.

    No field accepts it, so it becomes a problem at its very place, beside all others.

    Args:
        problem: What was expected and what came.
        got: What came, in short.
    """

    __slots__ = ("got", "problem")

    def __init__(self, problem: str, got: str = "") -> None:
        self.problem = problem
        self.got = got


def in_a_line(text: str) -> str:
    """Give words of others as one line that is not too long for a sentence of ours.

    Args:
        text: Any text.
    """
    line = " ".join(text[: 4 * LINE_CHARS].split())
    return line if len(line) <= LINE_CHARS else f"{line[:LINE_CHARS]}…"


def path_text(location: Iterable[str | int]) -> str:
    """Write a location as people do.

    Args:
        location: Keys and positions from the outside in.

    Returns:
        `a.b[0]["odd key"]`.
    """
    parts: list[str] = []
    for step in location:
        if isinstance(step, int):
            parts.append(f"[{step}]")
        elif _IDENTIFIER.fullmatch(step):
            parts.append(f".{step}" if parts else step)
        else:
            parts.append(f"[{json.dumps(step, ensure_ascii=False)}]")
    return "".join(parts)


def shorten(value: object) -> str:
    """Say in a few words what a value is.

    Args:
        value: Any JSON value.

    Returns:
        For example `text "maybe"`, `number 5`, `a list of 3` or `an object with type, name`.
    """
    if isinstance(value, str):
        quoted = json.dumps(value[: GOT_CHARS + 1], ensure_ascii=False)
        return f"text {quoted}" if len(value) <= GOT_CHARS else f"text {quoted[:GOT_CHARS]}…"
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, int | float):
        return f"number {_number(value)}"
    if isinstance(value, list | tuple):
        return f"a list of {len(cast('Sequence[object]', value))}"
    if isinstance(value, dict):
        return _object(cast("dict[object, object]", value))
    return f"a {type(value).__name__}"


def quoted(name: str) -> str:
    """Give a name that somebody wrote, in quotes and cut: for sentences that say what it names.

    Args:
        name: Any text.
    """
    return shorten(name).removeprefix("text ")


def problems_of(error: ValidationError, data: object) -> list[Problem]:
    """Turn a pydantic error into problems, one for each place.

    Args:
        error: What validation raised.
        data: The value that was validated; tells protocol keys from names of union members.

    Returns:
        At least one problem, in the order found. Members of a union that all failed share one problem.
    """
    places: dict[str, tuple[list[str], ErrorDetails]] = {}
    for detail in error.errors(include_url=False):
        path = path_text(_location(detail, data))
        expected = places.setdefault(path, ([], detail))[0]
        wanted = _wanted(detail)
        if wanted not in expected:
            expected.append(wanted)
    return [_problem(path, wanted, detail) for path, (wanted, detail) in places.items()]


def _problem(path: str, wanted: list[str], detail: ErrorDetails) -> Problem:
    value = detail["input"]
    if isinstance(value, Fault):
        return Problem(path, value.problem, value.got)
    if detail["type"] == "value_error":
        return Problem(path, detail["msg"].removeprefix("Value error, "), shorten(value))
    if detail["type"] == "extra_forbidden":
        return Problem(path, "unknown key")
    if detail["type"] in _MISSING:
        return Problem(path, "required, but missing")
    if detail["type"] == "union_tag_invalid":
        value = detail.get("ctx", {})["tag"]
    got = shorten(value)
    if "a number" in wanted and "a whole number" in wanted:
        wanted.remove("a whole number")
    return Problem(path, f"expected {' or '.join(wanted)}, got {got}", got)


def _wanted(detail: ErrorDetails) -> str:
    context: dict[str, Any] = detail.get("ctx", {})
    if detail["type"] == "string_pattern_mismatch":
        pattern = str(context.get("pattern"))
        return (
            "text that is not blank"
            if _SPACE.fullmatch(pattern)
            else f"text that matches {pattern}"
        )
    template = _EXPECTED.get(detail["type"])
    return template.format_map(context) if template else detail["msg"]


def _location(detail: ErrorDetails, data: object) -> list[str | int]:
    """Keep what leads through the data; names of union members lead nowhere and are dropped."""
    kept: list[str | int] = []
    current: Any = data
    steps = detail["loc"]
    for position, step in enumerate(steps):
        last = position == len(steps) - 1
        if _leads(current, step):
            current = current[step]
            kept.append(step)
        elif last and (detail["type"] in _SAYS_WHERE or isinstance(detail["input"], Fault)):
            kept.append(step)
    if detail["type"] in _TAGGED:
        kept.append(str(detail.get("ctx", {})["discriminator"]).strip("'"))
    return kept


def _leads(current: object, step: str | int) -> bool:
    if isinstance(current, dict):
        names = cast("dict[object, object]", current)
        return step in names and not (names.get("type") == step and step != "type")
    return isinstance(current, list) and isinstance(step, int)


def _number(value: float) -> str:
    try:
        return str(value)[:GOT_CHARS]
    except ValueError:  # thousands of digits: Python refuses to print them
        return "with very many digits"


def _object(value: dict[object, object]) -> str:
    if not value:
        return "an empty object"
    keys = ", ".join(_key(key) for key in list(value)[:GOT_KEYS])
    return f"an object with {keys}{', …' if len(value) > GOT_KEYS else ''}"


def _key(key: object) -> str:
    text = str(key)[:GOT_CHARS]
    return text if _IDENTIFIER.fullmatch(text) else json.dumps(text, ensure_ascii=False)
