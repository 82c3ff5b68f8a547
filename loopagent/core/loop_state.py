"""The loop state of a run as the engine knows it: from its states, and told in its events."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from loopagent.core.conversation import QUEUED
from loopagent.core.effects import WORK, AskHuman, CallClientTool, CallModel, RunAction
from loopagent.core.facts import RunStateChanged, RunWaiting
from loopagent.core.facts_control import RunResumed
from loopagent.core.lineage import children_of
from loopagent.core.loop_view import BUTTONS, GOES_ON, Ask, LoopState, Part, Word, combine
from loopagent.core.people import agents, request_id
from loopagent.core.state import RunState
from loopagent.core.tx import Tx


_BUSY: Final = (CallModel, RunAction)
"""Effects of which the world is told when they begin and when they end."""


def own_state(state: RunState) -> LoopState:
    """The loop state of a run, looked at alone (`streaming` is for the runtime to add: no state knows of it)."""
    return combine(state.id, {state.id: part_of(state)})


def part_of(state: RunState) -> Part:
    """What a run does by itself."""
    return Part(
        run_id=state.id,
        word=_word(state),
        reason=_reason(state),
        child=state.parent_id is not None,
        agents=agents(state),
        busy=any(isinstance(one, _BUSY) for one in state.pending.values()),
        asks=[ask_public(state, one) for one in open_requests(state)],
        children=children_of(state),
    )


def parts_of(states: Iterable[RunState]) -> dict[str, Part]:
    """What each run of a tree does by itself, by id; a run comes before those below it."""
    parts: dict[str, Part] = {}
    known: dict[str, RunState] = {}
    for state in states:
        part = parts[state.id] = part_of(state)
        above = known.get(state.parent_id or "")
        part.heard = above is None or state.serves in above.pending
        known[state.id] = state
    return parts


def _word(state: RunState) -> Word:
    if state.ended:
        return "idle"
    if state.paused is not None:
        return "resumable"
    if state.waiting:
        return "waiting"
    return "queued" if QUEUED in state.pending else "running"


def _reason(state: RunState) -> str | None:
    if not state.ended:
        return None
    return state.result.reason if state.result else state.status


def may_go_on(state: RunState) -> str | None:
    """Why an ended run failed, if a person may let it go on; None for any other one.

    The end of a child is its parent's to deal with.
    """
    reason = state.result.reason if state.result is not None else ""
    fits = state.status == "failed" and state.parent_id is None and reason in GOES_ON
    return reason if fits else None


def open_requests(state: RunState) -> list[AskHuman | CallClientTool]:
    """What somebody outside is asked for: people first, then the client."""
    return [*state.asks, *state.client_calls]


def ask_public(state: RunState, ask: AskHuman | CallClientTool) -> Ask:
    """One open request as a client draws it."""
    kind, title, due = (
        ("client_tool", f"Run {ask.tool} in the client", ask.due)
        if isinstance(ask, CallClientTool)
        else (ask.ask, ask.title, ask.expires_at or None)
    )
    primary, secondary = BUTTONS[kind]
    return Ask(
        request_id=request_id(state, ask),
        run_id=state.id,
        agents=agents(state),
        kind=kind,
        title=title,
        primary=primary,
        secondary=secondary,
        enabled=True,
        expires_at=due,
    )


def publish_state(tx: Tx) -> None:
    """Tell of a changed loop state, and of the start and end of waiting."""
    state = tx.state
    if (
        state.shown == "running"
        and not state.shown_asks
        and state.status == "running"
        and state.paused is None
        and ((tx.effects and type(tx.effects[-1]) in WORK) or not state.waiting)
    ):
        return
    now = own_state(state)
    waits = state.waiting and state.paused is None
    asks = tuple(request_id(state, one) for one in open_requests(state)) if waits else ()
    if (now.state, asks) == (state.shown, state.shown_asks):
        return
    if asks:
        tx.fact(RunWaiting(requests=list(asks)))
    state.shown, state.shown_asks = now.state, asks
    ask = now.ask.model_dump() if now.ask is not None and now.state != "running" else None
    tx.fact(RunStateChanged(state=now.state, reason=now.reason, ask=ask))


def publish_resumed(tx: Tx) -> None:
    """Tell of a run that was shown waiting that this is over, if so, before what follows from the answer."""
    state = tx.state
    if not state.waiting:
        by = tx.facts[-1].decided_by if tx.facts else "human"  # whoever settled what was waited for
        tx.fact(RunResumed(), by)
        state.shown, state.shown_asks = "running", ()
        tx.fact(RunStateChanged(state="running"))
