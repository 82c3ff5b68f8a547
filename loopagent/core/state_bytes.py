"""A run's state as it is stored: JSON without the pinned definition, and without what lies apart.

Results of a long step lie apart, and so does a payload that is not small: most turns leave it as it is, and need not
write it again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pydantic import TypeAdapter
from pydantic_core import to_json

from loopagent.core.agent_spec import AgentSpec
from loopagent.core.control_state import with_raised
from loopagent.core.outcome import Outcome
from loopagent.core.outcomes import Outcomes, together
from loopagent.core.state import SCHEMA_VERSION, RunState


APART_BYTES = 1_024
"""A payload of so many bytes as JSON is stored apart."""
_NOT_STORED = {"spec", "handler", "schema_version", "rendered"}
OFTEN_EMPTY = ("scratchpad", "breaker")
"""Models whose fields are all empty by default. Seeing that is cheaper here than comparing them with a new one."""
_ADAPTER: TypeAdapter[RunState] = TypeAdapter(RunState)
_OUTCOMES: TypeAdapter[dict[str, Outcome]] = TypeAdapter(dict[str, Outcome])


def payload_json(state: RunState) -> bytes:
    """The payload as JSON, made once: states that follow from this one know it as long as it stays the same object.

    Raises:
        ValueError: Something in it is not JSON.
    """
    if state.rendered is None or state.rendered[0] is not state.payload:
        state.rendered = (state.payload, to_json(state.payload))
    return state.rendered[1]


def dump_parts(state: RunState) -> tuple[bytes, bytes | None]:
    """The state as `dump_state` has it, and the payload if that is to be stored apart, which the state lacks then.

    Raises:
        ValueError: Something in it is not JSON.
    """
    payload = payload_json(state)
    if len(payload) < APART_BYTES:
        return dump_state(state), None
    return _APART + _dumped(state, {"payload"}), payload


def dump_state(state: RunState) -> bytes:
    """The state as JSON, without the pinned spec and spilled results; its schema version is always in it."""
    return _HERE + _dumped(state, set())


def _dumped(state: RunState, apart: set[str]) -> bytes:
    """All fields that are not as they are by default, from the first one on."""
    step = state.step
    if step is not None and step.spilled:
        recent = Outcomes(dict(step.results.since(step.spilled)))
        state = state.fork()
        state.step = replace(step, results=recent)
    empty = {name for name in OFTEN_EMPTY if not any(getattr(state, name).__dict__.values())}
    return _ADAPTER.dump_json(state, exclude=_NOT_STORED | empty | apart, exclude_defaults=True)[1:]


def load_state(
    body: bytes, spec: AgentSpec, spilled: Sequence[bytes] = (), payload: bytes | None = None
) -> RunState:
    """The state again.

    Args:
        body: What was stored of it.
        spec: The pinned definition.
        spilled: The results that were stored apart, in order.
        payload: The payload that was stored apart; not looked at where the body says that it has its own.

    Raises:
        pydantic.ValidationError: The body is not a state. Whoever loads compares `schema_version`: a state of a newer
            version is refused, never guessed at.
    """
    if APART in body[:MARKS_BYTES]:
        if payload is None:
            raise ValueError("its payload is missing")
        body = body.replace(APART, b'"payload":' + payload, 1)
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


APART = b'"apart":true'
"""Stands at the beginning of every stored state whose payload is stored apart, within `MARKS_BYTES`."""
MARKS_BYTES = 64
_HERE = b'{"schema_version":%d,' % SCHEMA_VERSION
_APART = _HERE + APART + b","
SPILLED = b'"spilled":'
"""Stands in every stored state whose step has results that are stored apart."""
_PLACEHOLDER = (
    AgentSpec(name="pinned").model_dump_json(by_alias=True, exclude_defaults=True).encode()
)
