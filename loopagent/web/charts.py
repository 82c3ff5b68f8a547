"""Pictures of a run as plain numbers for inline SVG: bars of turns and work, columns of tokens and costs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING


if TYPE_CHECKING:
    from collections.abc import Sequence

    from loopagent.runtime.course import Course, Turn

WIDTH = 960.0
LABEL_WIDTH = 200.0
ROW_HEIGHT = 22.0
LEAST_BAR = 2.0
MAX_ROWS = 200
COLUMN_HEIGHT = 120.0
TICKS = 5


@dataclass(frozen=True, slots=True)
class Bar:
    """One row: where its bar begins and how long it is, in units of the picture."""

    label: str
    kind: str
    x: float
    y: float
    width: float
    title: str


@dataclass(frozen=True, slots=True)
class Gantt:
    """When each turn and each piece of work ran."""

    width: float
    height: float
    bars: list[Bar] = field(default_factory=list[Bar])
    ticks: list[tuple[float, str]] = field(default_factory=list[tuple[float, str]])
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class Column:
    """The amounts of one turn, stacked: tokens of input below and of output above, or what it cost."""

    x: float
    width: float
    input_y: float
    input_height: float
    output_y: float
    output_height: float
    title: str


@dataclass(frozen=True, slots=True)
class Columns:
    """Tokens or costs turn by turn."""

    width: float
    height: float
    most: float
    """The highest column, in tokens or USD."""
    columns: list[Column] = field(default_factory=list[Column])


def gantt(course: Course, now: float) -> Gantt:
    """The turns and their work over time; what still runs reaches to `now` (seconds since the epoch)."""
    spans = [span for turn in course.turns for span in _spans(turn, now)]
    shown = spans[-MAX_ROWS:]
    if not shown:
        return Gantt(WIDTH, ROW_HEIGHT)
    first = min(begin for _, _, begin, _ in shown)
    length = max(max(end for *_, end in shown) - first, 0.001)
    scale = (WIDTH - LABEL_WIDTH) / length
    bars = [
        Bar(
            label,
            kind,
            LABEL_WIDTH + (begin - first) * scale,
            row * ROW_HEIGHT,
            max((end - begin) * scale, LEAST_BAR),
            f"{label}: {end - begin:.2f} s",
        )
        for row, (label, kind, begin, end) in enumerate(shown)
    ]
    ticks = [
        (
            LABEL_WIDTH + (WIDTH - LABEL_WIDTH) * one / TICKS,
            f"{length * one / TICKS:.{2 if length < TICKS else 1}f} s",
        )
        for one in range(TICKS)
    ]
    height = (len(bars) + 1) * ROW_HEIGHT
    return Gantt(WIDTH, height, bars, ticks, len(spans) - len(shown))


def _spans(turn: Turn, now: float) -> list[tuple[str, str, float, float]]:
    """Label, kind, begin and end of a turn's model call and of each piece of its work."""
    replied = turn.replied_at or turn.ended_at or now
    model = (f"turn {turn.number}: model", "model", turn.started_at, replied)
    rest = [
        (
            f"{one.kind} {one.name}",
            "failed" if one.ok is False else one.kind,
            one.started_at,
            one.ended_at or now,
        )
        for one in turn.work
    ]
    return [model, *rest]


def columns(course: Course) -> Columns:
    """Tokens of each turn."""
    return _columns(
        [
            (
                one.input_tokens,
                one.output_tokens,
                f"turn {one.number}: {one.input_tokens} in, {one.output_tokens} out",
            )
            for one in course.turns[-MAX_ROWS:]
        ]
    )


def costs(course: Course) -> Columns:
    """What each turn's model calls cost, in USD; nothing is drawn where no price is known."""
    return _columns(
        [
            (one.cost_usd, 0.0, f"turn {one.number}: ${one.cost_usd:.4f}")
            for one in course.turns[-MAX_ROWS:]
        ]
    )


def _columns(amounts: Sequence[tuple[float, float, str]]) -> Columns:
    """Columns of what stands below, what stands above, and the title of each."""
    most = max((below + above for below, above, _ in amounts), default=0)
    if not most:
        return Columns(WIDTH, COLUMN_HEIGHT, 0)
    step = min(WIDTH / len(amounts), 48.0)
    scale = COLUMN_HEIGHT / most
    made = [
        Column(
            place * step,
            max(step - 2, 1),
            COLUMN_HEIGHT - below * scale,
            below * scale,
            COLUMN_HEIGHT - (below + above) * scale,
            above * scale,
            title,
        )
        for place, (below, above, title) in enumerate(amounts)
    ]
    return Columns(WIDTH, COLUMN_HEIGHT, most, made)
