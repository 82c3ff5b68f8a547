"""The state of a run: JSON values and names only, so saving it is one call and any process can go on.

`schema_version` history, newest last:

1. First version.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pydantic import TypeAdapter

from loopagent.core.agent_spec import AgentSpec
from loopagent.core.breaker import BreakerState
from loopagent.core.effects import (
    EXTERNAL,
    AskHuman,
    CallClientTool,
    CallModel,
    Effect,
    SetTimer,
)
from loopagent.core.events import Delivery
from loopagent.core.outcome import Outcome
from loopagent.core.outcomes import Outcomes, together
from loopagent.core.plan_state import PlanState
from loopagent.core.scratchpad import Scratchpad


SCHEMA_VERSION = 1
Status = Literal["running", "completed", "failed", "cancelled"]
MessageKind = Literal["task", "person", "reply", "results", "feedback", "partial", "plan", "skill"]
PINNED: frozenset[MessageKind] = frozenset({"task", "plan", "skill"})
"""Kinds of messages that stay in every later prompt, however much of the transcript is compacted."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message of the transcript. `number` is stable for ever; messages are appended, never changed."""

    number: int
    role: Literal["user", "assistant"]
    kind: MessageKind
    text: str
    turn: int


@dataclass(frozen=True, slots=True)
class Mail:
    """A message that waits for the next turn boundary."""

    text: str
    delivery: Delivery


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens and money spent so far, failed attempts included."""

    model_calls: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    cost_usd: float | None = None

    def plus(self, other: dict[str, Any]) -> Usage:
        """This plus one attempt's usage (`ModelReply.usage` as JSON)."""
        cost = other.get("cost_usd")
        return Usage(
            model_calls=self.model_calls + 1,
            input_tokens=self.input_tokens + int(other.get("input_tokens") or 0),
            cached_tokens=self.cached_tokens + int(other.get("cached_tokens") or 0),
            output_tokens=self.output_tokens + int(other.get("output_tokens") or 0),
            reasoning_tokens=self.reasoning_tokens + int(other.get("reasoning_tokens") or 0),
            cost_usd=self.cost_usd if cost is None else (self.cost_usd or 0.0) + float(cost),
        )

    def together(self, other: Usage) -> Usage:
        """The sum of two."""
        known = [one for one in (self.cost_usd, other.cost_usd) if one is not None]
        return Usage(
            self.model_calls + other.model_calls,
            self.input_tokens + other.input_tokens,
            self.cached_tokens + other.cached_tokens,
            self.output_tokens + other.output_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
            sum(known) if known else None,
        )

    def public(self) -> dict[str, Any]:
        """The same as camelCase JSON."""
        return {
            "modelCalls": self.model_calls,
            "inputTokens": self.input_tokens,
            "cachedTokens": self.cached_tokens,
            "outputTokens": self.output_tokens,
            "reasoningTokens": self.reasoning_tokens,
            "costUsd": self.cost_usd,
        }


@dataclass(frozen=True, slots=True)
class Counters:
    """Things in a row or in all that guards look at."""

    refusals: int = 0
    refusals_in_a_row: int = 0
    truncations: int = 0
    mistakes: int = 0
    nudges: int = 0
    claims: int = 0
    reads_first: int = 0
    repeats: int = 0
    last_step: str = ""
    """Hash of the last next step, to see repetition."""


@dataclass(frozen=True, slots=True)
class StepInProgress:
    """The next step being carried out: what was asked, and what is known by key."""

    request: dict[str, Any]
    """The canonical nextStep, names resolved and parameters filled in."""
    message: str = ""
    """The message that came with it."""
    form: dict[str, Any] | None = None
    commands: tuple[dict[str, Any], ...] = ()
    """Buttons that came with the message."""
    results: Outcomes = field(default_factory=Outcomes)
    spilled: int = 0
    """How many of the results are stored apart, so that saving a long loop costs no more than its last part."""
    decisions: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    """Answers to approvals by the key of the call they allow."""
    began_at: float = 0.0
    """`at` of the event that opened the step, seconds since the epoch."""
    began_ms: float = 0.0
    """Working time of the run when the step was opened."""
    claimed: bool = False
    """The same reply claimed completion; the model is told that it was not taken."""


