"""What is measured, and where it is read off: the public facts of commits, effects and calls of models."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol

from loopagent.telemetry import names
from loopagent.telemetry.prometheus import Instrument


if TYPE_CHECKING:
    from loopagent.core.state import RunState
    from loopagent.ports import Commit, Usage

_SECONDS: Final = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)  # fmt: skip
"""As the conventions advise for durations."""
_TOKENS: Final = tuple(float(4**power) for power in range(14))
"""As the conventions advise for tokens: 1, 4, 16 … 67,108,864."""

TOKEN_USAGE: Final = Instrument(
    names.CLIENT_TOKEN_USAGE, "histogram", "Tokens of a model call.", "{token}", _TOKENS
)
OPERATION_DURATION: Final = Instrument(
    names.CLIENT_OPERATION_DURATION, "histogram", "Time of an attempt at a model call.", "s", _SECONDS
)  # fmt: skip
TIME_TO_FIRST_CHUNK: Final = Instrument(
    names.CLIENT_TIME_TO_FIRST_CHUNK, "histogram", "Time until a reply begins.", "s", _SECONDS
)
TURNS: Final = Instrument(names.TURNS, "counter", "Turns that ended.")
RUNS_STARTED: Final = Instrument(names.RUNS_STARTED, "counter", "Runs that were created.")
RUNS_ENDED: Final = Instrument(names.RUNS_ENDED, "counter", "Runs that ended.")
EFFECTS: Final = Instrument(names.EFFECTS, "counter", "Effects that were performed.")
EFFECT_DURATION: Final = Instrument(
    names.EFFECT_DURATION, "histogram", "Time of an effect.", "s", _SECONDS
)
REQUESTS: Final = Instrument(names.REQUESTS_CREATED, "counter", "Requests to people.")
DELIVERIES: Final = Instrument(names.DELIVERIES, "counter", "Events that reached triggers.")
COUNTED: Final = (
    TOKEN_USAGE,
    OPERATION_DURATION,
    TIME_TO_FIRST_CHUNK,
    TURNS,
    RUNS_STARTED,
    RUNS_ENDED,
    EFFECTS,
    EFFECT_DURATION,
    REQUESTS,
    DELIVERIES,
)
"""Metrics that grow."""
REQUESTS_WAITING: Final = Instrument(
    names.REQUESTS_WAITING, "gauge", "Requests that wait for people, in the store."
)
QUEUE: Final = Instrument(
    names.QUEUE, "gauge", "Runs in the store that have work, and that this process does not work on."
)  # fmt: skip
RUNS_ACTIVE: Final = Instrument(names.RUNS_ACTIVE, "gauge", "Runs that this process works on.")


class Sink(Protocol):
    """Takes what was measured."""

    def add(self, instrument: Instrument, value: float, attributes: Mapping[str, str]) -> None:
        """Count a value of a metric."""
        ...


class Measures:
    """Measures, for any number of sinks.

    Args:
        sinks: Where the numbers go.
    """

    def __init__(self, *sinks: Sink) -> None:
        self._sinks = sinks

    def add(self, instrument: Instrument, value: float, **attributes: str) -> None:
        """Count a value; names of attributes are keys of `_ATTRIBUTES`."""
        named = {_ATTRIBUTES[key]: one for key, one in attributes.items()}
        for sink in self._sinks:
            sink.add(instrument, value, named)

    def committed(self, commit: Commit) -> None:
        """Count what a commit says that happened."""
        for fact in commit.facts:
            count = _FACTS.get(fact.type)
            if count is not None:
                count(self, commit.state, fact.data)

    def effect(self, state: RunState, kind: str, seconds: float, *, ok: bool) -> None:
        """Count an effect that was performed."""
        outcome = "ok" if ok else "failed"
        self.add(EFFECTS, 1, agent=state.spec.name, kind=kind, outcome=outcome)
        self.add(EFFECT_DURATION, seconds, kind=kind)

    def model_call(
        self, provider: str, model: str, seconds: float, usage: Usage | None, error: str | None
    ) -> None:
        """Count an attempt at a model call; `error` is the kind of failure, None when there was none."""
        asked = {"operation": names.CHAT, "provider": provider, "model": model}
        failed = {} if error is None else {"error": error}
        self.add(OPERATION_DURATION, seconds, **asked, **failed)
        if usage is not None:
            self.add(TOKEN_USAGE, usage.input_tokens, **asked, tokens="input")
            self.add(TOKEN_USAGE, usage.output_tokens, **asked, tokens="output")

    def first_chunk(self, provider: str, model: str, seconds: float) -> None:
        """Count how long a reply took to begin."""
        asked = {"operation": names.CHAT, "provider": provider, "model": model}
        self.add(TIME_TO_FIRST_CHUNK, seconds, **asked)

    def delivery(self, trigger: str, status: str) -> None:
        """Count an event that reached a trigger, or that got on."""
        self.add(DELIVERIES, 1, trigger=trigger, status=status)


def _turn(measures: Measures, state: RunState, data: dict[str, Any]) -> None:
    measures.add(TURNS, 1, agent=state.spec.name, turn_outcome=data["outcome"])


def _created(measures: Measures, state: RunState, data: dict[str, Any]) -> None:
    del data
    measures.add(RUNS_STARTED, 1, agent=state.spec.name)


def _ended(measures: Measures, state: RunState, data: dict[str, Any]) -> None:
    failed = {"error": data["reason"]} if state.status == "failed" else {}
    measures.add(RUNS_ENDED, 1, agent=state.spec.name, run_status=state.status, **failed)


def _asked(measures: Measures, state: RunState, data: dict[str, Any]) -> None:
    measures.add(REQUESTS, 1, agent=state.spec.name, request_kind=data["kind"])


_FACTS: Final[dict[str, Callable[[Measures, RunState, dict[str, Any]], None]]] = {
    "run.created": _created,
    "turn.ended": _turn,
    "run.completed": _ended,
    "run.failed": _ended,
    "run.cancelled": _ended,
    "request.created": _asked,
}
_ATTRIBUTES: Final = {
    "agent": names.AGENT_NAME,
    "operation": names.OPERATION_NAME,
    "provider": names.PROVIDER_NAME,
    "model": names.REQUEST_MODEL,
    "tokens": names.TOKEN_TYPE,
    "error": names.ERROR_TYPE,
    "kind": names.EFFECT_KIND,
    "outcome": names.OUTCOME,
    "turn_outcome": names.TURN_OUTCOME,
    "run_status": names.RUN_STATUS,
    "request_kind": names.REQUEST_KIND,
    "trigger": names.TRIGGER_NAME,
    "status": names.DELIVERY_STATUS,
}
"""All attributes of metrics: names that people gave, and words from short lists; never ids or texts."""
