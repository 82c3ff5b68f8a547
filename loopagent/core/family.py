"""What a run hears from the runs around it, and what it owes them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from loopagent.core import control
from loopagent.core.call_questions import is_foreign
from loopagent.core.control_state import Paused
from loopagent.core.events import ApprovalRevoked, LimitsRaised, Reported, ResumeRequested
from loopagent.core.loop_view import GOES_ON
from loopagent.core.spending import Spent


if TYPE_CHECKING:
    from collections.abc import Sequence

    from loopagent.core.events import Event
    from loopagent.core.spending import Ancestor
    from loopagent.core.tx import Tx


def counts_after_end(event: Event) -> bool:
    """Whether an event means something to a run that has ended."""
    if isinstance(event, Reported):
        return event.what in {"told", "again"}
    return isinstance(event, ResumeRequested | LimitsRaised | ApprovalRevoked)


def note_question(tx: Tx) -> None:
    """Owe the parent, where questions go to it, a question if nothing else is open."""
    state = tx.state
    if not (state.parent_id and state.waiting):
        return
    asks = [one for one in state.asks if not is_foreign(one)]
    if len(asks) != len(state.asks):
        return  # a server's question is a person's to answer
    if len(asks) != 1:
        return
    if asks[0].ask == "question" and asks[0].id != state.told_ask:
        state.told_ask = asks[0].id
        state.unheard = tuple(dict.fromkeys((*state.unheard, state.parent_id)))


def budgets(ancestors: Sequence[Ancestor]) -> tuple[tuple[int, int, float], ...]:
    """What each run above has spent, as events have it."""
    spent = (one.spent for one in ancestors)
    return tuple((one.turns, one.tokens, one.cost_usd) for one in spent)


def _spent(tx: Tx, event: Reported) -> None:
    learn_budgets(tx, cast("list[list[Any]]", event.data["spent"]))


def learn_budgets(tx: Tx, rows: Sequence[Sequence[Any]]) -> None:
    """The budgets of the runs above, as they stand now."""
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


def _again(tx: Tx, event: Reported) -> None:
    """The parent goes on with this run, which failed; how the runs above stand is news to it."""
    state = tx.state
    reason = state.result.reason if state.result is not None else ""
    if state.status == "failed" and reason in GOES_ON:
        state.serves = str(event.data["effect"])
        _allowed(tx, event.data["limits"])
        control.reopen(tx, event.at, reason, "model")


def _allowed(tx: Tx, limits: Sequence[Sequence[Any]]) -> bool:
    """What the runs above may spend, as it stands now; whether that is news."""
    pairs = zip(tx.state.ancestors, limits, strict=False)
    frames = tuple(one.allowed(bounds) for one, bounds in pairs)
    if frames == tx.state.ancestors:
        return False
    tx.state.ancestors_before = tx.state.ancestors_before or tx.state.ancestors
    tx.state.ancestors = frames
    return True


def _above(tx: Tx, event: Reported) -> None:
    """The runs above are paused or go on, or may spend more."""
    state = tx.state
    if _allowed(tx, event.data["limits"]):
        tx.clock(event.at)
        control.tell_below(tx)
    reason = event.data["paused"]
    if reason is not None and state.paused is None:
        tx.clock(event.at)
        control.hold(tx, Paused("engine", str(reason), event.at, above=True), "engine")
    elif reason is None and state.paused is not None and state.paused.above:
        tx.clock(event.at)
        control.let_go(tx, "engine")


HEARD: dict[str, Callable[[Tx, Reported], None]] = {
    "spent": _spent,
    "serves": _serves,
    "again": _again,
    "told": _told,
    "above": _above,
}
"""What to do about each kind of report from around the run."""
