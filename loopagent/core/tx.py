"""The working copy of one transition: the new state while it is being made, and what goes out with it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from loopagent.core.context import SHRINK, size_of, with_fresh
from loopagent.core.effects import CancelEffect, StartRun
from loopagent.core.facts import DecidedBy, Fact, FactData, TurnEnded
from loopagent.core.lineage import child_id
from loopagent.core.outcomes import Outcomes
from loopagent.core.state import Message, MessageKind, RunState
from loopagent.core.told import json_of
from loopagent.core.transition import Transition
from loopagent.core.values import changed


if TYPE_CHECKING:
    from loopagent.core.effects import Effect
    from loopagent.core.outcome import Outcome
    from loopagent.core.state import StepInProgress

SPILL_RESULTS = 16
"""As many results of an open step as its snapshot carries; more are stored apart, once."""


class Tx:
    """One transition in the making.

    `state` is a shallow copy that may be assigned to; the containers in it are replaced, never changed, so the
    state that came in stays what it was. Only `pending` is a copy from the beginning, as every transition changes it.
    """

    __slots__ = ("at", "effects", "facts", "messages", "own_step", "state", "touched")

    def __init__(self, state: RunState) -> None:
        self.state = state.fork()
        self.state.pending = state.pending.copy()
        self.at = state.clock
        self.effects: list[Effect] = []
        self.facts: list[Fact] = []
        self.messages: list[Message] = []
        self.own_step: StepInProgress | None = None
        self.touched = False

    def clock(self, at: float, *, worked: bool = False) -> None:
        """Move time on; only working time counts towards `max_seconds`.

        Args:
            at: Seconds since the epoch.
            worked: Work ended at that time, so the run was not on hold before.
        """
        state = self.state
        if at > state.clock > 0.0 and state.paused is None and (worked or not state.on_hold):
            state.active_ms += (at - state.clock) * 1000.0
        state.clock = self.at = at
        self.touched = True

    def fact(self, data: FactData, by: DecidedBy = "engine", *, key: str | None = None) -> None:
        """Tell the world; `key` says where in the turn."""
        self.tell(type(data), json_of(data.table, data.__dict__), by, key=key)

    def tell(
        self,
        kind: type[FactData],
        data: dict[str, Any],
        by: DecidedBy = "engine",
        *,
        key: str | None = None,
    ) -> None:
        """Tell the world of an event of which no model is made, as of those of every turn; nothing is checked.

        Args:
            kind: Model of its data.
            data: What the model would dump, in the order of its fields; it belongs to the event alone.
            by: Who decided it.
            key: Where in the turn.
        """
        turn = self.state.turn or None
        path = None if key is None else f"turn/{turn}/{key.replace('.', '/')}"
        self.facts.append(Fact(kind.fact, by, data, turn, path))

    def say(self, role: Literal["user", "assistant"], kind: MessageKind, text: str) -> int:
        """Append a message to the transcript; gives its size in bytes."""
        state = self.state
        state.messages += 1
        self.messages.append(Message(state.messages, role, kind, text, state.turn))
        size = size_of(text)
        state.shown_bytes += size
        if kind in SHRINK and size >= state.spec.context.stub_bytes:
            fresh = with_fresh(state.view.fresh, state.turn, state.messages, size)
            state.view = changed(state.view, fresh=fresh)
        return size

    def carry(self, text: str) -> None:
        """Append what an earlier run had looked up; it becomes a stub sooner than results of this one."""
        spec, before = self.state.spec.context, self.state.view.fresh
        self.say("user", "results", text)
        if self.state.view.fresh != before:
            last = self.state.view.fresh[-1]
            sooner = last.turn - max(0, spec.result_turns - spec.carried_turns)
            fresh = (*before, replace(last, turn=sooner))
            self.state.view = replace(self.state.view, fresh=fresh)

    def notice(self, text: str) -> None:
        """Tell the model something at the next turn boundary."""
        self.state.notices = (*self.state.notices, text)

    def issue(self, effect: Effect) -> None:
        """Ask for an effect; it is pending until it settles."""
        self.state.pending[effect.id] = effect
        self.effects.append(effect)

    def drop(self, effect_id: str) -> None:
        """Take an effect off the pending ones."""
        self.state.pending.pop(effect_id, None)

    def take_back(self, effect: Effect) -> None:
        """Stop work on an effect that is or was pending; a child run is told to stop."""
        self.effects.append(CancelEffect(f"{effect.id}.cancel", effect.id))
        if isinstance(effect, StartRun):
            child = effect.resume_run_id or child_id(self.state.id, effect.id)
            self.state.unheard = (*self.state.unheard, child)

    def count(self, **changes: int | str) -> None:
        """Set counters."""
        counters = self.state.counters
        if not changes.items() <= counters.__dict__.items():  # most are set to what they are
            self.state.counters = changed(counters, **changes)

    def result(self, key: str, outcome: Outcome) -> None:
        """Record what became of one effect of the open step."""
        step = self.state.step
        if step is None:
            return
        if step is not self.own_step:
            step = self.state.step = self.own_step = changed(step)
        step.__dict__["results"] = step.results.plus(key, outcome)  # nobody else has seen this step

    def close_turn(self, outcome: str) -> None:
        """Close the open turn, if there is one."""
        if self.state.turn_open:
            self.state.turn_open = False
            self.tell(TurnEnded, {"outcome": outcome})

    def done(self) -> Transition:
        """The finished transition."""
        step = self.state.step
        spilled = None
        if step is not None and len(step.results) - step.spilled >= SPILL_RESULTS:
            spilled = self._spill(step)
        return Transition(
            self.state, tuple(self.effects), tuple(self.facts), tuple(self.messages), True, spilled
        )

    def _spill(self, step: StepInProgress) -> Outcomes:
        """Results that the snapshot need not carry any longer."""
        part = Outcomes(dict(step.results.since(step.spilled)))
        self.state.step = changed(step, spilled=len(step.results))
        return part
