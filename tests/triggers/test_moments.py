"""When schedules are due, also while clocks are set forward and back."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopagent.triggers.moments import MAX_COUNTED, following, iso, passed, problem_of
from loopagent.triggers.spec import Schedule


VIENNA = ZoneInfo("Europe/Vienna")


def _moments(schedule: Schedule, after: str, count: int) -> list[str]:
    at: float | None = datetime.fromisoformat(after).timestamp()
    found: list[str] = []
    while len(found) < count and at is not None:
        at = following(schedule, at)
        if at is not None:
            found.append(datetime.fromtimestamp(at, VIENNA).isoformat(timespec="minutes"))
    return found


@pytest.mark.parametrize(
    ("cron", "after", "wanted"),
    [
        # a working day's morning, by the clock on the wall
        ("0 7 * * MON-FRI", "2027-03-26T12:00+01:00", ["2027-03-29T07:00+02:00", "2027-03-30T07:00+02:00"]),
        # 02:30 does not come on 28 March: it fires when the clock has been set forward
        ("30 2 * * *", "2027-03-27T12:00+01:00", ["2027-03-28T03:00+02:00", "2027-03-29T02:30+02:00"]),
        # 02:30 comes twice on 31 October: it fires the first time
        ("30 2 * * *", "2027-10-30T12:00+02:00", ["2027-10-31T02:30+02:00", "2027-11-01T02:30+01:00"]),
        # what repeats within the day goes by the time that passes
        ("*/30 * * * *", "2027-03-28T01:10+01:00", ["2027-03-28T01:30+01:00", "2027-03-28T03:00+02:00"]),
        (
            "*/30 * * * *",
            "2027-10-31T02:10+02:00",
            ["2027-10-31T02:30+02:00", "2027-10-31T02:00+01:00", "2027-10-31T02:30+01:00", "2027-10-31T03:00+01:00"],
        ),
        ("0 0 29 2 *", "2027-01-01T00:00+01:00", ["2028-02-29T00:00+01:00"]),
    ],
)  # fmt: skip
def test_cron(cron: str, after: str, wanted: list[str]) -> None:
    schedule = Schedule(cron=cron, time_zone="Europe/Vienna")
    assert _moments(schedule, after, len(wanted)) == wanted


def test_dates() -> None:
    at = ("2027-10-31T02:30", "2027-03-28T02:30", "2027-06-01T12:00Z")
    schedule = Schedule(at=at, time_zone="Europe/Vienna")
    assert _moments(schedule, "2027-01-01T00:00Z", 9) == [
        "2027-03-28T03:30+02:00",  # as much later as the clock was set forward
        "2027-06-01T14:00+02:00",
        "2027-10-31T02:30+02:00",  # the first time
    ]


@given(st.integers(1, 10_000_000), st.floats(0, 4e9))
def test_intervals_do_not_drift(step: int, after: float) -> None:
    moment = following(Schedule(every_seconds=step), after)
    assert moment is not None
    assert after < moment <= after + step
    assert moment % step == 0


@given(st.sampled_from(["*/7 * * * *", "30 2 * * *", "0 9 1 * MON"]), st.floats(1.7e9, 2e9))
def test_the_moment_after_one_is_later(cron: str, after: float) -> None:
    schedule = Schedule(cron=cron, time_zone="Europe/Vienna")
    first = following(schedule, after)
    assert first is not None
    assert first > after
    again = following(schedule, (after + first) / 2)
    assert again == first  # wherever it is looked from
    second = following(schedule, first)
    assert second is not None
    assert second > first


def test_how_many_have_passed() -> None:
    hourly = Schedule(cron="0 * * * *")
    assert passed(hourly, 3_600.0, 3_600.0) == (3_600.0, 0)
    assert passed(hourly, 3_600.0, 3_600.0 * 5 + 1) == (18_000.0, 4)
    every = Schedule(every_seconds=10)
    assert passed(every, 10.0, 99.0) == (90.0, 8)
    assert passed(every, 10.0, 1e9)[1] == MAX_COUNTED
    assert passed(Schedule(cron="* * * * *"), 60.0, 1e9) == (1e9, MAX_COUNTED)


@pytest.mark.parametrize(
    ("schedule", "place", "said"),
    [
        ({"cron": "0 7 * *"}, ("cron",), "five fields"),
        ({"cron": "0 7 * * * *"}, ("cron",), "five fields"),
        ({"cron": "61 * * * *"}, ("cron",), "minute"),
        ({"cron": "0 0 30 2 *"}, ("cron",), "day-of-month"),
        ({"at": ["2027-01-01", "soon"]}, ("at", 1), "2027-03-01T09:00"),
        ({"everySeconds": 5, "timeZone": "Mars/Base"}, ("timeZone",), "no such time zone"),
        ({"everySeconds": 5, "timeZone": "../../etc/passwd"}, ("timeZone",), "no such time zone"),
    ],
)
def test_what_cannot_work(
    schedule: dict[str, object], place: tuple[object, ...], said: str
) -> None:
    found = problem_of(Schedule.model_validate(schedule))
    assert found is not None
    assert found[0] == place
    assert said in found[1]


def test_times_as_text() -> None:
    assert iso(1_800_000_000.0) == "2027-01-15T08:00:00Z"
    assert iso(1_800_000_000.5) == "2027-01-15T08:00:00.500Z"
