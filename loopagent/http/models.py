"""What goes over the wire, in camelCase."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, JsonValue

from loopagent.core.client_tool_spec import ClientToolSpec
from loopagent.core.loop_view import Ask, Button, LoopState
from loopagent.http.attachment_models import NewAttachment
from loopagent.http.body import Body, View
from loopagent.http.models_control import ForkView, LimitsView, PauseView


class NewRun(Body):
    """A run to start."""

    agent: str = Field(min_length=1, max_length=200)
    """Name of the agent."""
    message: str = Field(min_length=1)
    """The task."""
    payload: JsonValue = None
    """Working data to start with; null takes the agent's."""
    model: str | None = Field(default=None, max_length=500)
    """`provider:model`, when the agent allows another than its own."""
    limits: dict[str, JsonValue] | None = None
    """Limits that replace the agent's."""
    client_tools: list[ClientToolSpec] | None = None
    """Tools that this client carries out; one replaces the agent's of the same name."""
    plan_mode: bool | None = None
    """True: a person must approve a plan before anything changes. Null: as the agent says."""
    conversation_id: str | None = Field(default=None, max_length=200)
    """The user's conversation to continue, or to begin."""
    user: str = Field(default="", max_length=200)
    """Who the run is for; users never see anything of each other."""
    tenant: str = Field(default="", max_length=200)
    """The organisation of that user; users of different ones are never the same."""
    on_busy: Literal["reject", "enqueue", "interrupt"] = "reject"
    """When another run of the conversation has not ended: 409, wait for its end, or cancel it."""
    attachments: list[NewAttachment] = Field(default=[], max_length=1_000)
    """Files that the model can look into."""
    metadata: dict[str, JsonValue] | None = None
    """Anything to find the run by; never shown to a model."""
    webhook: str | None = Field(default=None, max_length=2_000)
    """Address that gets a signed request when a request opens or the run ends."""


class NewMessage(Body):
    """Something to say to a run."""

    text: str = Field(min_length=1)
    delivery: Literal["queue", "steer"] = "queue"
    """`queue` waits for a turn boundary; `steer` goes first and aborts the model call under way."""


class NewMode(Body):
    """What a run is switched to."""

    mode: Literal["plan", "act"]
    """`plan`: only reading happens until a person approves a plan."""


class CancelRun(Body):
    """Why a run is stopped."""

    reason: str = Field(default="", max_length=2_000)


class Decision(Body):
    """An answer to a request. The first answer wins."""

    decision: Literal["approve", "reject", "answer", "terminate"]
    values: dict[str, JsonValue] | None = None
    """Form values by question id."""
    edited: JsonValue = None
    """With `approve`: parameters to run, or the whole text of a plan, instead of what was shown."""
    feedback: str = Field(default="", max_length=100_000)
    """Text for the model."""
    revision: int | None = None
    """Revision that was seen; a stale one is refused with 409."""
    content_hash: str | None = None
    """Content hash that was seen; a stale one is refused with 409."""
    remember: Literal["run", "session"] | None = None
    """With `approve`: the very same call needs no approval any more in this run, or in its conversation, the `session`;
    as far as `subject.remember` of the request offers it."""


class Medium(Body):
    """An image or a file; kept as an artifact, never shown to the model as text."""

    media_type: str = Field(max_length=255)
    """Like `image/png`, without parameters."""
    data: str
    """The bytes in base64."""
    name: str | None = Field(default=None, max_length=200)


class ClientToolAnswer(Body):
    """What a client brings back for a call. The first answer counts."""

    success: bool
    """Whether the client could carry out the call."""
    result: JsonValue = None
    """Must satisfy the tool's result schema, when it has one."""
    error: str = Field(default="", max_length=100_000)
    """Why not, for the model."""
    media: list[Medium] = []


class ClientCall(View):
    """An open call of a client tool, as its `client_tool.requested` event told of it."""

    call_id: str
    request_id: str
    kind: Literal["client_tool"]
    title: str
    tool: str
    params: dict[str, JsonValue]
    text: str = ""
    result_schema: dict[str, JsonValue] | None = None
    """What a result must satisfy; null takes any JSON."""
    timeout_ms: int
    expires_at: float
    """Seconds since the epoch; a later answer is refused."""
    agents: list[str] = []
    """Who asks: the agents from the root run to the one that asks."""
    primary: Button
    secondary: Button


class ClientCalls(View):
    """The open calls of a run."""

    calls: list[ClientCall]


class UsageView(View):
    """Tokens and money spent so far."""

    model_calls: int
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    reasoning_tokens: int
    cost_usd: float | None = None


class PlanView(View):
    """The plan of a run."""

    revision: int
    text: str
    """As proposed, or as a person edited and approved it. Markdown."""
    sha256: str
    """SHA-256 of the text as UTF-8."""
    status: Literal["draft", "approved", "rejected"]
    edited: bool
    """Whether a person changed it."""
    effects: list[str]
    """What the model says it will change."""
    unlocked: list[str]
    """Actions that its approval allows."""
    decided_by: str | None = None
    decided_at: float | None = None
    """Seconds since the epoch."""


