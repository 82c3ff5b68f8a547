"""Which commits a store may be slow to make safe against a power cut."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopagent.core.effects import ReadMessage, RunAction
from loopagent.core.events import Settled


if TYPE_CHECKING:
    from collections.abc import Sequence

    from loopagent.core.events import Event
    from loopagent.core.state import RunState


def repeatable(before: RunState, events: Sequence[Event], after: RunState) -> bool:
    """Whether all that is lost with a commit comes back by itself: outcomes of calls that may be repeated.

    Whatever somebody outside said, what a model answered, what waits for a person, and the end of a run are never
    lost. Neither is anything that follows from such an outcome and must not happen twice: a call that may not be
    repeated is marked as started first, and that commit makes everything before it safe as well.

    Args:
        before: The state that the events came to.
        events: What happened.
        after: The state they made.
    """
    for one in events:
        if not (isinstance(one, Settled) and _harmless(before.pending.get(one.effect_id))):
            return False
    return not (after.ended or after.waiting)


def _harmless(effect: object) -> bool:
    if isinstance(effect, RunAction):
        return effect.repeatable
    return isinstance(effect, ReadMessage)
