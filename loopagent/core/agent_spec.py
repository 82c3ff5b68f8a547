"""What an agent is, as plain data: pinned into each of its runs, so an edit never changes a run half-way."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from loopagent.core.action_spec import ActionSpec, CallSpec
from loopagent.core.breaker import BreakerLimits
from loopagent.core.client_tool_spec import ClientToolSpec, same_names
from loopagent.core.completion_spec import Completion
from loopagent.core.hook_spec import HookSpec
from loopagent.core.memory_spec import MemorySpec
from loopagent.core.shrink import ShrinkLimits
from loopagent.core.skill_spec import SkillSet, SkillSpec
from loopagent.core.spec import Spec


Approval = Literal["auto", "ask", "never"]
OneByOne = Literal["ask", "never"]
References = Literal["templates", "bare"]
Autonomy = Literal["interactive", "autonomous"]
PlanMode = Literal["off", "optional", "required"]
MessageMode = Literal["none", "all", "latest", "bookend"]


class ApprovalPolicy(Spec):
    """What happens before an action of each effect class runs, unless the action says otherwise."""

    read: Approval = "auto"
    write: Approval = "ask"
    external: Approval = "ask"
    irreversible: Approval = "ask"
    actions: dict[str, OneByOne] = Field(default_factory=dict[str, OneByOne])
    """Actions and client tools that are asked about every time, or never called, whatever they say themselves."""


class PayloadSpec(Spec):
    """The working data of a run."""

    schema_: dict[str, Any] | None = Field(default=None, alias="schema")
    """JSON Schema that the payload must satisfy when the run completes."""
    initial: Any = None
    """Payload a run starts with when the caller gives none; null means an empty object."""
    read: tuple[str, ...] = ("*",)
    """Paths the model may see."""
    write: tuple[str, ...] = ("*",)
    """Paths the model may change, each optionally with operations: `a.b:add,update,delete`."""
    on_loss: Literal["warn", "confirm"] = "warn"
    """After a change that looks like a loss, of most of a text for example: say so; or make it when it comes again."""


class Limits(Spec):
    """Every number that bounds a run; each is counted over the whole tree of sub-agents."""

    max_turns: int = Field(default=50, ge=1)
    """Planner calls, refused ones included."""
    max_seconds: float | None = Field(default=None, gt=0)
    """Working time; time spent waiting for people does not count."""
    max_tokens: int | None = Field(default=None, ge=1)
    """Input plus output tokens of all model calls."""
    max_cost_usd: float | None = Field(default=None, gt=0)
    """Cost of all model calls whose price is known."""
    when_reached: Literal["fail", "ask"] = "fail"
    """At one of these four: end the run, which can be raised later, or ask a person at once, if there is one."""
    max_concurrency: int = Field(default=8, ge=1)
    """Effects of one step that run side by side."""
    max_depth: int = Field(default=5, ge=0)
    """Levels of sub-agents below the root run; 0 means that nobody is given work."""
    max_passes: int = Field(default=10_000, ge=1)
    """Passes of one loop, whatever the model asks for."""
    max_pause_ms: int = Field(default=3_600_000, ge=0)
    """Longest pause between two passes of a loop, in milliseconds."""
    max_actions_per_reply: int = Field(default=50, ge=1)
    """Calls in one Actions step."""
    max_reply_chars: int = Field(default=1_000_000, ge=1_000)
    """Longest reply text that is read at all."""
    max_output_tokens: int | None = Field(default=None, ge=16)
    """Asked of the provider for each reply; None leaves it to the provider."""
    max_payload_bytes: int = Field(default=1_000_000, ge=1_000)
    """Size of the payload as JSON."""
    max_payload_chars: int = Field(default=40_000, ge=1_000)
    """A payload longer than this, as JSON, is shown as an outline; the model looks into it as into an artifact."""
    max_message_chars: int = Field(default=1_000_000, ge=1)
    """Longest message a person may post."""
    max_remembered_approvals: int = Field(default=100, ge=0)
    """Calls that need no approval any more because a person said so; the oldest is forgotten for a new one."""
    max_metadata_bytes: int = Field(default=50_000, ge=0)
    """Size as JSON of what a caller says about a run, which lists of runs show."""
    max_queued_messages: int = Field(default=50, ge=1)
    """Messages of people that may wait for a turn boundary."""
    max_result_chars: int = Field(default=8_000, ge=200)
    """An action result longer than this becomes an artifact; the prompt gets head, tail and handle."""
    max_loop_chars: int = Field(default=8_000_000, ge=0)
    """Room for the results of a loop, shared by its passes; a longer one, over that limit too, is an artifact alone."""
    max_pipeline_entries: int = Field(default=1_000, ge=1)
    """Entries of a `map` in a pipeline."""
    max_pipeline_bytes: int = Field(default=4_000_000, ge=1_000)
    """Results that a pipeline may hold until it ends, as JSON."""
    max_pipeline_seconds: float | None = Field(default=600, gt=0)
    """Working time of one pipeline, looked at before each of its calls."""
    max_pipeline_preview_chars: int = Field(default=500, ge=0)
    """Length of the preview of a value in the events of a pipeline."""
    max_result_bytes: int = Field(default=50_000_000, ge=1_000)
    """An action result larger than this is refused."""
    client_tool_timeout_ms: int = Field(default=30_000, ge=100, le=3_600_000)
    """How long a client may take over a call when neither the call nor its tool says."""
    max_client_tool_timeout_ms: int = Field(default=3_600_000, ge=100, le=86_400_000)
    """Longest time a call may ask for."""
    max_client_tools: int = Field(default=50, ge=0)
    """Client tools that a client may bring to a run."""
    max_client_tools_bytes: int = Field(default=100_000, ge=0)
    """Size of their definitions together, as JSON."""
    max_media_items: int = Field(default=10, ge=0)
    """Images and files in one client tool result."""
    max_media_bytes: int = Field(default=5_000_000, ge=0)
    """Size of those together, decoded."""
    max_attachments: int = Field(default=20, ge=0)
    """Files that a run may be started with."""
    max_attachment_bytes: int = Field(default=20_000_000, ge=0)
    """Size of those together."""
    max_artifact_calls: int = Field(default=20, ge=1)
    """Looks into artifacts in one reply."""
    max_artifact_result_chars: int = Field(default=100_000, ge=200)
    """Length of what one look into an artifact brings; longer ones come in pages."""
    max_artifact_seconds: float = Field(default=10.0, gt=0)
    """Time for one look into an artifact."""
    max_artifact_unpacked_bytes: int = Field(default=100_000_000, ge=1_000)
    """How much a packed file may unpack to before it is not read."""
    max_scratchpad_tasks: int = Field(default=50, ge=1)
    """Tasks on the scratchpad."""
    max_scratchpad_chars: int = Field(default=20_000, ge=100)
    """Length of the scratchpad notes."""
    max_task_chars: int = Field(default=2_000, ge=10)
    """Length of one task on the scratchpad: id, title and notes together."""
    max_refusals_in_a_row: int = Field(default=3, ge=1)
    """Refused replies in a row before the mistake limit is reached."""
    max_refusals: int = Field(default=10, ge=1)
    """Refused replies in all before the run fails."""
    max_truncations: int = Field(default=3, ge=1)
    """Cut-off replies in a row before the run fails."""
    max_mistakes: int = Field(default=3, ge=0)
    """Turns in a row in which something failed and nothing succeeded; 0 turns the guard off."""
    repeat_notice: int = Field(default=3, ge=2)
    """The same step this many times in a row: the model is told."""
    repeat_limit: int = Field(default=5, ge=2)
    """The same step this many times in a row: treated as the mistake limit."""
    max_plan_chars: int = Field(default=20_000, ge=100)
    """Length of a plan; the approved one is part of every later prompt."""
    max_plan_revisions: int = Field(default=10, ge=1)
    """Plans that may be put to a person in one run."""
    max_nudges: int = Field(default=3, ge=1)
    """Replies in a row that neither complete nor go on."""
    max_claims: int = Field(default=3, ge=1)
    """Completion claims in a row that the completion policy refuses."""
    max_conversation_calls: int = Field(default=8, ge=1)
    """Look-ups in the conversation in one reply; further ones are skipped."""
    max_hook_chars: int = Field(default=8_000, ge=0)
    """Length of a text that a hook adds, or gives as its reason."""
    max_history_tokens: int = Field(default=8_000, ge=0)
    """About how many tokens of earlier messages a run that continues a conversation is shown at its start."""
    max_queue_seconds: float | None = Field(default=86_400, gt=0)
    """How long it may wait for the runs of its conversation before it; null for ever."""
    max_carried_chars: int = Field(default=100_000, ge=0)
    """Length of what it is shown of the look-ups of the run before it; 0 shows nothing."""
    max_active_skills: int = Field(default=20, ge=0)
    """Skills that may become active in one run; their instructions stay in its context."""
    max_reads_first: int = Field(default=3, ge=0)
    """Times in a row that read tools postpone a question or a completion."""
    breaker: BreakerLimits = BreakerLimits()
    """When failing actions are blocked."""
    shrink: ShrinkLimits = ShrinkLimits()
    """From when on the model is told that a change of the payload loses a lot."""


class ContextSpec(Spec):
    """How much of a run the model is shown; what is not shown is kept, and can be asked for."""

    window_tokens: int | None = Field(default=None, ge=1_000)
    """Longest prompt that the model takes; None for what is known of the model, else 128,000."""
    start: float = Field(default=0.9, gt=0, le=1)
    """Share of the window from which on room is made."""
    target: float = Field(default=0.7, gt=0, le=1)
    """Share of the window that is left filled then."""
    result_turns: int = Field(default=6, ge=0)
    """Turns after which a result may be shown as a stub."""
    away_seconds: float = Field(default=3_600, gt=0)
    """A reply so long ago is told of with the next prompt, in seconds."""
    carried_turns: int = Field(default=2, ge=0)
    """The same for what an earlier run of the conversation had looked up."""
    rewrite_bytes: int = Field(default=64_000, ge=0)
    """Old results become stubs once they are this long together, so that the provider's cache is seldom lost."""
    stub_bytes: int = Field(default=400, ge=200)
    """Shorter messages are never shown as stubs."""
    refused_share: float = Field(default=0.5, gt=0, le=1)
    """A reply that was not taken and is a larger share of the window than this is not shown to the model again."""
    listed_effects: int = Field(default=30, ge=0)
    """Latest calls that did more than read which stand beside a summary, one line each."""
    keep_turns: int = Field(default=2, ge=1)
    """Latest turns that a summary never stands for."""
    summary: Literal["model", "none"] = "model"
    """Who sums up what is left out: the run's model, or nobody."""
    summary_tokens: int = Field(default=1_500, ge=100)
    """Longest summary."""
    summary_message_chars: int = Field(default=10_000, ge=100)
    """Each message is shown to who sums up only so far."""
    listed_artifacts: int = Field(default=50, ge=1)
    """Artifacts that a prompt lists, files before results; older ones still answer to their handles."""
    overflow_tries: int = Field(default=1, ge=0)
    """Times in a row that a prompt which was too long for the model is shortened and tried again."""
    least_progress: float = Field(default=0.1, gt=0, lt=1)
    """Share by which it must have become shorter for that."""