@dataclass(frozen=True, slots=True)
class Artifact:
    """A stored text that the prompt knows by its handle."""

    handle: str
    artifact_id: str
    chars: int
    """Length as text; of an image or file, its size in bytes."""
    media_type: str = ""
    """Of an image or file; empty for a text."""


@dataclass(frozen=True, slots=True)
class ActiveSkill:
    """A skill that is active: its instructions are in the transcript, its actions may be called."""

    name: str
    turn: int
    by: Literal["user", "model"]
    message: int
    """Number of the message that holds its instructions; it stays in the context for the whole run."""


@dataclass(frozen=True, slots=True)
class Result:
    """How an ended run ended."""

    reason: str
    """`completed`, `cancelled`, or why it failed: `limit`, `model`, `mistakes`, `truncated`, `stalled`."""
    message: str = ""
    commands: tuple[dict[str, Any], ...] = ()
    form: dict[str, Any] | None = None
    detail: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass
class RunState:
    """Everything the engine knows about a run except its transcript.

    Treated as a value: `advance` works on its own shallow copy and replaces containers instead of changing them.
    """

    id: str
    spec: AgentSpec
    """Pinned definition; stored once by its hash, not with every snapshot."""
    model: str
    """`provider:model` that answers, decided at creation."""
    schema_version: int = SCHEMA_VERSION
    root_id: str = ""
    parent_id: str | None = None
    client: str = ""
    """Fingerprint of the client that alone may answer calls of client tools; empty: whoever may use the API."""
    status: Status = "running"
    turn: int = 0
    turn_open: bool = False
    payload: Any = None
    scratchpad: Scratchpad = field(default_factory=Scratchpad)
    plan: PlanState = field(default_factory=PlanState)
    pending: dict[str, Effect] = field(default_factory=dict[str, Effect])
    step: StepInProgress | None = None
    mail: tuple[Mail, ...] = ()
    notices: tuple[str, ...] = ()
    """What the engine tells the model at the next turn boundary."""
    messages: int = 0
    """How many messages the transcript holds."""
    counters: Counters = field(default_factory=Counters)
    usage: Usage = field(default_factory=Usage)
    breaker: BreakerState = field(default_factory=BreakerState)
    calls: dict[str, int] = field(default_factory=dict[str, int])
    """Calls dispatched, by action."""
    succeeded: dict[str, int] = field(default_factory=dict[str, int])
    """Calls that succeeded, by action."""
    artifacts: tuple[Artifact, ...] = ()
    skills: tuple[ActiveSkill, ...] = ()
    """Active skills, in the order of their activation."""
    active_ms: float = 0.0
    """Working time so far; waiting for people does not count."""
    clock: float = 0.0
    """`at` of the last event, seconds since the epoch."""
    handler: Any = None
    """The open step as an object, made from its request when it is needed; not stored."""
    shown: str = ""
    """Loop state last published."""
    shown_asks: tuple[str, ...] = ()
    """Ids of the requests that were open then."""
    result: Result | None = None

    def fork(self) -> RunState:
        """A shallow copy that may be assigned to; much cheaper than `copy.copy`, and made once a transition."""
        made = object.__new__(RunState)
        made.__dict__.update(self.__dict__)
        return made

    @property
    def ended(self) -> bool:
        """Whether nothing can happen to the run any more."""
        return self.status != "running"

    @property
    def asks(self) -> list[AskHuman]:
        """Open requests to people."""
        return [one for one in self.pending.values() if isinstance(one, AskHuman)]

    @property
    def client_calls(self) -> list[CallClientTool]:
        """Open calls to the client."""
        return [one for one in self.pending.values() if isinstance(one, CallClientTool)]

    @property
    def waiting(self) -> bool:
        """Whether everything that is pending can only be settled from outside, or by time beside that."""
        outside = False
        for one in self.pending.values():
            if isinstance(one, EXTERNAL):
                outside = True
            elif not isinstance(one, SetTimer):
                return False
        return outside

    @property
    def calling(self) -> CallModel | None:
        """The planner call under way, if there is one."""
        return next((one for one in self.pending.values() if isinstance(one, CallModel)), None)


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
    state.spec = spec
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
