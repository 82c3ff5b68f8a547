"""What a pipeline did: how each stage ended, and the three ways in which a look at it can turn out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from loopagent.core.effects import RunAction
from loopagent.core.outcome import Outcome


ENGINE_CODES: Final = frozenset(
    {
        "stage",
        "template",
        "invalid_params",
        "max_entries",
        "max_calls",
        "max_pipeline_bytes",
        "max_pipeline_seconds",
    }
)
"""Codes of failures that no call is the reason of."""
NOT_STARTED: Final = "not_started"
"""Code of entries of a `map` that were not started because the ones before kept failing."""
NOTHING: Final = object()
"""Stands for the data before the first stage that gives any."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of an action that has ended."""

    key: str
    action: str
    params: dict[str, Any]
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a stage failed.

    `path` says where, as in `steps[2] (map), entry 3: do[0] (fetch)`. `code` is the action's, or a word for what
    the engine found. `may_have_run`: a call may have had its effect although it failed.
    """

    path: str
    message: str
    code: str = "stage"
    may_have_run: bool = False

    def inside(self, path: str) -> Failure:
        """The same failure as seen from the stage around it."""
        return Failure(f"{path}: {self.path}", self.message, self.code, self.may_have_run)

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


@dataclass(frozen=True, slots=True, eq=False)
class Ran:
    """How a stage ended, or the stages inside a `map` for one entry.

    `base` is how that which came before ended; what has the same base is the same. `bound` are names for later
    stages, `misses` the entries of a `map` that failed, by position.
    """

    label: str
    base: Ran | None
    value: Any
    calls: tuple[Call, ...] = ()
    bound: dict[str, Any] | None = None
    error: Failure | None = None
    misses: tuple[tuple[int, Failure], ...] = ()
    size_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Value:
    """The pipeline is done and this is its last value."""

    value: Any
    trace: tuple[Ran, ...] = ()


@dataclass(frozen=True, slots=True)
class Failed:
    """The pipeline has failed; it gives no value. Calls of it may still be under way: wait for them to settle."""

    failure: Failure
    trace: tuple[Ran, ...] = ()


@dataclass(frozen=True, slots=True)
class Needs:
    """These calls must settle before the pipeline can go on; those already under way are among them."""

    effects: tuple[RunAction, ...]
    trace: tuple[Ran, ...] = ()


def calls_of(trace: tuple[Ran, ...]) -> Iterator[Call]:
    """All calls that were made, in the order of the stages and entries."""
    for one in trace:
        yield from one.calls
