"""Figures of a column."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Callable
from typing import Any, Literal

from loopagent.core.json_values import compact_json


Op = Literal[
    "sum",
    "avg",
    "mean",
    "count",
    "min",
    "max",
    "distinct_count",
    "median",
    "mode",
    "stdev",
    "variance",
]
EXACT = 1e15
"""Up to here every whole number is exact."""
Number = Callable[[Any], float | None]
Figure = Callable[[list[Any], Number], dict[str, Any]]


def _numeric(compute: Callable[[list[float]], float | None], least: int = 1) -> Figure:
    def figure(values: list[Any], number: Number) -> dict[str, Any]:
        numbers = [one for one in map(number, values) if one is not None]
        found = compute(numbers) if len(numbers) >= least else None
        body: dict[str, Any] = {"value": _plain(found), "of": len(numbers)}
        left_out = sum(one not in (None, "") for one in values) - len(numbers)
        return {**body, "notNumbers": left_out} if left_out else body

    return figure


def _plain(value: float | None) -> float | int | None:
    """A whole number without its point; what is no finite number is nothing."""
    if value is None or not math.isfinite(value):
        return None
    rounded = round(value, 10)
    return int(rounded) if rounded.is_integer() and abs(rounded) <= EXACT else rounded


def _count(values: list[Any], number: Number) -> dict[str, Any]:
    del number
    return {"value": sum(one not in (None, "") for one in values), "of": len(values)}


def _distinct(values: list[Any], number: Number) -> dict[str, Any]:
    del number
    filled = [compact_json(one) for one in values if one not in (None, "")]
    return {"value": len(set(filled)), "of": len(filled)}


def _mode(values: list[Any], number: Number) -> dict[str, Any]:
    del number
    filled = [one if isinstance(one, str) else compact_json(one) for one in values]
    counted = Counter(one for one in filled if one not in {"", "null"}).most_common(1)
    value, times = counted[0] if counted else (None, 0)
    return {"value": value, "times": times, "of": len(values)}


def _extreme(choose: Callable[..., Any]) -> Figure:
    """The least or greatest number; of a column without numbers, the first or last text."""

    def figure(values: list[Any], number: Number) -> dict[str, Any]:
        numbers = [one for one in map(number, values) if one is not None]
        if numbers:
            return {"value": _plain(choose(numbers)), "of": len(numbers)}
        texts = [one for one in values if isinstance(one, str) and one]
        return {"value": choose(texts) if texts else None, "of": len(texts)}

    return figure


OPERATIONS: dict[str, Figure] = {
    "sum": _numeric(math.fsum),
    "avg": _numeric(statistics.fmean),
    "mean": _numeric(statistics.fmean),
    "count": _count,
    "min": _extreme(min),
    "max": _extreme(max),
    "distinct_count": _distinct,
    "median": _numeric(statistics.median),
    "mode": _mode,
    "stdev": _numeric(statistics.stdev, least=2),
    "variance": _numeric(statistics.variance, least=2),
}
"""Operation → its figure; `stdev` and `variance` are of a sample."""
