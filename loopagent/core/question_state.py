"""What a run keeps of a call that waits for the answers to its questions."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from loopagent.core.effects import RunAction
from loopagent.core.values import value_object


@value_object(frozen=True, slots=True)
class OpenCall:
    """A call whose last attempt ended with questions."""

    call: RunAction
    rounds: int
    """How often it has asked by now."""
    state: str | None = None
    """What the server wants to have back with the answers."""
    open: tuple[str, ...] = ()
    """Ids of the requests that are not answered yet."""
    answers: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    """Answers by the server's name of the question."""
    known: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    """The same by digest of the question, should a server put it again that knows nothing of the attempt before."""
