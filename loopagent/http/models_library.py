"""What is sent and taken for actions that are built in the page."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from loopagent.http.body import Body, View


AgentNames = Annotated[
    list[Annotated[str, Field(max_length=100)]],
    Field(max_length=1_000, description="Agents that get it."),
]
Files = Annotated[
    dict[str, str],
    Field(max_length=50, description="OpenAPI documents by the name that the text gives them."),
]
Params = dict[str, Any]


class SaveAction(Body):
    """A draft."""

    text: str
    """The action file, as typed; it may be faulty."""
    expected_hash: str = Field(default="", max_length=64)
    """`draftHash` of the draft that was changed; empty for a new action."""
    files: Files | None = None
    """OpenAPI documents that belong to it; null leaves them as they are."""


class LintAction(Body):
    """A text to check."""

    text: str
    """The action file."""
    name: str | None = Field(default=None, max_length=200)
    """The name that it has to say; null for any."""
    files: Files | None = None
    """OpenAPI documents that belong to it; null for those of the draft of this name."""


class TestAction(Body):
    """A test call."""

    params: Params = Field(default_factory=dict)
    """Parameters of the call."""
    send: bool = False
    """Whether to send it for real; if not, it is only shown."""
    text: str | None = None
    """The action file to try; null for the draft."""
    files: Files | None = None
    """OpenAPI documents that belong to it; null for those of the draft."""


class TextOfAction(Body):
    """Which text of an action."""

    text: str | None = None
    """The action file; null for the draft."""
    files: Files | None = None
    """OpenAPI documents that belong to it; null for those of the draft."""


class PublishAction(Body):
    """The draft, to be given to new runs."""

    draft_hash: str = Field(max_length=64)
    """Hash of the draft that was shown."""
    agents: AgentNames | None = None
    """Agents that get it from now on; null leaves them as they are."""
    note: str = Field(default="", max_length=2_000)
    """What is new."""


class RollBackAction(Body):
    """An older version, to be live again."""

    version: int = Field(ge=1, le=2_000_000_000)
    """Its number."""


class GrantAction(Body):
    """Who gets an action."""

    agents: AgentNames
    """Agents that get it from now on."""


class RenameAction(Body):
    """Another name."""

    name: str = Field(max_length=200)
    """The name."""


class ComplaintView(View):
    """One thing that is wrong with a text, or odd."""

    line: int
    """From 1."""
    column: int
    """From 1."""
    where: str
    """Place in the document, like `run.url`."""
    what: str
    """What is wrong, and what was perhaps meant."""
    warning: bool
    """Whether it works all the same."""


class LintView(View):
    """What was found in a text."""

    fine: bool
    """Whether it could be published."""
    complaints: list[ComplaintView]
    """In the order of the text."""


class BuiltView(View):
    """An action of the library, as it is edited."""

    name: str
    """Its name."""
    tenant: str
    """Whose it is."""
    state: Literal["draft", "published", "changed", "retired"]
    """`changed`: published, and the draft says something else."""
    draft: str
    """The text as typed last."""
    draft_hash: str
    """Its hash; saving and publishing name it."""
    files: dict[str, str]
    """OpenAPI documents that belong to it."""
    published: int | None
    """Number of the version that new runs are given."""
    latest: int
    """Number of the newest version; 0 for none."""
    agents: list[str]
    """Agents that are given it."""
    shadowed: bool
    """Whether an action of the project's files has its name, and is used instead."""
    updated_at: float
    """Seconds since the epoch."""
    updated_by: str
    """Who changed it last."""


class VersionView(View):
    """A version, without its text."""

    number: int
    """From 1."""
    hash: str
    """Hash of its text and documents."""
    by: str
    """Who published it."""
    at: float
    """Seconds since the epoch."""
    note: str
    """What is new in it."""


class VersionDetail(VersionView):
    """A version."""

    text: str
    """Its text."""
    files: dict[str, str]
    """Its OpenAPI documents."""


class VersionList(View):
    """All versions."""

    versions: list[VersionView]
    """Newest first."""


class DiffView(View):
    """What one version says that another one does not."""

    number: int
    """The version."""
    against: int
    """The version that it is compared with; 0 for an empty text."""
    diff: str
    """The difference from `against` to `number`, as unified diffs have it; empty when there is none."""


class ExchangeView(View):
    """A request that was sent, and its answer; secrets are masked."""

    request: dict[str, Any]
    """`method`, `url`, `headers` and perhaps `body`."""
    response: dict[str, Any]
    """`status`, `headers` and `body`."""


class TestView(View):
    """What came of a test call."""

    sent: bool
    """Whether it was sent."""
    preview: dict[str, Any] | None
    """What would be sent, for a call that was not."""
    ok: bool | None
    """Whether it worked; null when nothing was sent."""
    result: Any
    """Its result."""
    error: dict[str, Any] | None
    """Its error."""
    duration_ms: float | None
    """How long it took."""
    exchanges: list[ExchangeView]
    """The requests that were sent."""
    scope: dict[str, Any] | None
    """What `result.select` sees."""


class TestResultView(View):
    """How a test inside of an action ended."""

    test: str
    """Its name."""
    passed: bool
    """Whether all was as expected."""
    problems: list[str]
    """What was not."""
    seconds: float
    """How long it took."""


class TestResults(View):
    """How the tests inside of an action ended."""

    passed: int
    """How many passed."""
    failed: int
    """How many did not."""
    tests: list[TestResultView]
    """In the order of the text."""


class ChangeView(View):
    """Who did what."""

    name: str
    """The action."""
    what: str
    """`saved`, `published`, `rolled_back`, `granted`, `retired`, `renamed`, `deleted` or `tested`."""
    by: str
    """Who."""
    at: float
    """Seconds since the epoch."""
    detail: dict[str, Any]
    """What else there is to know."""


class ChangePage(View):
    """Who did what, newest first."""

    changes: list[ChangeView]
    """This page of them."""
    next_cursor: str | None
    """Where the next page begins; null when this is the last one."""


class SecretView(View):
    """A secret that texts may name; never its value."""

    name: str
    """Its name."""
    set: bool
    """Whether the operator has set it."""
    hosts: list[str]
    """The only hosts that it is sent to."""


class LibraryView(View):
    """What texts may name here."""

    secrets: list[SecretView]
    """Secrets that the operator set up."""
    servers: list[str]
    """MCP servers that the operator configured."""
    agents: list[str]
    """Agents that take actions of the library."""
    models: list[str]
    """Models that actions of kind `prompt` may name."""
