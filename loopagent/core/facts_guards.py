"""Public events of the guards: reminders, mistakes, repetition and limits."""

from __future__ import annotations

from loopagent.core.facts import FactData


class GuardNudged(FactData):
    """The model was reminded to go on or to finish."""

    fact = "guard.nudged"
    reason: str


class GuardMistake(FactData):
    """Several turns in a row went wrong."""

    fact = "guard.mistake"
    count: int


class GuardRepeated(FactData):
    """The model asks for the same step again and again."""

    fact = "guard.repeated"
    count: int


class GuardLimit(FactData):
    """A limit was reached."""

    fact = "guard.limit"
    limit: str
    value: float
    maximum: float
