"""Tickets and orders in two JSON files; what is sent or paid back is written to `out/log.txt`."""

import json
from pathlib import Path
from typing import Any

from loopagent import ActionError, action


HERE = Path(__file__).resolve().parent.parent


def stored(name: str) -> list[dict[str, Any]]:
    """The entries of a data file."""
    return json.loads((HERE / "data" / name).read_text(encoding="utf-8"))


def log(line: str) -> None:
    """Note what a real shop would have sent or paid."""
    path = HERE / "out" / "log.txt"
    path.parent.mkdir(exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")


@action(effects="read")
def open_tickets() -> list[dict[str, Any]]:
    """All open tickets, the oldest first."""
    return stored("tickets.json")


@action(effects="read")
def find_order(order: str) -> dict[str, Any]:
    """An order, with what was paid for it and where it is.

    Args:
        order: Its number, such as O-17.
    """
    for one in stored("orders.json"):
        if one["order"] == order:
            return one
    raise ActionError(f"there is no order {order}", code="unknown_order")


@action(effects="external")
def refund(order: str, amount: float) -> str:
    """Pay money back to a customer.

    Args:
        order: Which order it is for.
        amount: How much, in euros.
    """
    log(f"refund {order} {amount:.2f}")
    return f"{amount:.2f} euros are on their way back for {order}"


@action(effects="external")
def reply_to_ticket(ticket: str, text: str) -> str:
    """Answer a ticket by mail.

    Args:
        ticket: Its number, such as T-1.
        text: The mail.
    """
    log(f"mail {ticket} {text}")
    return f"{ticket} is answered"
