"""The action file: what one may say, as types. What types alone cannot say is in `checks`."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import Field, field_validator

from loopagent.actions.durations import Rate, Seconds
from loopagent.actions.format_approval import ApprovalSection
from loopagent.actions.format_http import Auth, HttpRun
from loopagent.core.action_spec import EffectClass
from loopagent.core.spec import Spec
from loopagent.egress.policy import host_pattern, network


API_VERSION: Final = "loopagent/v1"
KIND: Final = "Action"
NAME: Final = r"^[a-z0-9]+(?:[._-][a-z0-9]+)*$"
MAX_NAME_CHARS: Final = 100
_STEP_ID: Final = r"^[A-Za-z_][A-Za-z0-9_]*$"
CLASSES: Final[dict[str, EffectClass]] = {
    "read": "read",
    "write": "write",
    "external": "external",
    "irreversible": "irreversible",
    "destructive": "irreversible",
}
"""The effect class of each word that a file may use; `destructive` is what other formats say."""
OPEN_KINDS: Final = frozenset({"python", "openapi"})
"""Kinds whose parameters may be left out, because something else says them."""
HTTP_KINDS: Final = frozenset({"http", "openapi"})
"""Kinds that send HTTP requests."""
FileEffects = Literal["read", "write", "external", "irreversible", "destructive"]


class EgressSection(Spec):
    """Where the action may call; the operator's settings can only narrow it."""

    hosts: tuple[str, ...] = Field(default=(), max_length=50)
    """Hosts, like `api.example.com` or `*.example.com`."""
    ports: tuple[Annotated[int, Field(ge=1, le=65_535)], ...] = Field(default=(), max_length=50)
    """Ports beside 80 and 443."""
    private_networks: tuple[str, ...] | None = Field(default=None, max_length=50)
    """Of the private networks that the operator opened, those that are needed; left out, all of them."""

    @field_validator("hosts")
    @classmethod
    def _are_hosts(cls, hosts: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(map(host_pattern, hosts))

    @field_validator("private_networks")
    @classmethod
    def _are_networks(cls, networks: tuple[str, ...] | None) -> tuple[str, ...] | None:
        return None if networks is None else tuple(str(network(one)) for one in networks)


class OpenApiRun(Spec):
    """An operation of an OpenAPI document that lies beside the file."""

    kind: Literal["openapi"]
    spec: str = Field(min_length=1)
    """File name of the document."""
    operation: str = Field(min_length=1)
    """Its `operationId`, or `GET /orders/{id}`."""
    server: str = Field(default="", max_length=2_000)
    """Address to call instead of the server that the document names."""
    auth: Auth | None = None
    """As for `http`."""


class McpRun(Spec):
    """A tool of an MCP server that the operator configured."""

    kind: Literal["mcp"]
    server: str = Field(min_length=1)
    """Name of the server."""
    tool: str = Field(min_length=1)
    """Name of the tool."""
    sha256: str | None = Field(default=None, pattern=r"^[0-9a-f]{64}$")
    """Digest of the tool as it was looked at; one that has changed is not called. `import-mcp` writes it."""
    timeout: Seconds | None = Field(default=None, gt=0, le=3_600)
    """Time for one attempt; left out, that of the call."""


class PythonRun(Spec):
    """A function in a module that the operator allows."""

    kind: Literal["python"]
    callable: str = Field(pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*$")
    """`package.module:function`."""
    timeout: Seconds | None = Field(default=None, ge=1, le=3_600)
    """Time for a call; left out, the `timeout` of the action."""


class PromptRun(Spec):
    """A question to a model."""

    kind: Literal["prompt"]
    template: str = Field(min_length=1, max_length=100_000)
    """The question; `{{ params.x }}` puts a parameter in."""
    system: str = Field(default="", max_length=100_000)
    """Standing instructions, as written."""
    model: str | None = Field(default=None, pattern=r"^[A-Za-z][\w.+-]*:\S.*$")
    """`provider:model`; left out, the model of the run."""
    output_schema: dict[str, Any] | None = None
    """JSON Schema that the answer must satisfy; without one it is a text."""
    max_output_tokens: int | None = Field(default=None, ge=1, le=1_000_000)
    """How long the answer may be."""
    attempts: int = Field(default=2, ge=1, le=5)
    """How often to ask in all for an answer that is whole and satisfies the schema."""


class PipelineStep(Spec):
    """One action of a pipeline."""

    id: str = Field(pattern=_STEP_ID, max_length=60)
    """Name under which later steps see its result: `steps.ID`."""
    action: str = Field(min_length=1)
    """Name of the action."""
    with_: dict[str, Any] = Field(default_factory=dict[str, Any], alias="with")
    """Parameters; values or forms."""
    when: str | None = None
    """JMESPath; the step is left out, with a null result, unless it is `true`."""
    for_each: str | None = None
    """JMESPath that gives a list: the action is called for each, as `item` and `index`, and the result is a list."""
    max_concurrency: int = Field(default=4, ge=1, le=50)
    """Calls of `forEach` side by side."""
    on_error: Literal["fail", "null"] = "fail"
    """What a failed call does: end the pipeline, or give a null result."""


class PipelineRun(Spec):
    """Several actions, one after another."""

    kind: Literal["pipeline"]
    steps: tuple[PipelineStep, ...] = Field(min_length=1, max_length=50)
    """What is called, in this order."""
    output: Any = None
    """The result, a value with forms; left out, the result of the last step."""
    max_items: int = Field(default=200, ge=1, le=10_000)
    """Longest list that `forEach` takes."""


Run = Annotated[
    HttpRun | OpenApiRun | McpRun | PythonRun | PromptRun | PipelineRun,
    Field(discriminator="kind"),
]


class RetrySection(Spec):
    """Repeating a failed call, where that does no harm: reading, idempotent, or not sent at all."""

    attempts: int = Field(default=1, ge=1, le=10)
    """Attempts in all."""
    retry_on: tuple[int | str, ...] = ("timeout", "connection", 429, "5xx")
    """`timeout`, `connection`, a status like 429, or a class like `5xx`."""
    wait: Seconds = Field(default=0.5, ge=0, le=3_600)
    """Wait before the second attempt; doubles with each further one."""
    max_wait: Seconds = Field(default=10.0, ge=0, le=3_600)
    """Longest wait."""
    respect_retry_after: bool = True
    """Wait as long as the server asks, if that is within `maxWait`; else give up."""

    @field_validator("retry_on")
    @classmethod
    def _are_known(cls, causes: tuple[int | str, ...]) -> tuple[int | str, ...]:
        for one in causes:
            _check_cause(str(one))
        return causes


def _check_cause(cause: str) -> None:
    digits = cause[:1] in tuple("12345")
    rest = cause[1:]
    status = len(cause) == len("429") and digits and (rest == "xx" or rest.isdecimal())
    if not status and cause not in {"timeout", "connection"}:
        raise ValueError(f"{cause[:40]!r} is none of timeout, connection, 429 and the like, or 5xx")


class IdempotencySection(Spec):
    """A key that lets the server recognise a repeated call, so that it has its effect once."""

    header: str = Field(default="Idempotency-Key", pattern=r"^[A-Za-z0-9-]+$")
    """Header that carries it."""
    key: str = "{{ call.key }}"
    """The key, a text with `call.key`, `run.id`, `step.id` or `params`; the first is the same for every attempt."""


class LimitsSection(Spec):
    """How often the action may be called."""

    rate: Rate | None = None
    """Calls in a time; further ones wait."""
    concurrency: int | None = Field(default=None, ge=1, le=1_000)
    """Calls side by side; further ones wait."""
    per_run: int | None = Field(default=None, ge=1)
    """Calls in one run; further ones are refused."""
    scope: Literal["action", "connection"] = "action"
    """Whether rate and concurrency count this action alone, or all with the same hosts and this scope."""


class ArtifactSection(Spec):
    """The result as an artifact of the run, whole."""

    name: str = Field(default="", max_length=200)
    """Its name; several of one name are versions of it."""
    type: str = Field(default="", max_length=255, pattern=r"^$|^[\w.+-]+/[\w.+-]+$")
    """Its media type, like `text/csv`; left out, JSON, or text where the result is one."""


class ResultSection(Spec):
    """What of the answer becomes the result."""

    select: str | None = None
    """JMESPath; for `http` it sees `status`, `headers`, `body`, `items` and `params`, else `result` and `params`."""
    schema_: dict[str, Any] | None = Field(default=None, alias="schema")
    """JSON Schema that the result must satisfy."""
    summary: str | None = Field(default=None, min_length=1, max_length=10_000)
    """Text that the model is shown instead of a long result; `{{ }}` sees `result` and `params`."""
    artifact: ArtifactSection | None = None
    """The result always becomes an artifact, however short it is; left out, only a long one."""
    max_chars: int | None = Field(default=None, ge=100)
    """A longer result, as JSON, reaches the model in short, with a handle to look into it."""


class ErrorRule(Spec):
    """An answer that means an error, in words for the model; only for `http`."""

    when: str
    """JMESPath over `status`, `headers`, `body` and `params`; the first rule that is `true` counts."""
    code: str = Field(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,59}$")
    """A stable word."""
    message: str = ""
    """What to tell the model; a text with `{{ }}`."""
    retryable: bool = False
    """Whether another attempt may help, where one does no harm."""


class Example(Spec):
    """A call as it may look."""

    name: str = Field(min_length=1, max_length=100)
    """What it shows."""
    params: dict[str, Any] = Field(default_factory=dict[str, Any])
    """Its parameters."""
    result: Any = None
    """What it gives."""


class MockRequest(Spec):
    """A request that a test expects; what is left out may be anything."""

    method: str | None = None
    """HTTP method."""
    path: str | None = None
    """Path, as sent."""
    query: dict[str, str | list[str]] | None = None
    """All parameters of the query."""
    headers: dict[str, str] | None = None
    """Headers that must be among those sent."""
    json_: Any = Field(default=None, alias="json")
    """The body as JSON."""
    text: str | None = None
    """The body as text."""


class MockResponse(Spec):
    """What the stand-in answers."""

    status: int = Field(default=200, ge=200, le=599)
    """HTTP status."""
    headers: dict[str, str] = Field(default_factory=dict[str, str])
    """Headers."""
    json_: Any = Field(default=None, alias="json")
    """A JSON body."""
    text: str | None = None
    """A text body."""


class Mock(Spec):
    """One exchange with the server, or one call of another action or model."""

    request: MockRequest = MockRequest()
    """What must come, for `http`."""
    response: MockResponse = MockResponse()
    """What is answered, for `http`."""
    action: str | None = None
    """For `pipeline`: the action that is stood in for."""
    params: dict[str, Any] | None = None
    """For `pipeline`: what it must be called with; left out, anything."""
    result: Any = None
    """For `pipeline`: what it gives."""
    error: str | None = None
    """For `pipeline`: the code it fails with."""
    reply: str | None = None
    """For `prompt`: what the model answers."""


class Expectation(Spec):
    """How a call must end."""

    result: Any = None
    """The result."""
    error: str | None = None
    """The code of the error."""
    requests: tuple[MockRequest, ...] | None = None
    """The requests that were sent, all of them, in order."""


class ActionTest(Spec):
    """A test: parameters, what the other side answers, and what must come of it."""

    name: str = Field(min_length=1, max_length=100)
    """What it shows."""
    params: dict[str, Any] = Field(default_factory=dict[str, Any])
    """Parameters of the call."""
    mock: tuple[Mock, ...] = Field(default=(), max_length=100)
    """What the other side does, in this order."""
    expect: Expectation
    """How it must end."""


class ActionFile(Spec):
    """One low-code action."""

    api_version: Literal["loopagent/v1"] = API_VERSION
    """Version of the format."""
    kind: Literal["Action"] = KIND
    """What the document is."""
    name: str = Field(pattern=NAME, max_length=MAX_NAME_CHARS)
    """Name that agents and models use; lower case letters and digits, with `.`, `-` or `_` between them."""
    title: str = Field(default="", max_length=200)
    """Name for people."""
    description: str = Field(min_length=1, max_length=5_000)
    """What it does and when to use it, for the model."""
    version: str = Field(default="", max_length=60)
    """Version, for people."""
    tags: tuple[str, ...] = Field(default=(), max_length=50)
    """Words to find it by."""
    deprecated: bool = False
    """Whether something else should be used; agents that use it get a warning."""
    enabled: bool = True
    """Whether it can be called; what was imported starts with `false`, until a person has looked at it."""
    effects: FileEffects
    """What a call does to the world."""
    idempotent: bool = False
    """Whether the same call made twice has its effect once."""
    params: dict[str, Any] | None = None
    """JSON Schema of the parameters; left out, none, or for `python` those of the function."""
    ui: dict[str, Any] = Field(default_factory=dict[str, Any])
    """How forms show the parameters, a uiSchema by parameter."""
    approval: ApprovalSection | None = None
    """Who decides; left out, the agent's policy for the effect class."""
    secrets: tuple[str, ...] = Field(default=(), max_length=20)
    """Names of secrets that it uses; the operator's settings say what they are."""
    egress: EgressSection = EgressSection()
    """Where it may call."""
    run: Run
    """What it does."""
    timeout: Seconds = Field(default=30.0, ge=1, le=3_600)
    """Time for a call, all attempts together."""
    retry: RetrySection = RetrySection()
    """Repeating failed calls."""
    idempotency: IdempotencySection | None = None
    """The key of a call; with one, repeating does no harm."""
    limits: LimitsSection = LimitsSection()
    """How often it may be called."""
    result: ResultSection = ResultSection()
    """What of the answer becomes the result."""
    errors: tuple[ErrorRule, ...] = Field(default=(), max_length=50)
    """Answers that mean an error."""
    examples: tuple[Example, ...] = Field(default=(), max_length=50)
    """Calls as they may look."""
    tests: tuple[ActionTest, ...] = Field(default=(), max_length=200)
    """Tests, run by `loopagent actions test`."""

    @property
    def effect_class(self) -> EffectClass:
        """The effect class, in the engine's words."""
        return CLASSES[self.effects]

    @property
    def repeatable(self) -> bool:
        """Whether sending it again does no harm."""
        return self.effect_class == "read" or self.idempotent or self.idempotency is not None
