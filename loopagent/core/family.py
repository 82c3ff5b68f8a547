"""What a run hears from the runs around it, and what it owes them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from loopagent.core.events import Reported
from loopagent.core.spending import Spent


if TYPE_CHECKING:
    from loopagent.core.events import Event
    from loopagent.core.tx import Tx


def counts_after_end(event: Event) -> bool:
    """Whether an event means something to a run that has ended."""
    return isinstance(event, Reported) and event.what == "told"


def note_question(tx: Tx) -> None:
    """Owe the parent a question, where questions go to it and nothing but a question is open."""
    state = tx.state
    if not (state.asks_parent and state.parent_id and state.waiting):
        return
    asks = state.asks
    if len(asks) != 1:
        return
    if asks[0].ask == "question" and asks[0].id != state.told_ask:
        state.told_ask = asks[0].id
        state.unheard = tuple(dict.fromkeys((*state.unheard, state.parent_id)))


def _spent(tx: Tx, event: Reported) -> None:
    """The budgets of the runs above, as they stand now."""
    rows = cast("list[list[Any]]", event.data["spent"])
    pairs = zip(tx.state.ancestors, rows, strict=False)
    changed = tuple(replace(one, spent=Spent(*row)) for one, row in pairs)
    if changed != tx.state.ancestors:
        tx.state.ancestors = changed
        tx.touched = True


def _serves(tx: Tx, event: Reported) -> None:
    tx.state.serves = str(event.data["effect"])
    if event.data.get("untold"):
        tx.state.told_ask = ""
    tx.touched = True


def _told(tx: Tx, event: Reported) -> None:
    heard = set(cast("list[str]", event.data["runs"]))
    left = tuple(one for one in tx.state.unheard if one not in heard)
    if left != tx.state.unheard:
        tx.state.unheard = left
        tx.touched = True


HEARD: dict[str, Callable[[Tx, Reported], None]] = {
    "spent": _spent,
    "serves": _serves,
    "told": _told,
}
"""What to do about each kind of report from around the run."""
