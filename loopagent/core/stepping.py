"""Carrying on: look at the open step, or open the next turn, until something has to be waited for."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from loopagent.core import (
    away,
    claims,
    compaction,
    ending,
    hooks,
    inline,
    limits,
    made,
    people,
    plans,
    superseded,
)
from loopagent.core.artifact_handles import handle_of
from loopagent.core.call_ends import learn
from loopagent.core.changes import commit_payload
from loopagent.core.effects import CallModel
from loopagent.core.facts import TurnStarted
from loopagent.core.facts_guards import GuardMistake
from loopagent.core.gate import issue
from loopagent.core.outcome import NOT_FAILURES
from loopagent.core.problems import in_a_line
from loopagent.core.results import results_text
from loopagent.core.skills import activate, hear
from loopagent.core.state import Claim, StepInProgress
from loopagent.core.steps import Done, open_step


if TYPE_CHECKING:
    from loopagent.core.facts import FactData
    from loopagent.core.outcomes import Outcomes
    from loopagent.core.state import MessageKind
    from loopagent.core.tx import Tx


CLAIM_NOT_TAKEN = (
    "taskComplete was not taken with this step. Look at its results, then claim completion again."
)


def carry_on(tx: Tx) -> None:
    """Do all that is necessary and possible now.

    The one rule of the loop: the next planner call is issued only when no step is open and nothing is pending.
    """
    state = tx.state
    while state.status == "running" and state.farewell is None:
        step = state.step
        if step is not None:
            if not _resume(tx, step):
                return
        elif state.pending:
            return
        elif state.claim is not None:
            claims.claim(tx, state.claim)
        else:
            _next_turn(tx)


def _resume(tx: Tx, step: StepInProgress) -> bool:
    """Look at the open step once; True when that changed something and it is worth looking again."""
    handler = tx.state.handler or open_step(tx.state)
    assert handler is not None
    move = handler.resume(tx.state, step.results)
    if isinstance(move, Done):
        _finish(tx, step, move)
        return True
    if move.facts:
        _tell(tx, move.facts)
    return issue(tx, move.effects)


def _finish(tx: Tx, step: StepInProgress, done: Done) -> None:
    """Close the step: what it brought goes to the model in the order it was asked for."""
    tx.state.step = tx.state.handler = None
    if tx.state.pending:
        _drop_leftovers(tx)
    if done.facts:
        _tell(tx, done.facts)
    learn(tx, done.calls)
    if done.payload is not None:
        commit_payload(tx, done.payload)
    if done.results:
        text = results_text(done.results, handle=lambda one: handle_of(tx, one))
        size = tx.say("user", "results", text)
        made.note(tx, done)
        superseded.note(tx, done.calls if step.request["type"] == "Actions" else (), size)
    if done.said or done.skills or done.notices:
        _pass_on(tx, done)
    if step.notes:
        hooks.hand_over(tx, step.notes)
    if step.claimed:
        tx.notice(CLAIM_NOT_TAKEN)
    _count_mistake(tx, step.results, done)
    if done.ends is None:
        tx.close_turn("step")
    else:
        tx.state.claim = Claim(done.ends, by_step=True)


def _pass_on(tx: Tx, done: Done) -> None:
    """What a step brought beside results."""
    for name, reason in done.skills:
        activate(tx, name, by="model", decided_by="model", reason=reason)
    for kind, text in done.said:
        _say(tx, kind, text)
    for text in done.notices:
        tx.notice(text)


def _tell(tx: Tx, facts: tuple[tuple[str, FactData], ...]) -> None:
    for key, data in facts:
        tx.fact(data, key=key)


def _drop_leftovers(tx: Tx) -> None:
    """Stop what a finished step no longer waits for, such as the timer beside an answer that came."""
    for effect in list(tx.state.pending.values()):
        if inline.is_inline(effect):
            continue
        tx.drop(effect.id)
        tx.take_back(effect)


def _say(tx: Tx, kind: MessageKind, text: str) -> None:
    if kind == "person":
        hear(tx, kind, text)
    else:
        tx.say("user", kind, text)


def _count_mistake(tx: Tx, results: Outcomes, done: Done) -> None:
    """A turn counts as a mistake when something failed and nothing succeeded; any success resets."""
    wrong: list[str] = []
    for _, one in results.since(0):
        if one.ok and done.progress:
            tx.count(mistakes=0, claims=0)
            return
        if one.error is not None and one.error.code not in NOT_FAILURES:
            wrong.append(one.error.message)
    if done.failed or wrong:
        tx.count(mistakes=tx.state.counters.mistakes + 1, trouble=in_a_line("".join(wrong[-1:])))


def _next_turn(tx: Tx) -> None:
    """Open the next turn, unless a guard or a limit stands in the way."""
    state = tx.state
    if _stuck(tx):
        return
    reached = limits.reached(state, turn=True)
    if reached is not None:
        limits.stop(tx, reached)
        return
    if compaction.make_room(tx) or (state.spec.hooks and hooks.holds_turn(tx)):
        return
    _hand_over(tx)
    state.turn += 1
    state.turn_open = True
    tx.tell(TurnStarted, {})
    tx.issue(CallModel(f"{state.turn}:model", limits.timeout_ms(state, None)))


def _hand_over(tx: Tx) -> None:
    """Give the model what waited for the turn boundary: the engine's notices, then one message of a person."""
    if tx.state.inline:
        inline.hand_over(tx)
    plans.tell_mode(tx)
    away.tell(tx)
    state = tx.state
    if state.notices:
        alone = len(state.notices) == 1
        tx.say("user", "feedback", "\n\n".join(state.notices))
        state.notices = ()
        if state.counters.refusals_in_a_row or state.counters.truncations:
            told = state.messages if alone else 0  # with other words in it, it stays
            state.view = replace(state.view, note=(state.view.note[0], told))
    if state.mail:
        first, *rest = state.mail
        state.mail = tuple(rest)
        hear(tx, "person", first.text)


def _stuck(tx: Tx) -> bool:
    """Ask the person what to do with a run that keeps going wrong, or end it (decision seats F1, F2)."""
    counters, bounds = tx.state.counters, tx.state.spec.limits
    too_many = bounds.max_mistakes and counters.mistakes >= bounds.max_mistakes
    refused = counters.refusals_in_a_row >= bounds.max_refusals_in_a_row
    repeated = counters.repeats >= bounds.repeat_limit
    if not (too_many or refused or repeated):
        return False
    count = max(counters.mistakes, counters.refusals_in_a_row, counters.repeats)
    tx.fact(GuardMistake(count=count))
    what = "repeats the same step" if repeated else "keeps making mistakes"
    text = f"The agent {what} ({count} times in a row)."
    if counters.trouble and not repeated:
        text += f" The last one: {counters.trouble}"
    if not tx.state.spec.interactive:
        ending.fail(tx, "mistakes", text, count=count)
        return True
    people.ask(tx, people.guard(f"{tx.state.turn}:guard", "The agent is stuck", text), "guard")
    return True
