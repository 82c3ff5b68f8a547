"""The first event of a copy's own: what happened to another run, up to the beginning of a turn, happened to it too.

The copy has no children and waits for nobody; the turn is taken anew, from the same state.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from loopagent.core import control
from loopagent.core.control_state import ForkedFrom
from loopagent.core.facts import PayloadChanged
from loopagent.core.facts_control import RunForked
from loopagent.core.state import Mail


if TYPE_CHECKING:
    from loopagent.core.events import Forked
    from loopagent.core.facts import DecidedBy
    from loopagent.core.tx import Tx


NOT_APPROVED: Final = (
    "Plan revision {revision} was approved before something else was changed. Its approval does not hold any more:"
    " put a plan to a person again before you change anything."
)
NO_CHILDREN: Final = (
    "Open questions of sub-agents cannot be answered any more; give their work anew if needed."
)


def begin(tx: Tx, event: Forked, by: DecidedBy) -> None:
    """Become a run of its own, right before the turn; `carry_on` then opens it."""
    state = tx.state
    state.clock = tx.at = event.at
    tx.touched = True
    before = state.forked_from
    talk = state.conversation if before is None else before.conversation
    state.forked_from, state.conversation = ForkedFrom(event.run_id, event.turn, talk), ""
    state.turn, state.turn_open, state.pending = event.turn - 1, False, {}
    if state.asked:
        tx.notice(NO_CHILDREN)
    state.asked, state.unheard, state.told_ask = {}, (), ""
    state.remembered, state.refused, state.asking = (), {}, {}
    if event.limits:
        control.change_limits(tx, event.limits)
    dropped = _drop_approval(tx, event)
    fact = RunForked(
        from_run_id=event.run_id,
        turn=event.turn,
        by=event.by,
        message=event.message or None,
        new_payload=event.new_payload,
        approval_dropped=dropped,
    )
    tx.fact(fact, by)
    if event.new_payload:
        state.payload = event.payload
        tx.fact(PayloadChanged(patch=[{"op": "replace", "path": "", "value": event.payload}]), by)
        tx.notice("The payload was replaced by a person; look at it again.")
    if event.message:
        state.mail = (Mail(event.message, "steer"), *state.mail)


def _drop_approval(tx: Tx, event: Forked) -> bool:
    """Take the approval of a plan away where the copy differs in anything that the approver did not see."""
    plan = tx.state.plan
    if plan.status != "approved" or not (event.message or event.new_payload):
        return False
    tx.state.plan = replace(plan, status="none", unlocked=())
    tx.notice(NOT_APPROVED.format(revision=plan.revision))
    return True
