"""The typed public events of a run: what the core says happened, each with who decided it.

The runtime adds the envelope (`seq`, `id`, `runId`, `rootRunId`, `ts`) when a transition is committed.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from loopagent.core.described import Described
from loopagent.core.told import Table
from loopagent.core.values import value_object


DecidedBy = Literal["model", "engine", "human", "policy", "client", "trigger"]


@value_object(frozen=True, slots=True)
class Fact:
    """One public event before it has a number. `data` is the JSON of the type's model, camelCase."""

    type: str
    decided_by: DecidedBy
    data: dict[str, Any]
    turn: int | None = None
    path: str | None = None
    copy_of: str | None = None
    """Id of the event that this one is a copy of, in a run that was forked."""


def public_event(
    fact: Fact, *, seq: int, at: float, run_id: str, root_id: str, parent_id: str | None = None
) -> dict[str, Any]:
    """The envelope that clients see; `ts` is seconds since the epoch, `id` is unique for ever."""
    event: dict[str, Any] = {
        "seq": seq,
        "id": f"{root_id}.{seq}",
        "runId": run_id,
        "rootRunId": root_id,
    }
    if parent_id is not None:
        event["parentRunId"] = parent_id
    if fact.turn is not None:
        event["turn"] = fact.turn
    if fact.path is not None:
        event["path"] = fact.path
    event["ts"] = at
    event["type"] = fact.type
    event["decidedBy"] = fact.decided_by
    event["data"] = fact.data
    if fact.copy_of is not None:
        event["forkedFrom"] = fact.copy_of
    return event


FACT_TYPES: dict[str, type[FactData]] = {}
"""Type name → model of its `data`; filled as the classes below are defined."""


class FactData(Described, BaseModel):
    """Base of the `data` of public events."""

    model_config = ConfigDict(
        frozen=True, alias_generator=to_camel, populate_by_name=True, defer_build=True
    )
    fact: ClassVar[str] = ""
    ephemeral: ClassVar[bool] = False
    table: ClassVar[Table] = ()
    """Each field, its wire key, and its value when it is left out, in order."""

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        """Register the class under its public name."""
        super().__pydantic_init_subclass__(**kwargs)
        FACT_TYPES[cls.fact] = cls
        cls.table = tuple(
            (
                name,
                to_camel(name),
                None if one.is_required() else one.get_default(call_default_factory=True),
            )
            for name, one in cls.model_fields.items()
        )


class RunCreated(FactData):
    """A run was created."""

    fact = "run.created"
    agent: str
    """Name of the agent."""
    spec_hash: str
    """SHA-256 of what the definition the run is pinned to says beyond the defaults."""
    model: str
    """`provider:model` that will answer."""
    message: str
    """The task."""
    trigger: dict[str, str] | None = None
    """`{name, kind, eventId}` of the trigger that started it."""
    conversation_id: str | None = None
    """The conversation that the run belongs to."""


class RunStarted(FactData):
    """Work on the run began."""

    fact = "run.started"


class RunStateChanged(FactData):
    """The loop state that a client sees changed."""

    fact = "run.state"
    state: str
    """`running`, `interactive`, `followup`, `client_tool`, `idle` or `resumable`."""
    reason: str | None = None
    """Why the run is idle: `completed`, `failed`, `cancelled`, `limit`; why it is resumable: `paused`, or `unattended`
    in an event without a number, which a server sends when it finds that nobody works on the run."""
    ask: dict[str, Any] | None = None
    """What is asked, with the buttons to draw."""


class RunWaiting(FactData):
    """The run stopped to wait for somebody; a waiting run costs a row and nothing else."""

    fact = "run.waiting"
    requests: list[str]
    """Ids of the open requests."""


class RunMessageQueued(FactData):
    """A message waits for the next turn boundary."""

    fact = "run.message_queued"
    text: str
    delivery: str
    """`queue` or `steer`."""
    merged: bool = False
    """True when an identical message was waiting already."""


class RunTaskComplete(FactData):
    """The completion claim was accepted."""

    fact = "run.task_complete"
    message: str
    """The model's summary."""
    payload_hash: str
    """SHA-256 of the final payload as canonical JSON."""
    commands: list[dict[str, Any]] = []
    """Actionable commands to offer."""
    form: dict[str, Any] | None = None
    """Form to offer; nothing waits for its answer."""


class RunCompleted(FactData):
    """The run ended well."""

    fact = "run.completed"
    message: str = ""
    usage: dict[str, Any]


class RunFailed(FactData):
    """The run ended because it could not go on; everything done so far is kept."""

    fact = "run.failed"
    reason: str
    """Stable word: `limit`, `model`, `mistakes`, `truncated`, `stalled`, …"""
    message: str
    """What happened, for a person."""
    usage: dict[str, Any]


class RunCancelled(FactData):
    """Somebody stopped the run."""

    fact = "run.cancelled"
    reason: str
    by: str
    usage: dict[str, Any]


