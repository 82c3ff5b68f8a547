"""A person's answers against the form they were asked with: typed values, or one problem a field."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, Final, TypeGuard, cast

from loopagent.core.problems import Problem, shorten


Json = dict[str, Any]

MAX_TEXT_CHARS: Final = 100_000
"""Longest answer to one question, in characters."""
MAX_DEPTH: Final = 100
"""Deepest nesting of an answer whose question type is not known, in levels."""
SHOWN_OPTIONS: Final = 20
"""Most options that a message lists."""
SHOWN_ID_CHARS: Final = 80
"""Longest piece of an unknown field's name that a problem repeats, in characters."""

_NUMBER: Final = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_WHOLE: Final = re.compile(r"[+-]?\d{1,300}", re.ASCII)
_DATE: Final = re.compile(r"(\d{4})-(\d{2})-(\d{2})", re.ASCII)
_TIME: Final = re.compile(r"(?:[01]\d|2[0-3]):[0-5]\d", re.ASCII)
_DATETIME: Final = re.compile(
    rf"({_DATE.pattern})T{_TIME.pattern}"
    r"(?::[0-5]\d(?:\.\d{1,9})?)?"
    r"(?:Z|[+-](?:[01]\d|2[0-3]):?[0-5]\d)?",
    re.ASCII,
)
_EMAIL: Final = re.compile(r"[^@\s]+@[^@\s.]+(?:\.[^@\s.]+)+")
_MONTH_DAYS: Final = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_FEBRUARY: Final = 2
_STEP_SLACK: Final = Fraction(1, 10**9)  # a browser's 0.1 * 3 is not quite 0.3


class _WrongError(Exception):
    """A value does not fit its question; the message says what is expected."""


def check_answers(
    form: Json, values: Json, *, max_chars: int = MAX_TEXT_CHARS
) -> tuple[Json, list[Problem]]:
    """Check what was filled in.

    Args:
        form: An `AgentResponseForm` as camelCase JSON.
        values: Answers by question id.
        max_chars: Longest answer to one question, in characters.

    Returns:
        Typed values by question id (blank optional ones are absent) and all problems, one a field.

    Source:
        protocol reference 2.14, fault S48.
    """
    questions: dict[str, Json] = {one["id"]: one for one in form.get("questions", ())}
    problems = _unknown_fields(questions, values)
    typed: Json = {}
    for key, question in questions.items():
        try:
            answer = _answer(question, values.get(key), max_chars)
        except _WrongError as wrong:
            given = values.get(key)
            got = "" if _blank(given) else shorten(given)
            problems.append(Problem(f"values.{key}", str(wrong), got))
        else:
            if answer is not None:
                typed[key] = answer
    return typed, problems


def _unknown_fields(questions: dict[str, Json], values: Json) -> list[Problem]:
    message = f"there is no such question; known: {', '.join(questions)}"
    return [
        Problem(f"values.{key[:SHOWN_ID_CHARS]}", message, shorten(value))
        for key, value in values.items()
        if key not in questions
    ]


def _answer(question: Json, given: Any, max_chars: int) -> Any:
    """The typed answer to one question; None where it may stay open and does."""
    kind = cast("Json", question["type"])
    name = str(kind["type"])
    if not _blank(given, name):
        return _typed(kind, name, given, max_chars)
    default = question.get("defaultValue")
    if not _blank(default, name):
        try:
            return _typed(kind, name, default, max_chars)
        except _WrongError as wrong:
            raise _WrongError(
                f"left blank, and the form's default does not fit: {wrong}"
            ) from wrong
    if question.get("required"):
        raise _WrongError("an answer is required")
    return None


def _typed(kind: Json, name: str, value: Any, max_chars: int) -> Any:
    _check_size(value, max_chars)
    return _KINDS.get(name, _free)(kind, value)


