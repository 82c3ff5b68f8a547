"""Actions over the shop's orders, a CSV file beside them."""

import csv
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

from loopagent import ActionContext, ActionError, action


DATA = Path(__file__).resolve().parent.parent / "data" / "orders.csv"


@cache
def orders() -> tuple[dict[str, str], ...]:
    """All rows of the file, read once."""
    with DATA.open(encoding="utf-8", newline="") as file:
        return tuple(csv.DictReader(file))


@action(effects="read")
def count_orders(by: str) -> dict[str, int]:
    """Count orders by a column.

    Args:
        by: Column: region, status, carrier or product.
    """
    rows = orders()
    if by not in rows[0]:
        raise ActionError(
            f"there is no column {by!r}; columns: {', '.join(rows[0])}", code="unknown_column"
        )
    return dict(Counter(row[by] for row in rows).most_common())


@action(effects="read")
async def late_orders(
    context: ActionContext, region: str | None = None, days: int = 1
) -> list[dict[str, Any]]:
    """List orders that arrived, or are still on their way, later than promised.

    Args:
        context: Tells whoever watches how far it is.
        region: Only this region; left out means all.
        days: At least this many days late.
    """
    context.progress(f"looking through {len(orders())} orders")
    late = [
        row for row in orders() if int(row["days_late"]) >= days and region in (None, row["region"])
    ]
    return [
        {"order": row["order"], "region": row["region"], "daysLate": int(row["days_late"])}
        for row in late
    ]


@action(effects="write", idempotent=True)
def draft_notice(region: str, late: int) -> str:
    """Draft the notice to the customers of a region.

    Args:
        region: Whom it is for.
        late: How many orders are late there.
    """
    return f"To our customers in {region}: {late} orders are on their way later than promised. We are sorry."