class AgentSpec(Spec):
    """One agent, complete, as the engine needs it."""

    name: str
    """Lower case letters, digits and hyphens."""
    description: str = ""
    """One or two sentences on what the agent does."""
    model: str | None = None
    """`provider:model`; None takes the run's or the host's default."""
    fallback_models: tuple[str, ...] = ()
    """Asked in order when the model is unavailable or refuses."""
    allow_model_override: bool = True
    """Whether a caller may choose another model for a run."""
    temperature: float | None = None
    """Sampling temperature; None leaves it to the provider."""
    instructions: str = ""
    """What the agent is told about its job; Markdown, sent as written."""
    standing: tuple[str, ...] = ()
    """Standing instructions of the project, in order."""
    steps: tuple[str, ...] | None = None
    """Next step types the agent may use, of those it has the means for; null for all of them."""
    actions: tuple[ActionSpec, ...] = ()
    """Actions the agent may use."""
    accepts_actions: bool = True
    """Whether runs also get the actions that the library grants the agent."""
    client_tools: tuple[ClientToolSpec, ...] = ()
    """Tools that the client of a run carries out; a client may bring further ones to its run."""
    skills: SkillSet = SkillSet()
    """Skills the agent accepts, and who may activate them."""
    agents: tuple[SubAgentSpec, ...] = Field(default=(), alias="subAgents")
    """Agents it may give work to, each with its own definition: a run pins the whole tree."""
    parameters: dict[str, Any] | None = None
    """JSON Schema of the template parameters that `{{ name }}` in the instructions stands for."""
    payload: PayloadSpec = PayloadSpec()
    """Working data: schema, initial value, what the model may read and write."""
    approval: ApprovalPolicy = ApprovalPolicy()
    """Approval by effect class."""
    artifact_tools: bool = True
    """Whether the agent may look into stored results and files with `artifactToolCalls`."""
    plan_mode: PlanMode = "optional"
    """Plan before acting: `required` always, `optional` when the caller asks for it, `off` never."""
    autonomy: Autonomy = "interactive"
    """`interactive`: a person can be asked; `autonomous`: nobody answers, so nothing waits."""
    references: References = "templates"
    """`templates`: only `{{ … }}` is filled in; `bare`: also a text that is nothing but a path, as in older prompts."""
    memory: MemorySpec | None = None
    """Notes that it keeps from run to run; null for none."""
    limits: Limits = Limits()
    """Every bound of a run."""
    context: ContextSpec = ContextSpec()
    """How much of a run the model is shown."""
    completion: Completion = Completion()
    """When a completion claim is accepted."""
    early_start: bool = False
    """Whether calls that only read may begin while the reply that asks for them still arrives."""
    hooks: tuple[HookSpec, ...] = ()
    """Code of the host that is asked around its runs; set by the host, not in files."""
    conversation_tools: bool | None = None
    """Whether replies may read the conversation; null: in runs that continue one."""

    @field_validator("client_tools")
    @classmethod
    def _named_apart(cls, tools: tuple[ClientToolSpec, ...]) -> tuple[ClientToolSpec, ...]:
        clash = same_names(tools)
        if clash is not None:
            raise ValueError(clash)
        return tools

    @model_validator(mode="after")
    def _verified_by_another(self) -> AgentSpec:
        verifier = self.completion.verifier
        if verifier is None:
            return self
        if verifier.model is not None and verifier.model in {self.model, *self.fallback_models}:
            raise ValueError("completion.verifier: the model that does the work cannot verify it")
        known = None if verifier.action is None else self.action(verifier.action)
        if verifier.action is not None and (known is None or known.effects != "read"):
            raise ValueError("completion.verifier: name an action of the agent that only reads")
        return self

    @property
    def interactive(self) -> bool:
        """Whether a person can be asked."""
        return self.autonomy == "interactive"

    def action(self, name: str) -> ActionSpec | None:
        """The action of exactly this name, or None."""
        for one in self.actions:
            if one.name == name:
                return one
        return None

    def skill(self, name: str) -> SkillSpec | None:
        """The skill of exactly this name that the agent accepts, or None."""
        return next((one for one in self.skills.available if one.name == name), None)

    def client_tool(self, name: str) -> ClientToolSpec | None:
        """The client tool of exactly this name, or None."""
        return next((one for one in self.client_tools if one.name == name), None)

    def agent(self, name: str) -> SubAgentSpec | None:
        """The sub-agent of exactly this name, or None."""
        return next((one for one in self.agents if one.name == name), None)

    def approval_of(self, call: CallSpec) -> Approval:
        """Whether a call of an action or a client tool runs at once, is asked for, or is forbidden."""
        own: Approval = call.approval or getattr(self.approval, call.effects)
        wanted = self.approval.actions.get(call.name) if self.approval.actions else None
        return own if wanted is None or own == "never" else wanted