def _blank(value: Any, name: str = "") -> bool:
    if isinstance(value, dict) and name == "daterange":
        fields = cast("Json", value)
        return all(_blank(one) for one in fields.values())
    return value is None or value == [] or (isinstance(value, str) and not value.strip())


def _is_list(value: Any) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def _parts(value: Any) -> Iterator[tuple[int, Any]]:
    """All keys, values and containers inside a value with their depth; no recursion."""
    stack: list[tuple[int, Any]] = [(0, value)]
    while stack:
        depth, one = stack.pop()
        yield depth, one
        if isinstance(one, dict):
            for item in cast("Json", one).items():
                stack.extend((depth + 1, part) for part in item)
        elif _is_list(one):
            stack.extend((depth + 1, part) for part in one)


def _check_size(value: Any, max_chars: int) -> None:
    """Refuse what is too long before anything looks at it closely; stops at the limit."""
    chars = 0
    for _, one in _parts(value):
        chars += len(one) if isinstance(one, str) else 1
        if chars > max_chars:
            raise _WrongError(f"must be at most {max_chars} characters long")


def _free(kind: Json, value: Any) -> Any:
    """Any JSON: the form comes from a newer protocol, so its kind of question is not known."""
    del kind
    for depth, one in _parts(value):
        if depth > MAX_DEPTH:
            raise _WrongError(f"must be nested at most {MAX_DEPTH} levels deep")
        if isinstance(one, int | float) and not _finite(one):
            raise _WrongError("must hold finite numbers only")
        if not (one is None or isinstance(one, str | int | float | list | dict)):
            raise _WrongError("must be a JSON value")
    return value


def _text(kind: Json, value: Any) -> str:
    if not isinstance(value, str):
        raise _WrongError("must be text")
    most = kind.get("maxLength")
    if most is not None and len(value) > most:
        raise _WrongError(f"must be at most {most} characters long, has {len(value)}")
    return value


def _email(kind: Json, value: Any) -> str:
    text = _text(kind, _stripped(value))
    if not _EMAIL.fullmatch(text):
        raise _WrongError("must be an e-mail address, like name@example.org")
    return text


def _number(kind: Json, value: Any) -> int | float:
    number = _parsed(value.strip()) if isinstance(value, str) else value
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise _WrongError("must be a number in digits 0-9, with a point for decimals, like 1.5")
    if not _finite(number):
        raise _WrongError("must be a finite number of a usual size")
    low, high = kind.get("min"), kind.get("max")
    if low is not None and number < low:
        raise _WrongError(f"must be at least {_shown(low)}")
    if high is not None and number > high:
        raise _WrongError(f"must be at most {_shown(high)}")
    return number


def _parsed(text: str) -> int | float | None:
    if _WHOLE.fullmatch(text):
        return int(text)
    return float(text) if _NUMBER.fullmatch(text) else None


def _finite(number: float) -> bool:
    """Whether a float can hold it; unlike `math.isfinite`, not for whole numbers to trip over."""
    return abs(number) <= sys.float_info.max


def _slider(kind: Json, value: Any) -> int | float:
    number = _number(kind, value)
    start, step = kind.get("min", 0), abs(kind.get("step") or 1)
    steps = (_exact(number) - _exact(start)) / _exact(step)
    if abs(steps - round(steps)) > _STEP_SLACK:
        raise _WrongError(f"must be in steps of {_shown(step)} from {_shown(start)}")
    return number


def _exact(number: float) -> Fraction:
    """The number as written: 0.3 is three tenths, not the nearest binary fraction."""
    return Fraction(number) if isinstance(number, int) else Fraction(repr(number))


def _stripped(value: Any) -> Any:
    return value.strip() if isinstance(value, str) else value


def _matched(pattern: re.Pattern[str], value: Any) -> re.Match[str] | None:
    return pattern.fullmatch(value.strip()) if isinstance(value, str) else None


