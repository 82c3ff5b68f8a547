"""A run's state as it is stored: JSON without the pinned definition, and without what lies apart.

Results of a long step lie apart, and so does a payload that is not small: most turns leave it as it is, and need not
write it again. The artifacts that a run knows have rows of their own in every store, for lists; when they are many, the
snapshot only says how many they are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from pydantic import TypeAdapter
from pydantic_core import to_json

from loopagent.core.agent_spec import AgentSpec
from loopagent.core.control_state import with_raised
from loopagent.core.outcome import Outcome
from loopagent.core.outcomes import Outcomes, together
from loopagent.core.state import SCHEMA_VERSION, Artifact, RunState


APART_BYTES = 1_024
"""A payload of so many bytes as JSON is stored apart."""
MANY_ARTIFACTS = 16
"""So many artifacts are not in the snapshot any more."""
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


class Apart(NamedTuple):
    """What a stored state says of what lies apart: whether its payload does, and how many artifacts do."""

    payload: bool
    artifacts: int


def apart_of(body: bytes) -> Apart:
    """What a stored state lacks, but for results of its step."""
    found = _MARKS.match(body)
    return Apart(bool(found and found[1]), int(found[2] or 0) if found else 0)


def dump_parts(state: RunState) -> tuple[bytes, bytes | None]:
    """The state without what is to be stored apart, and the payload if it is.

    Raises:
        ValueError: Something in it is not JSON.
    """
    payload, known = payload_json(state), len(state.artifacts)
    apart, marks = set[str](), _HERE
    if len(payload) >= APART_BYTES:
        apart.add("payload")
        marks += b'"apart":true,'
    if known >= MANY_ARTIFACTS:
        apart.add("artifacts")
        marks += b'"known":%d,' % known
    return marks + _dumped(state, apart), payload if "payload" in apart else None


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
    body: bytes,
    spec: AgentSpec,
    spilled: Sequence[bytes] = (),
    *,
    payload: bytes | None = None,
    artifacts: Sequence[Artifact] = (),
) -> RunState:
    """The state again, from its parts; those that the body has itself are not looked at.

    Args:
        body: What was stored of it.
        spec: The pinned definition.
        spilled: The results that were stored apart, in order.
        payload: The payload that was stored apart.
        artifacts: What the run knows of artifacts, in order; more than it knew then does no harm.

    Raises:
        ValueError: A part is missing.
        pydantic.ValidationError: The body is not a state. Whoever loads compares `schema_version`: a state of a newer
            version is refused, never guessed at.
    """
    apart = apart_of(body)
    if (apart.payload and payload is None) or len(artifacts) < apart.artifacts:
        raise ValueError("a part of it is missing")
    own = b'"payload":%b,' % payload if apart.payload and payload is not None else b""
    state = _ADAPTER.validate_json(b'{"spec":' + _PLACEHOLDER + b"," + own + body[1:])
    state.spec = with_raised(spec, state.raised)
    if apart.artifacts:
        state.artifacts = tuple(artifacts[: apart.artifacts])
    if state.step is not None and state.step.spilled:
        parts = [_OUTCOMES.validate_json(one) for one in spilled]
        results = together([*parts, state.step.results])
        state.step = replace(state.step, results=results)
    return state


def dump_outcomes(outcomes: Mapping[str, Outcome]) -> bytes:
    """Results that are stored apart, as JSON."""
    return _OUTCOMES.dump_json(dict(outcomes), exclude_defaults=True)


_HERE = b'{"schema_version":%d,' % SCHEMA_VERSION
_MARKS = re.compile(rb'\{"schema_version":\d+,(?:("apart"):true,)?(?:"known":(\d+),)?')
"""How a stored state begins."""
SPILLED = b'"spilled":'
"""Stands in every stored state whose step has results that are stored apart."""
_PLACEHOLDER = (
    AgentSpec(name="pinned").model_dump_json(by_alias=True, exclude_defaults=True).encode()
)
