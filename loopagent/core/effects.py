"""What the core asks of the world: plain data with an id, derived from turn and key (`3:act.0`).

Ids are derived, never drawn, so that a second delivery is recognised and an idempotency key for the outside
world (`{run}/{id}`) is the same after a crash.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any, Literal, TypeAlias

from loopagent.core.values import value_object


@value_object(frozen=True, slots=True)
class CallModel:
    """Ask the planner for the next reply. Its prompt is rendered from the committed state, not carried."""

    id: str
    timeout_ms: int | None = None
    kind: Literal["call_model"] = "call_model"


@value_object(frozen=True, slots=True)
class RunAction:
    """Call one action.

    `repeatable`: running it again after a crash does no harm (read-only or idempotent).
    `started`: it was journaled as started, so an unknown end must not be repeated silently.
    `batch`: key of the one approval that this call shares with the other calls of a loop; empty for its own.
    `whole`: its result is for the engine, not for the prompt, so it is not shortened. `room`: the same, up to this
    length. `resume`: answers to what an earlier attempt asked, and what goes with them.
    """

    id: str
    action: str
    params: dict[str, Any]
    timeout_ms: int
    repeatable: bool
    on_unknown: Literal["report", "ask"] = "report"
    started: bool = False
    batch: str = ""
    whole: bool = False
    room: int = 0
    resume: dict[str, Any] | None = None
    kind: Literal["run_action"] = "run_action"


@value_object(frozen=True, slots=True)
class ReadMessage:
    """Fetch the full text of a stored message of this run by its stable number."""

    id: str
    number: int
    kind: Literal["read_message"] = "read_message"


@value_object(frozen=True, slots=True)
class ReadArtifact:
    """Look into a stored text or file of this run with one of the tools that fit its kind.

    `handle` and `name` are how the model knows it, `artifact_id` is the hash it is stored under.
    """

    id: str
    handle: str
    tool: str
    params: dict[str, Any]
    artifact_id: str
    artifact_kind: str
    name: str = ""
    kind: Literal["read_artifact"] = "read_artifact"


@value_object(frozen=True, slots=True)
class KeepValue:
    """Make a value fit for the prompt: one over the cap is stored and comes back as head, tail and size.

    `always`: store it in any case, so that it gets a handle.
    """

    id: str
    value: Any
    always: bool = False
    kind: Literal["keep_value"] = "keep_value"


@value_object(frozen=True, slots=True)
class Compact:
    """Choose the oldest turns whose leaving out frees `free_bytes`, and have a model sum them up.

    `newest`: messages of this turn and of later ones stay. `before_bytes`: size of the prompt before any room was made.
    """

    id: str
    free_bytes: int
    newest: int
    reason: Literal["window", "overflow", "lifetime"]
    before_bytes: int
    kind: Literal["compact"] = "compact"


@value_object(frozen=True, slots=True)
class Verify:
    """Have the verifier of the completion policy judge a claim, whose message this is."""

    id: str
    message: str
    kind: Literal["verify"] = "verify"


@value_object(frozen=True, slots=True)
class SetTimer:
    """Wait until `due`, seconds since the epoch. After a restart the wait goes on to the same moment."""

    id: str
    due: float
    kind: Literal["set_timer"] = "set_timer"


@value_object(frozen=True, slots=True)
class StartRun:
    """Have a sub-agent do a piece of work in a run of its own, whose id follows from this effect's.

    `payload` is what it starts with, and what its changes are told from. `resume_run_id` is an earlier child run
    that asked something; `message` answers it. `active_ms` is the working time of the parent when it asked.
    `effects` is the strongest thing that it, or a run below it, can do to the world. `started`: the child exists;
    its end settles the effect, and nobody has to perform anything until then.
    """

    id: str
    agent: str
    message: str
    payload: Any = None
    template_parameters: dict[str, Any] = field(default_factory=dict[str, Any])
    resume_run_id: str | None = None
    active_ms: float = 0.0
    effects: Literal["read", "write", "external", "irreversible"] = "write"
    started: bool = False
    kind: Literal["start_run"] = "start_run"


RequestKind = Literal["approval", "question", "guard", "plan", "limit"]


@value_object(frozen=True, slots=True)
class ReadMemory:
    """Find the notes of earlier runs that are of use for a task."""

    id: str
    query: str
    kind: Literal["read_memory"] = "read_memory"


@value_object(frozen=True, slots=True)
class WriteMemory:
    """Keep a note for later runs, if the agent's rules let it."""

    id: str
    note: str
    type: str
    scope_hint: Literal["user", "agent"] | None = None
    kind: Literal["write_memory"] = "write_memory"