def _date(kind: Json, value: Any) -> str:
    del kind
    found = _matched(_DATE, value)
    if found is None or not _is_day(*(int(one) for one in found.groups())):
        raise _WrongError("must be a day of the calendar, YYYY-MM-DD")
    return found.group()


def _is_day(year: int, month: int, day: int) -> bool:
    if not (year and 1 <= month <= len(_MONTH_DAYS)):
        return False
    leap = month == _FEBRUARY and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return 1 <= day <= _MONTH_DAYS[month - 1] + leap


def _datetime(kind: Json, value: Any) -> str:
    found = _matched(_DATETIME, value)
    if found is None:
        raise _WrongError("must be a day with a time in ISO 8601, like 2026-03-01T14:30")
    _date(kind, found.group(1))
    return found.group()


def _time(kind: Json, value: Any) -> str:
    del kind
    found = _matched(_TIME, value)
    if found is None:
        raise _WrongError("must be a time of day, HH:mm")
    return found.group()


def _date_range(kind: Json, value: Any) -> Json:
    if not isinstance(value, dict):
        raise _WrongError("must be an object with start and end, each YYYY-MM-DD")
    fields = cast("Json", value)
    days: dict[str, str] = {}
    for side in ("start", "end"):
        try:
            days[side] = _date(kind, fields.get(side))
        except _WrongError as wrong:
            raise _WrongError(f"{side} {wrong}") from wrong
    if days["end"] < days["start"]:
        raise _WrongError("must not end before it starts")
    return days


def _choice(kind: Json, value: Any) -> Any:
    return _options(kind)(value)


def _checkbox(kind: Json, value: Any) -> Any:
    option = _options(kind)
    if not kind.get("multiple"):
        return option(value)
    several = value if _is_list(value) else [value]
    # A dict keeps the order and drops what comes twice; True and 1 are two answers.
    chosen = {_identity(one): one for one in map(option, several)}
    return list(chosen.values())


def _options(kind: Json) -> Callable[[Any], Any]:
    """How to find the offered value that was meant: itself, its text, or its label if unique."""
    offered: list[Json] = kind["options"]
    exact = {_identity(one["value"]): one["value"] for one in reversed(offered)}
    named: dict[str, list[Any]] = {}
    for one in offered:
        for text in _names(one):
            named.setdefault(text, []).append(one["value"])

    def find(value: Any) -> Any:
        if isinstance(value, str | int | float) and _identity(value) in exact:
            return exact[_identity(value)]
        meant = named.get(value, []) if isinstance(value, str) else []
        if len(meant) != 1:
            raise _WrongError(_not_offered(offered, several=len(meant) > 1))
        return meant[0]

    return find


def _identity(value: Any) -> tuple[bool, Any]:
    """Python takes True for 1; an answer does not."""
    return isinstance(value, bool), value


def _names(option: Json) -> set[str]:
    """Texts that may stand for an option: its label, and its value as a text field sends it."""
    value = option["value"]
    typed: set[str] = set() if isinstance(value, str) else {str(value), json.dumps(value)}
    return {str(option["label"]), *typed}


def _not_offered(offered: list[Json], *, several: bool) -> str:
    shown = ", ".join(_shown(one["value"]) for one in offered[:SHOWN_OPTIONS])
    more = ", …" if len(offered) > SHOWN_OPTIONS else ""
    why = "that names more than one option; " if several else ""
    return f"{why}must be one of {shown}{more}"


def _shown(value: Any) -> str:
    return shorten(value).removeprefix("number ").removeprefix("text ")


_KINDS: Final[dict[str, Callable[[Json, Any], Any]]] = {
    "text": _text,
    "textarea": _text,
    "email": _email,
    "number": _number,
    "currency": _number,
    "slider": _slider,
    "date": _date,
    "datetime": _datetime,
    "time": _time,
    "daterange": _date_range,
    "buttongroup": _choice,
    "radio": _choice,
    "dropdown": _choice,
    "checkbox": _checkbox,
}
