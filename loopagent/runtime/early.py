"""Calls that begin while the reply that asks for them still arrives; their results wait until it counts.

Nothing of them is stored or shown before that. A call is used only if the reply, once it was checked as a whole, asks
for exactly it in exactly that place; every other one is cancelled, and an event tells of it.

Source: decision seat D9.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

from loopagent.core.early import early_call
from loopagent.core.effects import RunAction
from loopagent.core.hashing import json_hash
from loopagent.core.outcome import Outcome
from loopagent.core.presenting.parts import Delta, Retracted, Shown
from loopagent.runtime.streaming import COUNTS, REASONS


if TYPE_CHECKING:
    from loopagent.core.facts import Fact
    from loopagent.runtime.live import Live


_TYPE: Final = "nextStep.type"
_LIST: Final = "nextStep.actions"
_CALLS: Final = frozenset({_TYPE, _LIST})
"""Fields that say what is called."""
Call = Callable[[RunAction], Coroutine[Any, Any, Outcome]]


@dataclass(slots=True)
class _Begun:
    """A call under way, or ended."""

    effect: RunAction
    task: asyncio.Task[Outcome]
    began: float
    """Seconds of `perf_counter`."""

    def fits(self, effect: RunAction) -> bool:
        """Whether this is the very call, at its place."""
        own = self.effect
        same = (own.id, own.action) == (effect.id, effect.action)
        return same and json_hash(own.params) == json_hash(effect.params)


class EarlyCalls:
    """What has begun early during one model call.

    Args:
        live: The run.
        effect_id: The model call.
        call: Calls an action, without storing anything.
        mask: Takes secrets out of what is told.
    """

    def __init__(self, live: Live, effect_id: str, call: Call, mask: Callable[[Any], Any]) -> None:
        self._live = live
        self._effect_id = effect_id
        self._call = call
        self._mask = mask
        self._begun: dict[str, _Begun] = {}
        self._entries: list[Delta] = []
        """Calls that were read before it was known that the step is one of calls."""
        self._is_calls = False
        self._left = live.state.spec.limits.max_concurrency
        """How many may still begin, all attempts at the reply together."""
        self._dropped: list[dict[str, Any]] = []

    def hear(self, shown: Sequence[Shown]) -> None:
        """Begin what the reply has asked for so far."""
        for one in shown:
            if isinstance(one, Retracted):
                self.take_back(one)
            elif one.field == _TYPE:
                self._is_calls = one.value == "Actions"
            elif one.field == _LIST and one.done:
                self._entries.append(one)
        if self._is_calls:
            for one in self._entries:
                self._begin(one)
            self._entries.clear()

    def take_back(self, retracted: Retracted) -> None:
        """The reply is read otherwise than it looked: what came of its calls does not count."""
        if not retracted.fields or not _CALLS.isdisjoint(retracted.fields):
            self._drop("changed")
            self._entries.clear()
            self._is_calls = False

    def restart(self) -> None:
        """The model is asked again."""
        self._drop("retry")
        self._entries.clear()
        self._is_calls = False

    async def taken(self, effect: RunAction) -> Outcome | None:
        """The outcome of a call that began early, if it is exactly this one."""
        begun = self._begun.pop(effect.id, None)
        if begun is None:
            return None
        early_ms = round((perf_counter() - begun.began) * 1000.0, 2)
        return replace(await begun.task, early_ms=early_ms)

    def settled(self, facts: Iterable[Fact]) -> list[dict[str, Any]]:
        """Something was stored: cancel every call that the run does not ask for, once the reply is there.

        Args:
            facts: What was stored.

        Returns:
            The calls that were cancelled, as the data of their events.
        """
        pending = self._live.state.pending
        if self._effect_id in pending:
            return []
        kinds = {one.type for one in facts}
        reason = next((why for kind, why in REASONS.items() if kind in kinds), "interrupted")
        if COUNTS in kinds:
            reason = "not_asked" if self._live.state.step is None else "waits"
        for key, begun in list(self._begun.items()):
            wanted = pending.get(key)
            if not (isinstance(wanted, RunAction) and begun.fits(wanted)):
                self._cancel(self._begun.pop(key), reason if wanted is None else "changed")
        return self.dropped()

    def dropped(self) -> list[dict[str, Any]]:
        """The calls that were cancelled and not told of yet, as the data of their events."""
        dropped, self._dropped = self._dropped, []
        return dropped

    def close(self) -> None:
        """Cancel everything: the call of the model was cancelled, or this process stops."""
        self._drop("interrupted")

    def _begin(self, entry: Delta) -> None:
        index = entry.index or 0
        effect = early_call(self._live.state, entry.value, index) if self._left else None
        if effect is None or effect.id in self._begun:
            return
        self._left -= 1
        task = asyncio.create_task(
            self._call(effect), name=f"{self._live.run_id}/{effect.id}/early"
        )
        self._begun[effect.id] = _Begun(effect, task, perf_counter())

    def _drop(self, reason: str) -> None:
        for begun in self._begun.values():
            self._cancel(begun, reason)
        self._begun.clear()

    def _cancel(self, begun: _Begun, reason: str) -> None:
        begun.task.cancel()
        begun.task.add_done_callback(_looked_at)
        ran_ms = (perf_counter() - begun.began) * 1000.0
        if begun.task.done() and not begun.task.cancelled() and begun.task.exception() is None:
            ran_ms = begun.task.result().duration_ms
        self._dropped.append(
            {
                "callId": begun.effect.id,
                "action": begun.effect.action,
                "params": self._mask(begun.effect.params),
                "reason": reason,
                "runningMs": round(ran_ms, 2),
            }
        )


def _looked_at(task: asyncio.Task[Outcome]) -> None:
    """How a call ended that nobody waits for is no news."""
    if not task.cancelled():
        task.exception()
