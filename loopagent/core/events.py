"""What may happen to a run: facts given to the core, past tense, logged.

Time enters only as `at` (seconds since the epoch), so nothing in the core reads a clock.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from loopagent.core.outcome import Outcome
from loopagent.core.plan_state import Mode
from loopagent.core.values import value_object


Delivery = Literal["queue", "steer"]


@dataclass(frozen=True, slots=True)
class Started:
    """The run was created with this task."""

    message: str
    at: float
    by: str = "client"
    context: str = ""
    """What the run is shown before its task: what was said in its conversation before, and for a child, its parent's
    conversation as far as it may see it."""
    queued: bool = False
    """It begins only when the runs of its conversation before it have ended."""
    payload: Any = None
    """The working data that the run begins with, for the log; the state has it already."""
    artifacts: tuple[dict[str, Any], ...] = ()
    """Files and texts it is given: `{artifactId, name, mediaType, bytes}`."""
    carried: str = ""
    """What the run before it in its conversation had looked up."""
    spent: tuple[tuple[int, int, float], ...] = ()
    """What each run above it had spent when it began, root first: turns, tokens, dollars."""
    remembered: tuple[dict[str, Any], ...] = ()
    """Approvals that hold for its conversation, as the run before it had them."""
    kind: Literal["started"] = "started"


@value_object(frozen=True, slots=True)
class Settled:
    """An effect ended, well or badly. An unknown or already settled id changes nothing."""

    effect_id: str
    outcome: Outcome
    at: float
    kind: Literal["settled"] = "settled"


@dataclass(frozen=True, slots=True)
class Reported:
    """Something worth recording happened while effects were being performed.

    `started`: these calls are about to run and must not silently run twice (`data["effects"]`).
    `model_retry`: one attempt at a model call failed and another follows.
    `spent`: what each run above has spent without this one (`data["spent"]`, root first).
    `serves`: this child's end now settles another effect of its parent (`data["effect"]`).
    `again`: this child, which failed, goes on for another effect of its parent (`data["effect"]`, and as for `above`).
    `told`: other runs have heard how this one stands (`data["runs"]`); counts after the end as well.
    `discarded`: calls that began early and were not asked for in the end (`data["calls"]`).
    `asks`: a call that goes on meanwhile has a question for a person (`data["effect"]`, `data["asks"]`).
    `above`: how the runs above stand: whether they are paused, and what each may spend (`data["limits"]`, root first).
    """

    what: Literal[
        "started", "model_retry", "spent", "serves", "again", "told", "discarded", "above", "asks"
    ]
    data: dict[str, Any]
    at: float
    kind: Literal["reported"] = "reported"


@dataclass(frozen=True, slots=True)
class MessagePosted:
    """A person or client said something while the run was going on.

    `partial` is the visible text of the reply that was arriving, kept when a steering message aborts it.
    """

    text: str
    at: float
    delivery: Delivery = "queue"
    by: str = "client"
    partial: str = ""
    kind: Literal["message_posted"] = "message_posted"


@dataclass(frozen=True, slots=True)
class CancelRequested:
    """Somebody wants the run to stop."""

    at: float
    reason: str = ""
    by: str = "client"
    kind: Literal["cancel_requested"] = "cancel_requested"


@dataclass(frozen=True, slots=True)
class ModeChanged:
    """Somebody switched the run between planning and acting."""

    mode: Mode
    at: float
    by: str = "client"
    kind: Literal["mode_changed"] = "mode_changed"


@dataclass(frozen=True, slots=True)
class PauseRequested:
    """Somebody wants the run to stand still until it is resumed."""

    at: float
    reason: str = ""
    by: str = "client"
    kind: Literal["pause_requested"] = "pause_requested"


@dataclass(frozen=True, slots=True)
class ResumeRequested:
    """Somebody wants a paused run to go on, or one that a failing model ended to try again."""

    at: float
    by: str = "client"
    kind: Literal["resume_requested"] = "resume_requested"


@dataclass(frozen=True, slots=True)
class LimitsRaised:
    """Somebody lets the run use more; one that ended at a limit goes on. `limits` goes by the fields of `Limits`."""

    limits: dict[str, Any]
    at: float
    by: str = "client"
    kind: Literal["limits_raised"] = "limits_raised"


@dataclass(frozen=True, slots=True)
class RequestHeld:
    """Somebody takes care of an open request from now on; an empty `holder` is nobody."""

    effect_id: str
    holder: str
    at: float
    by: str = "client"
    kind: Literal["request_held"] = "request_held"


@dataclass(frozen=True, slots=True)
class Forked:
    """What happened so far happened to another run, up to the beginning of `turn`; this run goes its own way now."""

    run_id: str
    turn: int
    at: float
    by: str = "client"
    message: str = ""
    """What is said to this run before the turn; empty for nothing."""
    payload: Any = None
    """Other working data, if `new_payload`."""
    new_payload: bool = False
    limits: dict[str, Any] = field(default_factory=dict[str, Any])
    """Limits that it has instead, by the fields of `Limits`."""
    kind: Literal["forked"] = "forked"


@dataclass(frozen=True, slots=True)
class FilesGiven:
    """Somebody gave the run files: `{artifactId, name, mediaType, bytes}` of each."""

    files: tuple[dict[str, Any], ...]
    at: float
    by: str = "client"
    kind: Literal["files_given"] = "files_given"


@dataclass(frozen=True, slots=True)
class ApprovalRevoked:
    """Somebody wants to be asked again about a call that was approved in advance."""

    approval: str
    at: float
    by: str = "client"
    kind: Literal["approval_revoked"] = "approval_revoked"


Event: TypeAlias = (
    Started
    | Settled
    | Reported
    | MessagePosted
    | CancelRequested
    | ModeChanged
    | PauseRequested
    | ResumeRequested
    | LimitsRaised
    | Forked
    | FilesGiven
    | ApprovalRevoked
    | RequestHeld
)


@dataclass(frozen=True, slots=True)
class Answer:
    """A person's answer to a request, the value of an `AskHuman` outcome once stored as JSON."""

    decision: Literal["approve", "reject", "answer", "terminate"]
    values: dict[str, Any] = field(default_factory=dict[str, Any])
    edited: Any = None
    feedback: str = ""
    by: str = "client"
    remember: Literal["", "run", "session"] = ""
    """Whether the very same call is to need no approval any more, in this run or in its conversation."""
