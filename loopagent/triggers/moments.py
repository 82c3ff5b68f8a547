"""When a schedule is due.

A clock that is set forward or back makes a local time that does not come, or comes twice. What `cron` and `at` do
then is what cron of Debian does:

| at | with a moment that does not come | with a moment that comes twice |
| --- | --- | --- |
| `30 2 * * *` | fires once, when the clock has been set forward | fires once, the first time |
| `*/30 * * * *` | goes on by the time that really passes | goes on by the time that really passes |
| `at: [...T02:30]` | fires as much later as the clock was set forward | fires once, the first time |

`everySeconds` knows no clocks at all.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from loopagent.core.hashing import json_hash


if TYPE_CHECKING:
    from loopagent.triggers.spec import Schedule

MAX_COUNTED: Final = 1_000
"""Missed moments that are counted one by one; of more it is only known that there are many."""
_LOOK_BACK: Final = timedelta(hours=3)
"""Further than any clock is set back."""


def problem_of(schedule: Schedule) -> tuple[tuple[int | str, ...], str] | None:
    """The place of what cannot work in a schedule, and why; None when all of it can."""
    try:
        zone = _zone(schedule.time_zone)
    except (OSError, ValueError, LookupError):
        what = "there is no such time zone; take a name like Europe/Vienna (on Windows, install tzdata)"
        return ("timeZone",), what
    if schedule.cron is not None and (wrong := _cron_problem(schedule.cron, zone)):
        return ("cron",), wrong
    for index, text in enumerate(schedule.at):
        try:
            _moment(text, zone)
        except (ValueError, OverflowError):
            return ("at", index), "must be a date and time like 2027-03-01T09:00"
    return None


def _cron_problem(text: str, zone: ZoneInfo) -> str:
    example = "; write five fields like 30 7 * * MON-FRI"
    if len(text.split()) != 5:  # noqa: PLR2004 - as cron has
        return f"must have five fields{example}"
    try:
        next(CronSim(text, datetime(2000, 1, 1, tzinfo=zone)))
    except CronSimError as error:
        return f"{error}{example}"
    except StopIteration:
        return "never comes"
    return ""


def plan_of(schedule: Schedule) -> str:
    """What tells one plan of moments from another; how missed ones are treated is no part of it."""
    said = schedule.model_dump(mode="json", exclude={"missed", "grace_seconds"})
    return json_hash(said)


def following(schedule: Schedule, after: float) -> float | None:
    """The first moment after a time, both in seconds since the epoch; None when there is no more."""
    if schedule.every_seconds is not None:
        step = schedule.every_seconds
        return (math.floor(after / step) + 1) * step
    zone = _zone(schedule.time_zone)
    if schedule.cron is not None:
        return _next_cron(schedule.cron, zone, after)
    later = [moment for text in schedule.at if (moment := _moment(text, zone)) > after]
    return min(later, default=None)


def passed(schedule: Schedule, first: float, now: float) -> tuple[float, int]:
    """The moments from a known one to now.

    Args:
        schedule: The schedule.
        first: A moment of it that is not later than now.
        now: The time.

    Returns:
        The latest, and how many came before it, `MAX_COUNTED` for more.
    """
    if schedule.every_seconds is not None:
        step = schedule.every_seconds
        last = float(math.floor(now / step) * step)
        return last, min(MAX_COUNTED, round((last - first) / step))
    latest = first
    for count in range(MAX_COUNTED):
        later = following(schedule, latest)
        if later is None or later > now:
            return latest, count
        latest = later
    return now, MAX_COUNTED


def _next_cron(text: str, zone: ZoneInfo, after: float) -> float | None:
    """The next moment, also while the clock shows an hour for the second time.

    A job at a fixed time goes by what the clock shows, so the search begins before any change of the clock.
    """
    begin = datetime.fromtimestamp(after, UTC) - _LOOK_BACK
    search = CronSim(text, begin.astimezone(zone))
    for moment in search:
        at = moment.timestamp()
        if at > after:
            return at
    return None


def _moment(text: str, zone: ZoneInfo) -> float:
    read = datetime.fromisoformat(text)
    return (read if read.tzinfo is not None else read.replace(tzinfo=zone)).timestamp()


@lru_cache(maxsize=100)
def _zone(name: str) -> ZoneInfo:
    return ZoneInfo(name)


def iso(at: float) -> str:
    """A time as text, in UTC, to the second or as exactly as it is given."""
    moment = datetime.fromtimestamp(at, UTC)
    exact = "seconds" if moment.microsecond == 0 else "milliseconds"
    return moment.isoformat(timespec=exact).replace("+00:00", "Z")
