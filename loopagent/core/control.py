"""What people do to a run as a whole: it is paused, goes on, may spend more, or tries again after it failed.

While a run is paused, everything that happens to it is taken in: what was under way ends and is kept, and so are
answers and messages. Only nothing follows from it before the run is resumed. The runs below are told; what they
still have to be told is part of the state, so no crash loses it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from loopagent.core import limits
from loopagent.core.control_state import RAISABLE, Paused, with_raised
from loopagent.core.effects import CancelEffect, SetTimer
from loopagent.core.facts import RequestCancelled, RunStateChanged
from loopagent.core.facts_control import RunLimitsRaised, RunPaused, RunResumed
from loopagent.core.lineage import children_of
from loopagent.core.loop_state import may_go_on
from loopagent.core.people import request_id


if TYPE_CHECKING:
    from loopagent.core.effects import AskHuman
    from loopagent.core.events import LimitsRaised, PauseRequested, ResumeRequested
    from loopagent.core.facts import DecidedBy
    from loopagent.core.state import RunState
    from loopagent.core.tx import Tx


WIRE: Final = {field: name for name, field in RAISABLE.items()}


def pause(tx: Tx, event: PauseRequested, by: DecidedBy) -> None:
    """Let nothing new begin; one that stood still because of a run above stands still by itself from now on."""
    paused = tx.state.paused
    if paused is None or paused.above:
        tx.clock(event.at)
        hold(tx, Paused(event.by, event.reason, event.at), by)


def hold(tx: Tx, paused: Paused, by: DecidedBy) -> None:
    """Make the run stand still, with those below it. No clock runs meanwhile: what is due is looked at afterwards."""
    state = tx.state
    state.paused = paused
    timers = [one.id for one in state.pending.values() if isinstance(one, SetTimer)]
    tx.effects += [CancelEffect(f"{one}.cancel", one) for one in timers]
    tell_below(tx)
    tx.fact(RunPaused(by=paused.by, reason=paused.reason, above=paused.above), by)


def resume(tx: Tx, event: ResumeRequested, by: DecidedBy) -> None:
    """Let a paused run go on, or one that failed try again."""
    state = tx.state
    if state.ended:
        if may_try_again(state):
            reopen(tx, event.at, may_go_on(state), by)
    elif state.paused is not None:
        tx.clock(event.at)
        let_go(tx, by)


def let_go(tx: Tx, by: DecidedBy) -> None:
    """End a pause."""
    tx.state.paused = None
    tell_below(tx)
    _tell(tx, "paused", by)


def may_try_again(state: RunState) -> bool:
    """Whether an ended run can go on as it is: a model failed, or a limit that leaves room by now was reached."""
    return may_go_on(state) is not None and limits.reached(state, turn=True) is None


def raise_limits(tx: Tx, event: LimitsRaised, by: DecidedBy) -> None:
    """Let the run spend more; one that ended at a limit goes on."""
    state = tx.state
    if state.ended and may_go_on(state) != "limit":
        return
    if not state.ended:
        tx.clock(event.at)
    before = change_limits(tx, event.limits)
    now = {WIRE[field]: value for field, value in event.limits.items()}
    tx.fact(RunLimitsRaised(limits=now, before=before, by=event.by), by)
    if state.ended:
        reopen(tx, event.at, may_go_on(state), by)
    else:
        _close_request(tx)
        tell_below(tx)


def limit_answered(tx: Tx, request: AskHuman, answer: dict[str, Any]) -> None:
    """Take a person's decision about a limit that was reached."""
    about = request.subject
    if answer["decision"] != "approve":
        limits.fail(tx, about["limit"], about["used"], about["maximum"], "human")
        return
    allowed = answer.get("edited") or about["params"]
    wanted = {RAISABLE[name]: value for name, value in allowed.items()}
    before = change_limits(tx, wanted)
    tx.fact(RunLimitsRaised(limits=allowed, before=before, by=answer.get("by", "")), "human")
    tell_below(tx)


def _close_request(tx: Tx) -> None:
    """Take back the question whether to raise a limit that leaves room by now."""
    request = limits.open_request(tx.state)
    if request is not None and limits.reached(tx.state, turn=True) is None:
        tx.drop(request.id)
        tx.fact(RequestCancelled(request_id=request_id(tx.state, request), reason="raised"))


def change_limits(tx: Tx, wanted: dict[str, float | None]) -> dict[str, float | None]:
    """Give the run other limits, by the fields of `Limits`; returns those before, as they are called on the wire."""
    state = tx.state
    old = {field: cast("float | None", getattr(state.spec.limits, field)) for field in wanted}
    state.spec = with_raised(state.spec, wanted)
    state.raised = {**state.raised, **wanted}
    state.unraised = {**old, **state.unraised}
    return {WIRE[field]: value for field, value in old.items()}


def tell_below(tx: Tx) -> None:
    """Owe the children under way how things stand here."""
    state = tx.state
    state.unheard = tuple(dict.fromkeys((*state.unheard, *children_of(state))))


def reopen(tx: Tx, at: float, reason: str | None, by: DecidedBy) -> None:
    """Go on with an ended run; the time since its end was no working time."""
    state = tx.state
    state.clock = tx.at = at
    tx.touched = True
    state.status, state.result = "running", None
    _tell(tx, reason, by)


def _tell(tx: Tx, reason: str | None, by: DecidedBy) -> None:
    tx.fact(RunResumed(reason=reason), by)
    if not tx.state.waiting:
        tx.state.shown, tx.state.shown_asks = "running", ()
        tx.fact(RunStateChanged(state="running"))
