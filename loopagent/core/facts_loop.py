"""Public events of loops."""

from __future__ import annotations

from typing import Literal

from loopagent.core.facts import FactData


LoopKind = Literal["forEach", "while"]


class LoopStarted(FactData):
    """A loop begins."""

    fact = "loop.started"
    kind: LoopKind
    over: str
    """The collection's path, or the condition."""
    what: str
    """What each pass does, as in `action check`."""
    passes: int | None = None
    """How many passes there will be, when that is known."""
    side_by_side: int = 1
    """How many passes run at a time."""


class LoopProgress(FactData):
    """How far a loop is; sent to whoever listens, not stored."""

    fact = "loop.progress"
    ephemeral = True
    done: int
    failed: int
    passes: int | None = None


class LoopCompleted(FactData):
    """A loop ended: `done` passes went well, `failed` did not, `not_started` were never begun."""

    fact = "loop.completed"
    kind: LoopKind
    done: int
    failed: int
    not_started: int = 0
    stopped: str = ""
    """Why it ended before its time; empty when it did not."""
