"""What a client sees a run doing, and what it may do about it: data enough to draw buttons from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from loopagent.core.effects import AskHuman
from loopagent.core.facts import RunResumed, RunStateChanged, RunWaiting
from loopagent.core.people import request_id
from loopagent.core.state import RunState
from loopagent.core.tx import Tx


STATE_OF_ASK = {"approval": "interactive", "guard": "interactive", "question": "followup"}
BUTTONS: dict[str, tuple[str, str]] = {
    "approval": ("approve", "reject"),
    "guard": ("approve", "terminate"),
    "question": ("answer", "terminate"),
}
LABELS = {"approve": "Approve", "reject": "Reject", "answer": "Answer", "terminate": "Stop the run"}
GUARD_LABELS = {"approve": "Try another way", "terminate": "Stop the run"}


@dataclass(frozen=True, slots=True)
class LoopState:
    """`state` is the word, `reason` why it is idle, `ask` the first open request with its buttons."""

    state: str
    reason: str | None = None
    ask: dict[str, Any] | None = None

    def public(self) -> dict[str, Any]:
        """The same as camelCase JSON."""
        return {"state": self.state, "reason": self.reason, "ask": self.ask}


def loop_state(state: RunState) -> LoopState:
    """The loop state of a run (`streaming` is for the runtime to add: the core sees no partial replies)."""
    if state.ended:
        reason = state.result.reason if state.result else state.status
        return LoopState("idle", reason)
    if not state.waiting:
        return LoopState("running")
    first = state.asks[0]
    return LoopState(STATE_OF_ASK[first.ask], None, ask_public(state, first))


def ask_public(state: RunState, ask: AskHuman) -> dict[str, Any]:
    """One open request as a client draws it."""
    labels = GUARD_LABELS if ask.ask == "guard" else LABELS
    primary, secondary = BUTTONS[ask.ask]
    return {
        "requestId": request_id(state, ask),
        "kind": ask.ask,
        "title": ask.title,
        "primary": {"decision": primary, "label": labels[primary]},
        "secondary": {"decision": secondary, "label": labels[secondary]},
        "enabled": True,
        "expiresAt": None,
    }


def publish_state(tx: Tx) -> None:
    """Tell of a changed loop state, and of the start and end of waiting."""
    state = tx.state
    now = loop_state(state)
    asks = tuple(request_id(state, one) for one in state.asks) if state.waiting else ()
    if (now.state, asks) == (state.shown, state.shown_asks):
        return
    if asks:
        tx.fact(RunWaiting(requests=list(asks)))
    state.shown, state.shown_asks = now.state, asks
    tx.fact(RunStateChanged(state=now.state, reason=now.reason, ask=now.ask))


def publish_resumed(tx: Tx) -> None:
    """Tell that waiting is over, before what follows from the answer."""
    state = tx.state
    if state.shown_asks and not state.waiting and not state.ended:
        tx.fact(RunResumed(), "human")
        state.shown, state.shown_asks = "running", ()
        tx.fact(RunStateChanged(state="running"))
