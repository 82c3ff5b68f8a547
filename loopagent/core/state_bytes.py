"""A run's state as it is stored: JSON without the pinned definition, and without results that lie apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pydantic import TypeAdapter

from loopagent.core.agent_spec import AgentSpec
from loopagent.core.control_state import with_raised
from loopagent.core.outcome import Outcome
from loopagent.core.outcomes import Outcomes, together
from loopagent.core.state import SCHEMA_VERSION, RunState


_NOT_STORED = {"spec", "handler", "schema_version"}
OFTEN_EMPTY = ("scratchpad", "breaker")
"""Models whose fields are all empty by default. Seeing that is cheaper here than comparing them with a new one."""
_ADAPTER: TypeAdapter[RunState] = TypeAdapter(RunState)
_OUTCOMES: TypeAdapter[dict[str, Outcome]] = TypeAdapter(dict[str, Outcome])


def dump_state(state: RunState) -> bytes:
    """The state as JSON, without the pinned spec and spilled results; its schema version is always in it."""
    step = state.step
    if step is not None and step.spilled:
        recent = Outcomes(dict(step.results.since(step.spilled)))
        state = state.fork()
        state.step = replace(step, results=recent)
    empty = {name for name in OFTEN_EMPTY if not any(getattr(state, name).__dict__.values())}
    body = _ADAPTER.dump_json(state, exclude=_NOT_STORED | empty, exclude_defaults=True)
    return b'{"schema_version":%d,' % SCHEMA_VERSION + body[1:]


def load_state(body: bytes, spec: AgentSpec, spilled: Sequence[bytes] = ()) -> RunState:
    """The state again; `spilled` are the results that were stored apart, in order.

    Raises:
        pydantic.ValidationError: The body is not a state. Whoever loads compares `schema_version`: a state of a newer
            version is refused, never guessed at.
    """
    state = _ADAPTER.validate_json(b'{"spec":' + _PLACEHOLDER + b"," + body[1:])
    state.spec = with_raised(spec, state.raised)
    if state.step is not None and state.step.spilled:
        parts = [_OUTCOMES.validate_json(one) for one in spilled]
        results = together([*parts, state.step.results])
        state.step = replace(state.step, results=results)
    return state


def dump_outcomes(outcomes: Mapping[str, Outcome]) -> bytes:
    """Results that are stored apart, as JSON."""
    return _OUTCOMES.dump_json(dict(outcomes), exclude_defaults=True)


SPILLED = b'"spilled":'
"""Stands in every stored state whose step has results that are stored apart."""
_PLACEHOLDER = (
    AgentSpec(name="pinned").model_dump_json(by_alias=True, exclude_defaults=True).encode()
)
