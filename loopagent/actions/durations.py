"""Times and rates as people write them: `10s`, `200ms`, `24h`, `60/m`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, WithJsonSchema


_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)")
_RATE: Final = re.compile(r"(\d+)\s*/\s*(s|m|h|d)")


def seconds(value: Any) -> Any:
    """Seconds of a time like `10s` or `200ms`; a number is seconds already.

    Raises:
        ValueError: It is no time.
    """
    if not isinstance(value, str):
        return value
    found = _DURATION.fullmatch(value.strip())
    if found is None:
        raise ValueError(f"{value[:40]!r} is no time; write it like 10s, 200ms, 5m or 24h")
    return float(found[1]) * _UNITS[found[2]]


@dataclass(frozen=True, slots=True)
class RateLimit:
    """So many calls in a time."""

    calls: int
    seconds: float

    @property
    def per_second(self) -> float:
        """How many a second."""
        return self.calls / self.seconds


def rate(value: Any) -> Any:
    """A rate like `60/m`.

    Raises:
        ValueError: It is none.
    """
    found = _RATE.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None or not int(found[1]):
        raise ValueError(f"{str(value)[:40]!r} is no rate; write it like 60/m or 5/s")
    return RateLimit(int(found[1]), _UNITS[found[2]])


Seconds = Annotated[
    float,
    BeforeValidator(seconds),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "number", "minimum": 0},
                {"type": "string", "pattern": r"^\d+(\.\d+)?\s*(ms|s|m|h|d)$"},
            ],
            "examples": ["10s", "200ms"],
        }
    ),
]
"""A time in seconds, written as a number or like `10s`."""
Rate = Annotated[
    RateLimit,
    BeforeValidator(rate),
    WithJsonSchema({"type": "string", "pattern": r"^\d+\s*/\s*(s|m|h|d)$", "examples": ["60/m"]}),
]
"""A rate, written like `60/m`."""
