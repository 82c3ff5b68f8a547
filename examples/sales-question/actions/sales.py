"""The shop's sales, two CSV files beside the actions."""

import csv
from functools import cache
from pathlib import Path
from typing import Any

from loopagent import action


DATA = Path(__file__).resolve().parent.parent / "data"


@cache
def table(name: str) -> tuple[dict[str, str], ...]:
    """The rows of a file, read once."""
    with (DATA / name).open(encoding="utf-8", newline="") as rows:
        return tuple(csv.DictReader(rows))


@action(effects="read")
def read_sales(quarter: str | None = None) -> list[dict[str, Any]]:
    """All sales, one row each: order, quarter, region, product, units, revenue.

    Args:
        quarter: Only this quarter: Q1, Q2, Q3 or Q4; left out means the whole year.
    """
    return [
        {**row, "units": int(row["units"]), "revenue": float(row["revenue"])}
        for row in table("sales.csv")
        if quarter in (None, row["quarter"])
    ]


@action(effects="read")
def read_products() -> list[dict[str, str]]:
    """The products the shop sells, with their line."""
    return list(table("products.csv"))
