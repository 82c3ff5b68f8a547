"""A run's state as it is stored: JSON without the pinned definition, and without what lies apart.

Results of a long step lie apart, and so does a payload that is not small: most turns leave it as it is, and need not
write it again. The artifacts that a run knows have rows of their own in every store, for lists; when they are many, the
snapshot only says how many they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from itertools import compress
from operator import itemgetter, ne
from typing import Any, NamedTuple, get_type_hints

from pydantic import TypeAdapter
from pydantic_core import to_json

from loopagent.core.agent_spec import AgentSpec
from loopagent.core.control_state import with_raised
from loopagent.core.effects import Effect
from loopagent.core.outcome import Outcome
from loopagent.core.outcomes import Outcomes, together
from loopagent.core.state import SCHEMA_VERSION, Artifact, RunState, StepInProgress
from loopagent.core.values import changed


APART_BYTES = 1_024
"""A payload of so many bytes as JSON is stored apart."""
MANY_ARTIFACTS = 16
"""So many artifacts are not in the snapshot any more."""
_BESIDE = {"spec", "handler", "schema_version", "rendered", "payload"}
"""Fields that are not stored, or not as the others are."""
_ADAPTER: TypeAdapter[RunState] = TypeAdapter(RunState)
_OUTCOMES: TypeAdapter[dict[str, Outcome]] = TypeAdapter(dict[str, Outcome])
_NEW = RunState(id="", spec=AgentSpec(name="new"), model="")
_DEFAULTS = {name: value for name, value in _NEW.__dict__.items() if name not in _BESIDE}
_USUAL = """
    id model root_id turn turn_open pending step replied_at messages shown_bytes measured counters usage calls
    succeeded active_ms clock shown
""".split()  # noqa: SIM905 - one name a line would take half a screen
"""Fields that nearly every state has set."""
_KINDS = get_type_hints(RunState)
_OBJECTS = [name for name in _DEFAULTS if "loopagent." in repr(_KINDS[name])]
_PLAIN = [name for name in _DEFAULTS if name not in _OBJECTS]
_USUAL_OBJECTS, _USUAL_PLAIN = (
    [name for name in names if name in _USUAL] for names in (_OBJECTS, _PLAIN)
)
_rare = itemgetter(*[name for name in _DEFAULTS if name not in _USUAL])
_RARE_DEFAULTS = _rare(_DEFAULTS)


@cache
def _writer(name: str) -> tuple[bytes, Callable[..., bytes]]:
    """How a field of objects begins, and what writes its value."""
    return b',"%b":' % name.encode(), _OWN.get(name) or _json_of(_KINDS[name])


@cache
def _json_of(kind: Any) -> Callable[..., bytes]:
    return TypeAdapter[Any](kind).serializer.to_json


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
    apart, many, marks = len(payload) >= APART_BYTES, known >= MANY_ARTIFACTS, _HERE
    if apart:
        marks += b'"apart":true,'
    if many:
        marks += b'"known":%d,' % known
    body = _dumped(state, marks, b"null" if apart else payload, without="artifacts" if many else "")
    return body, payload if apart else None


def dump_state(state: RunState) -> bytes:
    """The state as JSON, without the pinned spec and spilled results; its schema version is always in it."""
    return _dumped(state, _HERE, payload_json(state))


def _dumped(state: RunState, marks: bytes, payload: bytes, without: str = "") -> bytes:
    """All fields that are not as they are by default, behind the marks.

    An adapter of the whole state would take as long for those that are; so the rare ones are compared all at once.
    """
    values = state.__dict__
    usual = _rare(values) == _RARE_DEFAULTS
    names = _USUAL_PLAIN if usual else _PLAIN
    now = list(map(values.__getitem__, names))
    differs = map(
        ne, now, map(_DEFAULTS.__getitem__, names)
    )  # a loop in Python takes five times as long
    plain = dict(compress(zip(names, now, strict=True), differs))
    parts = [marks, to_json(plain)[1:-1]]
    for name in _USUAL_OBJECTS if usual else _OBJECTS:
        value = values[name]
        if value != _DEFAULTS[name] and name != without:
            member, dump = _writer(name)
            parts += (member, dump(value, exclude_defaults=True))
    if payload != b"null":
        parts.append(b',"payload":%b' % payload)
    parts.append(b"}")
    return b"".join(parts)


def _step_json(step: StepInProgress, *, exclude_defaults: bool) -> bytes:
    """The step without the results that are stored apart."""
    if step.spilled:
        step = changed(step, results=Outcomes(dict(step.results.since(step.spilled))))
    return _json_of(StepInProgress)(step, exclude_defaults=exclude_defaults)


def _pending_json(effects: dict[str, Effect], *, exclude_defaults: bool) -> bytes:
    """Effects; mostly all are of one kind, which is not to be looked for anew for each of them then."""
    kinds = set(map(type, effects.values()))
    write = _json_of_all(kinds.pop() if len(kinds) == 1 else Effect)
    return write(effects, exclude_defaults=exclude_defaults)


@cache
def _json_of_all(kind: Any) -> Callable[..., bytes]:
    return _json_of(dict[str, kind])


_OWN: dict[str, Callable[..., bytes]] = {"step": _step_json, "pending": _pending_json}


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


def dump_outcomes(outcomes: Outcomes) -> bytes:
    """Results that are stored apart, as JSON."""
    return _OUTCOMES.dump_json(outcomes.entries(), exclude_defaults=True)


_HERE = b'{"schema_version":%d,' % SCHEMA_VERSION
_MARKS = re.compile(rb'\{"schema_version":\d+,(?:("apart"):true,)?(?:"known":(\d+),)?')
"""How a stored state begins."""
SPILLED = b'"spilled":'
"""Stands in every stored state whose step has results that are stored apart."""
_PLACEHOLDER = (
    AgentSpec(name="pinned").model_dump_json(by_alias=True, exclude_defaults=True).encode()
)