class ActiveSkillView(View):
    """A skill that is active in a run."""

    name: str
    turn: int
    """When it became active; 0 is before the first turn."""
    activated_by: Literal["user", "model"]


class RunDetail(View):
    """A run as it is now."""

    id: str
    root_run_id: str
    parent_run_id: str | None = None
    """The run that gave the work; null for one that was started from outside."""
    children: list[str] = []
    """Child runs that it waits for."""
    agent: str
    user: str | None = None
    tenant: str | None = None
    conversation_id: str | None = None
    """The user's conversation that the run continues."""
    model: str
    status: Literal["running", "completed", "failed", "cancelled"]
    state: LoopState
    turn: int
    payload: JsonValue = None
    message: str | None = None
    """The model's last word, once the run has ended."""
    reason: str | None = None
    """`completed`, `cancelled`, or why the run failed."""
    paused: PauseView | None = None
    forked_from: ForkView | None = None
    limits: LimitsView
    """What it may spend, with the runs below it."""
    commands: list[dict[str, JsonValue]] = []
    form: dict[str, JsonValue] | None = None
    """Form that came with the last word; nothing waits for its answer."""
    mode: Literal["plan", "act"]
    """`plan`: only reading happens until a person approves a plan."""
    plan: PlanView | None = None
    skills: list[ActiveSkillView] = []
    requests: list[Ask] = []
    client_calls: list[ClientCall] = []
    """Calls that the client has to answer."""
    usage: UsageView
    active_seconds: float
    """Working time; waiting for people does not count."""
    seq: int
    """Number of the last event."""


class RunBrief(View):
    """What lists and trees say of a run."""

    id: str
    agent: str
    status: str
    state: str
    turn: int
    title: str
    created_at: float
    """Seconds since the epoch."""
    updated_at: float


class RunSummary(RunBrief):
    """A run in a list."""

    metadata: dict[str, JsonValue] = {}
    parent_id: str | None = None
    """The run that gave the work."""


class RunNode(RunBrief):
    """A run in its tree."""

    children: list[RunNode] = []
    """Runs that it gave work to, in the order they were made."""


class RunPage(View):
    """A page of runs, newest first."""

    runs: list[RunSummary]
    next_cursor: str | None = None


class RequestDetail(View):
    """A request to a person or to a client."""

    id: str
    run_id: str
    agent: str
    status: Literal["open", "resolved", "cancelled", "expired"]
    created_at: float
    resolved_at: float | None = None
    body: dict[str, JsonValue]
    """What is asked: the data of its `request.created` or `client_tool.requested` event."""
    resolution: dict[str, JsonValue] | None = None
    """How it was closed."""
    may_answer: bool = False
    """Whether it is open and this caller is among those who may answer it."""
    preview: dict[str, JsonValue] | None = None
    """Of one request, the HTTP request that would be sent, with names in place of secrets; or why there is none, as
    `error`."""
    holder: str = ""
    """Who takes care of it, or did when it was closed; empty for nobody."""
    held_at: float | None = None


class RequestPage(View):
    """A page of requests, oldest first."""

    requests: list[RequestDetail]
    next_cursor: str | None = None


class AgentSummary(View):
    """An agent in a list."""

    name: str
    description: str
    model: str | None = None
    """What answers its runs: its own model, else the host's default."""


class SkillSummary(View):
    """A skill that an agent accepts; a message that begins with `/` and its name activates it."""

    name: str
    description: str
    by_model: bool
    """Whether the model may activate it too."""


class AgentDetail(AgentSummary):
    """An agent with its schemas."""

    input_schema: dict[str, JsonValue] | None = None
    """Of the parameters that its instructions have; null where they have none."""
    payload_schema: dict[str, JsonValue] | None = None
    """Of the working data; null where anything goes."""
    actions: list[dict[str, JsonValue]] = []
    client_tools: list[dict[str, JsonValue]] = []
    skills: list[SkillSummary] = []
    limits: dict[str, JsonValue] = {}
    autonomy: str


class AgentList(View):
    """All agents."""

    agents: list[AgentSummary]


class Health(View):
    """Whether the process can work."""

    status: Literal["ok", "closing"]


class FieldError(View):
    """One place that is wrong."""

    pointer: str
    """JSON Pointer into what was sent."""
    detail: str


class Problem(View):
    """An error, as RFC 9457 has it, with a stable `code`."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    code: str
    errors: list[FieldError] = []
    retryable: bool = False
    current: dict[str, Any] | None = None
    """For `stale` drafts: what is kept now, as `text`, `files`, `hash`, `by` and `at`; left out otherwise."""


def listed(detail: Any) -> dict[str, Any]:
    """A dataclass row as keyword arguments for its view."""
    return {name: getattr(detail, name) for name in detail.__dataclass_fields__}