class RunIdle(FactData):
    """The loop stopped, for whatever reason."""

    fact = "run.idle"
    ephemeral = True
    status: str


class TurnStarted(FactData):
    """A planner call was issued."""

    fact = "turn.started"


class TurnEnded(FactData):
    """The turn is over: its reply and everything it asked for are settled."""

    fact = "turn.ended"
    outcome: str
    """`step`, `complete`, `continue`, `refused`, `truncated`, `steered`, `cancelled` or `failed`."""


class ReplyReceived(FactData):
    """A reply was accepted."""

    fact = "reply.received"
    raw: str
    """The text as it came."""
    type: str
    """Next step type, `complete` or `continue`."""
    message: str | None = None
    """Text for the person: narration, question or answer, as `type` says."""
    warnings: list[str] = []
    """What was tolerated or normalised."""
    usage: dict[str, Any] = {}


class ReplyRepaired(FactData):
    """The text of an accepted reply was no plain JSON, and was read all the same."""

    fact = "reply.repaired"
    repairs: list[str]
    """What was left out, added or read otherwise."""


class ReplyRejected(FactData):
    """A reply was refused as a whole; nothing of it took effect."""

    fact = "reply.rejected"
    raw: str
    problems: list[dict[str, str]]
    usage: dict[str, Any] = {}


class ReplyTruncated(FactData):
    """A reply was cut off; nothing of it took effect."""

    fact = "reply.truncated"
    raw: str
    usage: dict[str, Any] = {}


class ModelRetry(FactData):
    """One attempt at a model call failed; another follows."""

    fact = "model.retry"
    attempt: int
    kind: str
    message: str
    delay_ms: int
    model: str = ""
    next_model: str = ""
    """Which model is asked next; another one than `model` when a fallback takes over."""


class ActionStarted(FactData):
    """A call was handed to its action."""

    fact = "action.started"
    call_id: str
    action: str
    params: dict[str, Any]
    skill: str | None = None
    """The skill that brought the action; absent when the agent has it by itself."""


class ActionCompleted(FactData):
    """A call ended, well or badly."""

    fact = "action.completed"
    call_id: str
    action: str
    ok: bool
    result: Any = None
    error: dict[str, Any] | None = None
    duration_ms: float = 0.0
    attempts: int = 1
    skill: str | None = None
    started_early_ms: float | None = None
    """How long before the reply was complete it had begun; that much of it was not waited for."""


class ActionRejected(FactData):
    """A call was not made: refused by a person, by policy, by a limit or by the circuit breaker."""

    fact = "action.rejected"
    call_id: str
    action: str
    reason: str
    code: str
    skill: str | None = None


class RequestCreated(FactData):
    """Somebody is asked to decide or answer; `primary`, `secondary`: the buttons, `{decision, label}`."""

    fact = "request.created"
    request_id: str
    kind: str
    title: str
    text: str = ""
    form: dict[str, Any] | None = None
    subject: dict[str, Any] = {}
    decisions: list[str] = []
    agents: list[str] = []
    """Who asks: the agents from the root run to the one that asks."""
    revision: int = 1
    content_hash: str = ""
    primary: dict[str, str] = {}
    secondary: dict[str, str] = {}
    expires_at: float | None = None
    """When nobody can answer any more, seconds since the epoch."""


class RequestResolved(FactData):
    """A request was answered."""

    fact = "request.resolved"
    request_id: str
    decision: str
    by: str
    feedback: str = ""
    values: dict[str, Any] = {}
    edited: bool = False


class RequestCancelled(FactData):
    """A request was closed because the run no longer needs it."""

    fact = "request.cancelled"
    request_id: str
    reason: str


class PayloadChanged(FactData):
    """The payload changed, or a change of it was refused."""

    fact = "payload.changed"
    patch: list[dict[str, Any]]
    """RFC 6902 operations against the payload before; empty when all was refused."""
    warnings: list[str] = []
    refused: list[str] = []
    """What was not written, and why: not permitted, no such place, changed by another sub-agent as well."""


class ScratchpadChanged(FactData):
    """The model's private notes changed."""

    fact = "scratchpad.changed"
    notes: str
    tasks: list[dict[str, Any]]


class ArtifactCreated(FactData):
    """A result was too long for the prompt and is kept in full under a handle."""

    fact = "artifact.created"
    handle: str
    artifact_id: str
    call_id: str
    chars: int
    """Length as text; of an image or file, its size in bytes."""
    media_type: str | None = None
    """Of an image or file."""
    kind: str | None = None
    """Which tools fit it."""
    name: str | None = None
    """Its name, if it has one."""
    version: int | None = None
    """Which one of that name."""


class CommandIssued(FactData):
    """The client is told to do something, or may offer it to the person."""

    fact = "command.issued"
    command: dict[str, Any]
    automatic: bool


class ActionProgress(FactData):
    """An action says how far it is."""

    fact = "action.progress"
    ephemeral = True
    call_id: str
    text: str
