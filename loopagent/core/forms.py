"""A person's answers against the form they were asked with: typed values, or one complaint a field."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, cast

from loopagent.core.problems import Problem


Json = dict[str, Any]
MAX_TEXT_CHARS = 100_000
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_DATE = re.compile(r"(\d{4})-(\d{2})-(\d{2})", re.ASCII)
_TIME = re.compile(r"([01]\d|2[0-3]):[0-5]\d", re.ASCII)
_DATETIME = re.compile(
    r"(\d{4}-\d{2}-\d{2})[T ]([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d{1,9})?)?(Z|[+-]([01]\d|2[0-3]):?[0-5]\d)?", re.ASCII
)
_EMAIL = re.compile(r"[^@\s]+@[^@\s.]+(\.[^@\s.]+)+")
_MONTH_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_STEP_SLACK = 1e-9


class _WrongError(Exception):
    """A value does not fit its question; the message says what is expected."""


def check_answers(form: Json, values: Json) -> tuple[Json, list[Problem]]:
    """Check what was filled in.

    Args:
        form: An `AgentResponseForm` as camelCase JSON.
        values: Answers by question id.

    Returns:
        Typed values by question id (blank optional ones are absent) and all problems, one a field.
    """
    typed: Json = {}
    problems: list[Problem] = []
    questions: dict[str, Json] = {one["id"]: one for one in form.get("questions", ())}
    for key in values:
        if key not in questions:
            problems.append(Problem(f"values.{key}", f"there is no such question; known: {', '.join(questions)}"))
    for key, question in questions.items():
        value = values.get(key)
        value = question.get("defaultValue") if _blank(value) else value
        if _blank(value):
            if question.get("required"):
                problems.append(Problem(f"values.{key}", "an answer is required", "nothing"))
            continue
        kind = cast("Json", question["type"])
        try:
            typed[key] = _KINDS.get(kind["type"], _free)(kind, value)
        except _WrongError as wrong:
            problems.append(Problem(f"values.{key}", str(wrong), str(value)[:80]))
    return typed, problems


def _blank(value: Any) -> bool:
    return value is None or value == [] or (isinstance(value, str) and not value.strip())


def _free(kind: Json, value: Any) -> Any:
    del kind
    if len(str(value)) > MAX_TEXT_CHARS:
        message = f"at most {MAX_TEXT_CHARS} characters"
        raise _WrongError(message)
    return value


def _text(kind: Json, value: Any) -> str:
    most = min(int(kind.get("maxLength") or MAX_TEXT_CHARS), MAX_TEXT_CHARS)
    if not isinstance(value, str):
        message = "must be text"
        raise _WrongError(message)
    if len(value) > most:
        message = f"at most {most} characters"
        raise _WrongError(message)
    return value


def _email(kind: Json, value: Any) -> str:
    text = _text(kind, value).strip()
    if not _EMAIL.fullmatch(text):
        message = "must be an e-mail address"
        raise _WrongError(message)
    return text


def _number(kind: Json, value: Any) -> int | float:
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        text = value.strip()
        value = int(text) if re.fullmatch(r"[+-]?\d{1,300}", text) else float(text)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        message = "must be a number, with a point for decimals"
        raise _WrongError(message)
    low, high = kind.get("min"), kind.get("max")
    if (low is not None and value < low) or (high is not None and value > high):
        message = f"must be from {low if low is not None else 'any'} to {high if high is not None else 'any'}"
        raise _WrongError(message)
    return value


def _slider(kind: Json, value: Any) -> int | float:
    number = _number(kind, value)
    step = kind.get("step") or 1
    steps = (number - kind["min"]) / step
    if abs(steps - round(steps)) > _STEP_SLACK * max(1.0, abs(steps)):
        message = f"must be in steps of {step} from {kind['min']}"
        raise _WrongError(message)
    return number


def _date(kind: Json, value: Any) -> str:
    del kind
    found = _DATE.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None or not _is_day(*(int(one) for one in found.groups())):
        message = "must be a day, YYYY-MM-DD"
        raise _WrongError(message)
    return found.group()


def _is_day(year: int, month: int, day: int) -> bool:
    if not (1 <= month <= len(_MONTH_DAYS) and year):
        return False
    leap = month == 2 and (year % 4 == 0 and (year % 100 != 0 or year % 400 == 0))  # noqa: PLR2004
    return 1 <= day <= _MONTH_DAYS[month - 1] + leap


def _datetime(kind: Json, value: Any) -> str:
    text = value.strip() if isinstance(value, str) else ""
    found = _DATETIME.fullmatch(text)
    if found is None:
        message = "must be a day with a time, like 2026-03-01T14:30"
        raise _WrongError(message)
    _date(kind, found.group(1))
    return text


def _time(kind: Json, value: Any) -> str:
    del kind
    text = value.strip() if isinstance(value, str) else ""
    if not _TIME.fullmatch(text):
        message = "must be a time, HH:mm"
        raise _WrongError(message)
    return text


def _date_range(kind: Json, value: Any) -> Json:
    fields = cast("Json", value) if isinstance(value, dict) else {}
    start, end = _date(kind, fields.get("start")), _date(kind, fields.get("end"))
    if end < start:
        message = "must not end before it starts"
        raise _WrongError(message)
    return {"start": start, "end": end}


def _choice(kind: Json, value: Any) -> Any:
    if not kind.get("multiple"):
        return _option(kind, value)
    several = cast("list[Any]", value) if isinstance(value, list) else [value]
    chosen: list[Any] = []
    for one in several:
        option = _option(kind, one)
        if option not in chosen:
            chosen.append(option)
    return chosen


def _option(kind: Json, value: Any) -> Any:
    """The offered value that was meant: itself, its text, or its label where that is unique."""
    options = cast("list[Json]", kind["options"])
    for one in options:
        if one["value"] == value and isinstance(one["value"], bool) == isinstance(value, bool):
            return one["value"]
    same = [one["value"] for one in options if value in (str(one["value"]), one["label"])]
    if len(same) != 1:
        offered = ", ".join(str(one["value"]) for one in options)
        message = f"must be one of {offered}"
        raise _WrongError(message)
    return same[0]


_KINDS: dict[str, Callable[[Json, Any], Any]] = {
    "text": _text,
    "textarea": _text,
    "email": _email,
    "number": _number,
    "currency": _number,
    "date": _date,
    "datetime": _datetime,
    "time": _time,
    "daterange": _date_range,
    "slider": _slider,
    "buttongroup": _choice,
    "radio": _choice,
    "dropdown": _choice,
    "checkbox": _choice,
}
