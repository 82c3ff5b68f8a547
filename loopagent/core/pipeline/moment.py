"""What `today` and `now` are in a condition: fixed for the whole of a pipeline, so that its parts agree."""

from __future__ import annotations

from typing import Final, NamedTuple


_JANUARY: Final = 10
"""Place of January in a year that begins in March, from 0."""


class Moment(NamedTuple):
    """A moment in UTC, as text that sorts by time."""

    today: str
    """`YYYY-MM-DD`."""
    now: str
    """ISO 8601 with `Z`, in whole seconds."""


def moment_at(seconds: float) -> Moment:
    """Turn seconds since the epoch into text.

    Source: the civil calendar computed from a day count with eras of 400 years that begin in March,
    so that the leap day is the last day of its year.
    """
    days, rest = divmod(int(seconds), 86_400)
    era, day = divmod(days + 719_468, 146_097)
    year = (day - day // 1_460 + day // 36_524 - day // 146_096) // 365
    day -= 365 * year + year // 4 - year // 100
    month = (5 * day + 2) // 153
    day -= (153 * month + 2) // 5 - 1
    late = month >= _JANUARY
    month += -9 if late else 3
    year += era * 400 + late
    today = f"{year:04}-{month:02}-{day:02}"
    clock = f"{rest // 3600:02}:{rest % 3600 // 60:02}:{rest % 60:02}"
    return Moment(today, f"{today}T{clock}Z")
