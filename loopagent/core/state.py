"""The state of a run: JSON values and names only, so saving it is one call and any process can go on.

`schema_version` history, newest last:

1. First version.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

from loopagent.core.agent_spec import AgentSpec
from loopagent.core.approval_state import Refused, Remembered
from loopagent.core.breaker import BreakerState
from loopagent.core.context import View
from loopagent.core.control_state import ForkedFrom, Paused
from loopagent.core.effects import (
    EXTERNAL,
    WORK,
    AskHuman,
    CallClientTool,
    CallModel,
    Effect,
    SetTimer,
    is_outside,
)
from loopagent.core.events import Delivery
from loopagent.core.origin import Origin
from loopagent.core.outcome import Outcome
from loopagent.core.outcomes import Outcomes
from loopagent.core.plan_state import PlanState
from loopagent.core.question_state import OpenCall
from loopagent.core.scratchpad import Scratchpad
from loopagent.core.spending import Ancestor, AskedChild, Spent, Usage
from loopagent.core.values import value_object


SCHEMA_VERSION = 1
Status = Literal["running", "completed", "failed", "cancelled"]
MessageKind = Literal[
    "task",
    "person",
    "reply",
    "results",
    "feedback",
    "partial",
    "plan",
    "skill",
    "context",
    "summary",
    "memory",
]
PINNED: frozenset[MessageKind] = frozenset({"task", "plan", "skill", "memory"})
"""Kinds of messages that stay in every later prompt, however much of the transcript is compacted."""


@value_object(frozen=True, slots=True)
class Message:
    """One message of the transcript. `number` is stable for ever; messages are appended, never changed."""

    number: int
    role: Literal["user", "assistant"]
    kind: MessageKind
    text: str
    turn: int


@value_object(frozen=True, slots=True)
class Mail:
    """A message that waits for the next turn boundary."""

    text: str
    delivery: Delivery


@value_object(frozen=True, slots=False)  # `changed` copies it
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
    trouble: str = ""
    """What went wrong last, in a few words: why a run is stuck."""


@value_object(frozen=True, slots=False)  # `changed` copies it
class StepInProgress:
    """The next step being carried out: what was asked, and what is known by key."""

    request: dict[str, Any]
    """The canonical nextStep, names resolved and parameters filled in."""
    message: str = ""
    """The message that came with it."""
    form: dict[str, Any] | None = None
    commands: tuple[dict[str, Any], ...] = ()
    """Buttons that came with the message."""
    began_at: float = 0.0
    """`at` of the event that opened the step, seconds since the epoch."""
    began_ms: float = 0.0
    """Working time of the run when the step was opened."""
    claimed: bool = False
    """The same reply claimed completion; the model is told that it was not taken."""
    results: Outcomes = field(default_factory=Outcomes)
    spilled: int = 0
    """How many of the results are stored apart, so that saving a long loop costs no more than its last part."""
    decisions: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Answers to approvals by the key of the call they allow."""
    hooked: dict[str, dict[str, Any]] = field(default_factory=dict)
    """What hooks said before calls that are not made yet, by the key of the call."""
    notes: tuple[tuple[str, str], ...] = ()
    """What hooks add for the model: the key of a call, and a text."""


@dataclass(frozen=True, slots=True)
class Artifact:
    """A stored text that the prompt knows by its handle."""

    handle: str
    artifact_id: str
    chars: int
    """Length as text; of an image or file, its size in bytes."""
    media_type: str = ""
    """Of an image or file; empty for a text."""
    kind: str = "text"
    """Which tools fit it, by `artifact_kinds.TOOLS`."""
    name: str = ""
    """File name, or what else it is called; several of one name are versions."""
    version: int = 1
    """Which version of its name."""


@dataclass(frozen=True, slots=True)
class ActiveSkill:
    """A skill that is active: its instructions are in the transcript, its actions may be called."""

    name: str
    turn: int
    by: Literal["user", "model"]
    message: int
    """Number of the message that holds its instructions; it stays in the context for the whole run."""


@dataclass(frozen=True, slots=True)
class InlineCall:
    """An operation that runs beside the step, and how it ended when that is known."""

    effect: Effect
    outcome: Outcome | None = None


