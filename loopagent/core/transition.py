"""What one step of the machine brings: the new state, what to do, what to tell, what was said."""

from __future__ import annotations

from loopagent.core.effects import Effect
from loopagent.core.facts import Fact
from loopagent.core.outcomes import Outcomes
from loopagent.core.state import Message, RunState
from loopagent.core.values import value_object


@value_object(frozen=True, slots=True)
class Transition:
    """The result of `advance`.

    `effects` are to be performed once the transition is committed, `facts` are the public events in order,
    `messages` are appended to the transcript. `changed` is False when the events meant nothing (unknown effect,
    ended run): nothing is to be committed then.
    """

    state: RunState
    effects: tuple[Effect, ...] = ()
    facts: tuple[Fact, ...] = ()
    messages: tuple[Message, ...] = ()
    changed: bool = True
    spilled: Outcomes | None = None
    """Results of the open step that are stored apart from now on; see `StepInProgress.spilled`."""
