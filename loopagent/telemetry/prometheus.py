"""Numbers of this process in the text format of Prometheus.

Source: Prometheus exposition format 0.0.4. Names follow OpenTelemetry's mapping: dots become underscores, the unit and
`_total` are appended.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from loopagent.telemetry.names import OVERFLOW


MEDIA_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
MAX_SERIES: Final = 500
"""Series of one metric; what would be one more is counted in a series of its own for all of those."""
MAX_VALUE_CHARS: Final = 100
_UNITS: Final = {"s": "_seconds", "{token}": "_tokens"}
_NO_NAME: Final = re.compile(r"[^a-zA-Z0-9_]")
_ESCAPES: Final = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})

Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Instrument:
    """A metric: its name, what it counts, its unit, and for a histogram the upper bounds of its buckets."""

    name: str
    kind: Literal["counter", "histogram", "gauge"]
    help: str
    unit: str = ""
    bounds: tuple[float, ...] = ()

    @property
    def exposed(self) -> str:
        """The name as Prometheus has it."""
        base = _NO_NAME.sub("_", self.name) + _UNITS.get(self.unit, "")
        return f"{base}_total" if self.kind == "counter" else base


@dataclass(slots=True)
class _Series:
    total: float = 0.0
    count: int = 0
    buckets: list[int] = field(default_factory=list[int])


class Registry:
    """Counts, and says what it has counted."""

    def __init__(self) -> None:
        self._found: dict[Instrument, dict[Labels, _Series]] = {}

    def add(self, instrument: Instrument, value: float, attributes: Mapping[str, str]) -> None:
        """Count.

        Args:
            instrument: The metric.
            value: How much is added, or for a histogram what was measured.
            attributes: Values of few kinds; a metric with too many series counts the rest together.
        """
        series = self._series(instrument, tuple(sorted(attributes.items())))
        series.total += value
        series.count += 1
        if instrument.kind == "histogram":
            series.buckets[bisect_left(instrument.bounds, value)] += 1

    def _series(self, instrument: Instrument, labels: Labels) -> _Series:
        known = self._found.setdefault(instrument, {})
        if labels not in known:
            if len(known) >= MAX_SERIES:
                labels = ((OVERFLOW, "true"),)
            known.setdefault(labels, _Series(buckets=[0] * (len(instrument.bounds) + 1)))
        return known[labels]

    def text(self, gauges: Mapping[Instrument, float]) -> str:
        """Everything counted, and gauges as they stand now."""
        lines: list[str] = []
        for instrument, series in self._found.items():
            lines += _head(instrument)
            for labels, one in sorted(series.items(), key=lambda pair: pair[0]):
                lines += _lines(instrument, labels, one)
        for instrument, value in gauges.items():
            lines += [*_head(instrument), f"{instrument.exposed} {_number(value)}"]
        return "\n".join(lines) + "\n"


def _head(instrument: Instrument) -> Iterable[str]:
    yield f"# HELP {instrument.exposed} {instrument.help}"
    yield f"# TYPE {instrument.exposed} {instrument.kind}"


def _lines(instrument: Instrument, labels: Labels, series: _Series) -> Iterator[str]:
    name = instrument.exposed
    if instrument.kind != "histogram":
        yield f"{name}{_braces(labels)} {_number(series.total)}"
        return
    below = 0
    for bound, count in zip((*instrument.bounds, float("inf")), series.buckets, strict=True):
        below += count
        le = "+Inf" if bound == float("inf") else _number(bound)
        yield f"{name}_bucket{_braces((*labels, ('le', le)))} {below}"
    yield f"{name}_sum{_braces(labels)} {_number(series.total)}"
    yield f"{name}_count{_braces(labels)} {series.count}"


def _braces(labels: Labels) -> str:
    if not labels:
        return ""
    shown = (
        f'{_NO_NAME.sub("_", key)}="{value[:MAX_VALUE_CHARS].translate(_ESCAPES)}"'
        for key, value in labels
    )
    return "{" + ",".join(shown) + "}"


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)