@dataclass(frozen=True, slots=True)
class Claim:
    """That the task is done; taken when nothing is pending any more."""

    message: str
    commands: tuple[dict[str, Any], ...] = ()
    form: dict[str, Any] | None = None
    by_step: bool = False
    """The end comes with a step whose reply asked for that."""


@dataclass(frozen=True, slots=True)
class Result:
    """How an ended run ended."""

    reason: str
    """`completed`, `cancelled`, or why it failed: `limit`, `model`, `mistakes`, `truncated`, `stalled`."""
    message: str = ""
    commands: tuple[dict[str, Any], ...] = ()
    form: dict[str, Any] | None = None
    detail: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Farewell:
    """How the run ends once the hooks after it have heard of that."""

    status: Literal["completed", "failed", "cancelled"]
    result: Result
    by: str = "engine"


@dataclass
class RunState:
    """Everything the engine knows about a run except its transcript.

    Treated as a value: `advance` works on its own shallow copy and replaces containers instead of changing them. States
    share what is empty (`cache`), so that it is seen at once that nothing is to be stored of it.
    """

    id: str
    spec: AgentSpec
    """Pinned definition; stored once by its hash, not with every snapshot."""
    model: str
    """`provider:model` that answers, decided at creation."""
    schema_version: int = SCHEMA_VERSION
    root_id: str = ""
    parent_id: str | None = None
    user: str = ""
    """Who the run is for; what is kept for one user is never shown to another. Empty: nobody in particular."""
    tenant: str = ""
    """The organisation of that user; users of different ones are never the same."""
    conversation: str = ""
    """Id of the user's conversation that the run continues; empty for none, and for the runs of sub-agents."""
    origin: Origin | None = None
    """The trigger that started the run, and its event; None when somebody did."""
    notify: tuple[str, ...] = ()
    """Who is told of its requests and its end; see `notification_port`."""
    trace: str = ""
    """Where the trace of the root run stood when it was created, as W3C `traceparent`; empty when none was recorded."""
    client: str = ""
    """Fingerprint of the client that alone may answer calls of client tools; empty: whoever may use the API."""
    status: Status = "running"
    turn: int = 0
    turn_open: bool = False
    payload: Any = None
    scratchpad: Scratchpad = field(default_factory=cache(Scratchpad))
    plan: PlanState = field(default_factory=cache(PlanState))
    pending: dict[str, Effect] = field(default_factory=dict[str, Effect])
    step: StepInProgress | None = None
    inline: tuple[InlineCall, ...] = ()
    """Operations of the last reply that run beside its step, as it asked for them, until the model hears of them."""
    claim: Claim | None = None
    """The completion that is about to be taken, or that the verifier is asked about."""
    mail: tuple[Mail, ...] = ()
    farewell: Farewell | None = None
    """The end that is about to come; nothing else happens any more."""
    hooked_turn: int = 0
    """The turn that the hooks before it have let begin."""
    replied_at: float = 0.0
    """When the model replied last, seconds since the epoch."""
    held_change: str = ""
    """Hash of the payload that the last reply led to, where that looks like a loss and waits to be confirmed."""
    notices: tuple[str, ...] = ()
    """What the engine tells the model at the next turn boundary."""
    messages: int = 0
    """How many messages the transcript holds."""
    view: View = field(default_factory=cache(View))
    """Which messages the model is shown, and how."""
    shown_bytes: int = 0
    """Size of the last prompt and what was said since, in bytes, about."""
    measured: tuple[int, int] = (0, 0)
    """Size of the last prompt in bytes, and in tokens as the provider counted them."""
    counters: Counters = field(default_factory=cache(Counters))
    usage: Usage = field(default_factory=cache(Usage))
    breaker: BreakerState = field(default_factory=cache(BreakerState))
    calls: dict[str, int] = field(default_factory=dict[str, int])
    """Calls dispatched, by action."""
    succeeded: dict[str, int] = field(default_factory=dict[str, int])
    """Calls that succeeded, by action."""
    ancestors: tuple[Ancestor, ...] = ()
    """The runs above this one, root first."""
    ancestors_before: tuple[Ancestor, ...] = ()
    """The same before any of them was allowed more; empty where none was."""
    serves: str = ""
    """Id of the parent's effect that this run's end settles."""
    asks_parent: bool = False
    """Whether questions go to the parent instead of a person."""
    told_ask: str = ""
    """Id of the question that the parent was last told of."""
    unheard: tuple[str, ...] = ()
    """Runs that must hear how this one stands: its parent that it ended or asks, its children that they are to stop."""
    asked: dict[str, AskedChild] = field(default_factory=dict[str, AskedChild])
    """Child runs that asked something and wait, by id."""
    agent_calls: dict[str, int] = field(default_factory=dict[str, int])
    """Pieces of work given, by sub-agent."""
    below: Spent = field(default_factory=cache(Spent))
    """What the children that have ended have spent, with theirs; their tokens and cost are in `usage` as well."""
    artifacts: tuple[Artifact, ...] = ()
    skills: tuple[ActiveSkill, ...] = ()
    """Active skills, in the order of their activation."""
    active_ms: float = 0.0
    """Working time so far; waiting for people does not count."""
    clock: float = 0.0
    """`at` of the last event, seconds since the epoch."""
    handler: Any = None
    """The open step as an object, made from its request when it is needed; not stored."""
    rendered: tuple[dict[str, Any], bytes] | None = field(default=None, compare=False, repr=False)
    """A payload and its JSON, of use while it is this run's; not stored."""
    shown: str = ""
    """Loop state last published."""
    shown_asks: tuple[str, ...] = ()
    """Ids of the requests that were open then."""
    result: Result | None = None
    paused: Paused | None = None
    """That nothing new is begun until somebody resumes the run; what is under way is finished and kept."""
    raised: dict[str, Any] = field(default_factory=dict[str, Any])
    """Limits that were raised, by the fields of `Limits`; `spec` has them already, its stored form has not."""
    unraised: dict[str, Any] = field(default_factory=dict[str, Any])
    """What they were before."""
    forked_from: ForkedFrom | None = None
    """Where a forked run comes from."""
    remembered: tuple[Remembered, ...] = ()
    """Calls that need no approval any more, because a person said so."""
    asking: dict[str, OpenCall] = field(default_factory=dict[str, OpenCall])
    """Calls that wait for the answers to their questions, by effect id."""
    made: tuple[tuple[int, str], ...] = ()
    """What took effect last, each with the number of the message that told of it."""
    made_before: int = 0
    """How much did before those."""
    refused: dict[str, Refused] = field(default_factory=dict[str, Refused])
    """What was refused last, by action, to show what is different when it is asked for again."""

    def fork(self) -> RunState:
        """A shallow copy that may be assigned to; much cheaper than `copy.copy`, and made once a transition."""
        made = object.__new__(RunState)
        made.__dict__ = self.__dict__.copy()
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
        """Whether everything that is pending can only be settled from outside, or by clocks beside that."""
        found = False
        for one in self.pending.values():
            if type(one) in WORK:
                return False
            if isinstance(one, EXTERNAL):
                found = True
            elif not isinstance(one, SetTimer):
                return False
        return found

    @property
    def on_hold(self) -> bool:
        """The same, where what children do counts as outside too; no working time passes then."""
        found = False
        for one in self.pending.values():
            if type(one) in WORK:
                return False
            if is_outside(one):
                found = True
            elif not isinstance(one, SetTimer):
                return False
        return found

    @property
    def resting(self) -> bool:
        """Whether nobody has to do anything for the run now, because people or children do, or because it is paused."""
        return self.paused is not None or (
            bool(self.pending) and all(is_outside(one) for one in self.pending.values())
        )

    @property
    def due(self) -> float | None:
        """When somebody has to do something for the run, in seconds since the epoch: 0 is at once, None never."""
        if self.status != "running" or self.paused is not None:
            return None
        timers: list[float] = []
        for one in self.pending.values():
            if type(one) in WORK:
                return 0.0
            if isinstance(one, SetTimer):
                timers.append(one.due)
            elif not is_outside(one):
                return 0.0
        if timers:
            return min(timers)
        return None if self.pending else 0.0

    @property
    def calling(self) -> CallModel | None:
        """The planner call under way, if there is one."""
        return next((one for one in self.pending.values() if isinstance(one, CallModel)), None)
