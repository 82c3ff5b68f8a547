"""What a client sees a run doing, and what it may do about it: data enough to draw buttons from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from loopagent.core.conversation import QUEUED
from loopagent.core.effects import AskHuman, CallClientTool
from loopagent.core.facts import RunStateChanged, RunWaiting
from loopagent.core.facts_control import RunResumed
from loopagent.core.people import agents, request_id
from loopagent.core.state import RunState
from loopagent.core.tx import Tx


STATE_OF_ASK = {
    "approval": "interactive",
    "guard": "interactive",
    "limit": "interactive",
    "plan": "interactive",
    "question": "followup",
}
BUTTONS: dict[str, tuple[str, str]] = {
    "approval": ("approve", "reject"),
    "plan": ("approve", "reject"),
    "guard": ("approve", "terminate"),
    "limit": ("approve", "reject"),
    "question": ("answer", "terminate"),
    "client_tool": ("result", "error"),
    "resume": ("resume", "terminate"),
    "raise": ("raise", "stop"),
    "retry": ("retry", "stop"),
}
LABELS = {
    "approve": "Approve",
    "reject": "Reject",
    "answer": "Answer",
    "terminate": "Stop the run",
    "result": "Give the result",
    "error": "Give an error",
    "resume": "Go on",
    "raise": "Raise the limit and go on",
    "retry": "Try again",
    "stop": "Leave it",
}
OFFERS = {
    "paused": ("resume", "The run is paused"),
    "limit": ("raise", "The run reached a limit"),
    "model": ("retry", "The model failed"),
}
"""Why a run stands still → what is offered, beside answering requests, and its title."""
GOES_ON = frozenset({"limit", "model"})
"""Reasons of a failure after which a person may let the run go on: with a higher limit, or by trying again."""
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
        offered = may_go_on(state)
        return LoopState("idle", reason, None if offered is None else offer(state, offered))
    if state.paused is not None:
        return LoopState("resumable", "paused", offer(state, "paused"))
    if not state.waiting:
        return LoopState("queued" if QUEUED in state.pending else "running")
    first = open_requests(state)[0]
    return LoopState(state_of_ask(first), None, ask_public(state, first))


def may_go_on(state: RunState) -> str | None:
    """Why an ended run failed, if a person may let it go on; None for any other one.

    The end of a child is its parent's to deal with.
    """
    reason = state.result.reason if state.result is not None else ""
    fits = state.status == "failed" and state.parent_id is None and reason in GOES_ON
    return reason if fits else None


def state_of_ask(ask: AskHuman | CallClientTool) -> str:
    """The loop state of a run that waits for this request."""
    return "client_tool" if isinstance(ask, CallClientTool) else STATE_OF_ASK[ask.ask]


def open_requests(state: RunState) -> list[AskHuman | CallClientTool]:
    """What somebody outside is asked for: people first, then the client."""
    return [*state.asks, *state.client_calls]


def ask_public(state: RunState, ask: AskHuman | CallClientTool) -> dict[str, Any]:
    """One open request as a client draws it."""
    kind, title, due = (
        ("client_tool", f"Run {ask.tool} in the client", ask.due)
        if isinstance(ask, CallClientTool)
        else (ask.ask, ask.title, None)
    )
    return {**_drawn(state, kind, title), "requestId": request_id(state, ask), "expiresAt": due}


def offer(state: RunState, reason: str) -> dict[str, Any]:
    """What may be done with a run that stands still: no request is open for it, so there is none to answer."""
    return _drawn(state, *OFFERS[reason])


def _drawn(state: RunState, kind: str, title: str) -> dict[str, Any]:
    labels = GUARD_LABELS if kind == "guard" else LABELS
    primary, secondary = BUTTONS[kind]
    return {
        "requestId": None,
        "runId": state.id,
        "agents": agents(state),
        "kind": kind,
        "title": title,
        "primary": {"decision": primary, "label": labels[primary]},
        "secondary": {"decision": secondary, "label": labels[secondary]},
        "enabled": True,
        "expiresAt": None,
    }


def publish_state(tx: Tx) -> None:
    """Tell of a changed loop state, and of the start and end of waiting."""
    state = tx.state
    still = state.ended or state.paused is not None or state.waiting
    if not still and state.shown == "running" and not state.shown_asks:
        return
    now = loop_state(state)
    waits = state.waiting and state.paused is None
    asks = tuple(request_id(state, one) for one in open_requests(state)) if waits else ()
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
        by = tx.facts[-1].decided_by if tx.facts else "human"  # whoever settled what was waited for
        tx.fact(RunResumed(), by)
        state.shown, state.shown_asks = "running", ()
        tx.fact(RunStateChanged(state="running"))