@value_object(frozen=True, slots=True)
class AskHuman:
    """Wait for a person. No worker performs it; it is shown, and answered from outside.

    `decisions`: what may be answered. `form`: an AgentResponseForm as JSON. `subject`: exactly what is decided
    on (for an approval `{action, params, effects, schema}`, for a plan its text, difference and what it unlocks);
    `content_hash` binds the answer to it. `expires_at`: when nobody can answer any more, seconds since the epoch; 0 for
    never. A timer beside it ends the wait then.
    """

    id: str
    ask: RequestKind
    title: str
    decisions: tuple[str, ...]
    text: str = ""
    form: dict[str, Any] | None = None
    subject: dict[str, Any] = field(default_factory=dict[str, Any])
    content_hash: str = ""
    revision: int = 1
    expires_at: float = 0.0
    holder: str = ""
    """Who takes care of it, for others to see; empty for nobody."""
    kind: Literal["ask_human"] = "ask_human"


@value_object(frozen=True, slots=True)
class CallClientTool:
    """Have the client carry out a call and wait for its answer. No worker performs it.

    `due`: when the wait is over, seconds since the epoch; known once the call has been handed over. A timer beside
    it ends the wait then.
    """

    id: str
    tool: str
    params: dict[str, Any]
    timeout_ms: int
    description: str = ""
    due: float = 0.0
    holder: str = ""
    """As for `AskHuman`."""
    kind: Literal["call_client_tool"] = "call_client_tool"


@value_object(frozen=True, slots=True)
class AwaitConversation:
    """Wait until no earlier run of the conversation is active; then the run begins with its `message`.

    Settled from outside, with what was said in the conversation by then as `context`.
    """

    id: str
    message: str
    by: str
    due: float = 0.0
    """When it is too late to begin, seconds since the epoch; 0 for never."""
    kind: Literal["await_conversation"] = "await_conversation"


@value_object(frozen=True, slots=True)
class ReadConversation:
    """Look something up in the conversation that the run continues; `summarizeRange` asks a model."""

    id: str
    tool: str
    params: dict[str, Any]
    timeout_ms: int | None = None
    kind: Literal["read_conversation"] = "read_conversation"


@value_object(frozen=True, slots=True)
class CallHook:
    """Ask the hooks of a place what they have to say; `data` is what they are told of it."""

    id: str
    point: Literal["before_run", "before_turn", "before_action", "after_run"]
    data: dict[str, Any] = field(default_factory=dict[str, Any])
    kind: Literal["call_hook"] = "call_hook"


@value_object(frozen=True, slots=True)
class CancelEffect:
    """Stop work on another effect; its outcome, should one still come, is ignored."""

    id: str
    target: str
    kind: Literal["cancel_effect"] = "cancel_effect"


Effect: TypeAlias = (
    CallModel
    | RunAction
    | ReadMessage
    | ReadArtifact
    | KeepValue
    | Compact
    | Verify
    | SetTimer
    | StartRun
    | ReadMemory
    | WriteMemory
    | AskHuman
    | CallClientTool
    | AwaitConversation
    | ReadConversation
    | CallHook
    | CancelEffect
)

EXTERNAL = (AskHuman, CallClientTool)
"""Effects that only someone outside can settle."""
_OUTSIDE = (*EXTERNAL, AwaitConversation)
WORK = frozenset({CallModel, RunAction})
"""The effects of most turns, which a worker performs in any case; for a quick look."""


def key_of(effect_id: str) -> str:
    """Where in its turn an effect belongs: `action.0` of `3:action.0`."""
    return effect_id.partition(":")[2]


def is_outside(effect: Effect) -> bool:
    """Whether an effect is settled from outside the run, so that nobody has to do anything for it now."""
    if type(effect) in WORK:
        return False
    return isinstance(effect, _OUTSIDE) or (isinstance(effect, StartRun) and effect.started)
