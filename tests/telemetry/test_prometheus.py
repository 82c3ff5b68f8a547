"""The text format of Prometheus: names, labels, buckets, and a bound on how many series there are."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from loopagent.telemetry.prometheus import MAX_SERIES, Instrument, Registry


SECONDS = Instrument("x.y.duration", "histogram", "Time.", "s", (0.1, 1.0))
COUNT = Instrument("x.things", "counter", "Things.")
GAUGE = Instrument("x.now", "gauge", "Now.")


def test_the_text() -> None:
    registry = Registry()
    for value in (0.05, 0.1, 0.5, 7.0):
        registry.add(SECONDS, value, {"a.b": "c"})
    registry.add(COUNT, 1, {})
    registry.add(COUNT, 2, {})
    assert registry.text({GAUGE: 3}).splitlines() == [
        "# HELP x_y_duration_seconds Time.",
        "# TYPE x_y_duration_seconds histogram",
        'x_y_duration_seconds_bucket{a_b="c",le="0.1"} 2',
        'x_y_duration_seconds_bucket{a_b="c",le="1"} 3',
        'x_y_duration_seconds_bucket{a_b="c",le="+Inf"} 4',
        'x_y_duration_seconds_sum{a_b="c"} 7.65',
        'x_y_duration_seconds_count{a_b="c"} 4',
        "# HELP x_things_total Things.",
        "# TYPE x_things_total counter",
        "x_things_total 3",
        "# HELP x_now Now.",
        "# TYPE x_now gauge",
        "x_now 3",
    ]


@given(st.text())
def test_no_value_breaks_a_line(value: str) -> None:
    registry = Registry()
    registry.add(COUNT, 1, {"a": value})
    lines = registry.text({}).split("\n")
    assert len(lines) == 4
    assert re.fullmatch(r'x_things_total\{a="(?:[^"\\\n]|\\["\\n])*"\} 1', lines[2], re.DOTALL)


def test_values_without_end_are_counted_together() -> None:
    registry = Registry()
    for number in range(MAX_SERIES + 50):
        registry.add(COUNT, 1, {"a": str(number)})
    lines = [one for one in registry.text({}).splitlines() if not one.startswith("#")]
    assert len(lines) == MAX_SERIES + 1
    assert 'x_things_total{otel_metric_overflow="true"} 50' in lines