class SubAgentTerms(Spec):
    """What lies between an agent and one that it may give work to: which data, both ways, and how often."""

    downstream: tuple[str, ...] = ("*",)
    """Paths of the payload that the sub-agent is given a copy of."""
    scope: str = ""
    """Part of the payload that is the sub-agent's whole payload, like `/case/notes`; empty for all of it."""
    upstream: tuple[str, ...] = ("*",)
    """Paths that its changes come back to, each optionally with operations: `a.b:add,update,delete`.

    A path without operations lets add and update; `*` lets everything. What it was not given is never deleted.
    """
    messages: MessageMode = "none"
    """Which messages of the agent's own conversation it is shown: none, all, the latest, or first and latest."""
    max_messages: int = Field(default=20, ge=3)
    """Most messages with `latest` and `bookend`."""
    artifacts: Literal["none", "all"] = "none"
    """Which of the agent's stored results and files it is handed."""
    max_calls: int | None = Field(default=None, ge=1)
    """Pieces of work in one run of the agent."""
    questions: Literal["person", "parent"] = "person"
    """Who answers its questions: a person, or the agent that gave it work."""
    with_skill: bool = False
    """Whether it can be given work only once a skill that brings it is active."""


class SubAgentEntry(SubAgentTerms):
    """A sub-agent as an agent file lists it, where more is to be said than its name."""

    agent: str
    """Name of the sub-agent."""


class SubAgentSpec(SubAgentTerms):
    """A sub-agent as a definition holds it: with its own definition, so that a run pins the whole tree."""

    spec: AgentSpec
    """The sub-agent's definition."""

    @property
    def name(self) -> str:
        """The sub-agent's name."""
        return self.spec.name


AgentSpec.model_rebuild()
