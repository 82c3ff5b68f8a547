"""What a scenario file may say: a task, what the model answers, what actions bring, what must come of it."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from loopagent.core.described import Described


class Part(Described, BaseModel):
    """Base of the parts of a scenario."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        populate_by_name=True,
        defer_build=True,
    )


class FakeError(Part):
    """A failure of an action."""

    message: str
    """What the model is told."""
    code: str = "failed"
    """Stable word for the kind of failure."""
    fatal: bool = False
    """Whether repeating cannot help."""


class FakeCall(Part):
    """What an action brings instead of running: a result or an error.

    Without `when` it answers one call, in the order of the list; with `when` every call that fits.
    """

    when: dict[str, Any] | None = None
    """Only calls whose parameters fit; `{}` fits every call."""
    times: int | None = Field(default=None, ge=1)
    """How many calls it answers at most, when that is another number than above."""
    result: Any = None
    """What the action returns; any JSON."""
    error: FakeError | None = None
    """How the action fails."""
    delay_ms: float = Field(default=0.0, ge=0, le=1e12)
    """Time until it answers, on the scenario's clock, which jumps."""
    optional: bool = False
    """Whether it may stay unused."""


class PersonAnswer(Part):
    """What a person decides on the first open request that fits, or what a client brings for its tool."""

    request: dict[str, Any] = {}
    """Only a request that fits, by the data of its `request.created` or `client_tool.requested` event."""
    decision: Literal["approve", "reject", "answer", "terminate"] | None = None
    """The person's decision; missing when a client tool is answered."""
    values: dict[str, Any] = {}
    """Form values by the question's id."""
    edited: Any = None
    """With `approve`: what to run, or do, instead of what is shown."""
    feedback: str = ""
    """What the person says."""
    result: Any = None
    """What a client tool brought."""
    error: str | None = None
    """Why a client tool failed."""
    delay_ms: float = Field(default=0.0, ge=0, le=1e12)
    """Time until the answer comes, on the scenario's clock, which jumps."""
    refused: str = ""
    """The code with which the answer must be refused, for example `gone`."""


class PromptCheck(Part):
    """What prompts must and must not say; without `call`, some prompt must, and none may."""

    call: int | None = Field(default=None, ge=1)
    """Which of the model calls, counted from 1 over the whole tree."""
    agent: str | None = None
    """Only prompts of this agent."""
    contains: list[str] = []
    """Texts that must be there."""
    excludes: list[str] = []
    """Texts that must not."""


class Expectations(Part):
    """What must come of the run."""

    status: Literal["completed", "failed", "cancelled", "waiting"] = "completed"
    """How the run ends, or that it waits."""
    reason: str | None = None
    """Why it ended, for example `limit`."""
    message: Any = None
    """The final message: the whole text, or an operator such as `{$contains: …}`."""
    payload: Any = None
    """The final payload as a whole."""
    payload_at: dict[str, Any] = {}
    """Parts of the final payload by their path, such as `orders[0].id`."""
    model_calls: int | None = Field(default=None, ge=0)
    """How often a planner was asked, over the whole tree."""
    calls: dict[str, int] = {}
    """How often each action was started."""
    events: list[Any] = []
    """Types of events, or objects that events fit, in this order; others may lie between."""
    no_events: list[Any] = []
    """Events that must not happen."""
    requests: list[dict[str, Any]] = []
    """What was asked of people and clients, all of it, in this order; each fits the data of its event."""
    prompts: list[PromptCheck] = []
    """What the model was told."""


class ScenarioSpec(Part):
    """A scenario file: an agent plays a task against scripted replies and fake results."""

    name: str | None = None
    """What to call it; default: the file's name."""
    description: str = ""
    """What it shows."""
    agent: str
    """The agent that gets the task."""
    message: str
    """The task."""
    payload: Any = None
    """Working data to start with; missing takes the agent's."""
    plan_mode: bool | None = None
    """Whether a person must approve a plan before anything changes; missing: as the agent says."""
    limits: dict[str, Any] = {}
    """Limits that replace the agent's."""
    replies: list[Any] = []
    """What the model answers, in order: replies, texts, or entries as in a `scripted:` file."""
    replies_file: str | None = None
    """A file of replies, beside the scenario, instead of `replies`."""
    actions: dict[str, list[FakeCall]] = {}
    """What actions bring; the first entry that fits and is left answers a call."""
    real_actions: list[str] = []
    """Actions that run for real; `*` stands for all that have no entries in `actions`."""
    answers: list[PersonAnswer] = []
    """What people and clients answer; the first that fits and is left answers a request."""
    unused_replies: bool = False
    """Whether replies may be left over at the end."""
    expect: Expectations = Expectations()
    """What must come of it."""
