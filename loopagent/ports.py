"""What the engine needs from outside, on one screen: a model to ask and a store to keep runs in.

A model call is one attempt: messages in, one text out. A store commit is one transaction: it happens as a
whole or not at all.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from loopagent.artifact_port import ArtifactStore
from loopagent.audit_port import Wanted
from loopagent.conversation_port import ConversationStore
from loopagent.core.dialect_writer import Dialect
from loopagent.core.events import Event
from loopagent.core.facts import Fact
from loopagent.core.outcomes import Outcomes
from loopagent.core.state import Message, RunState
from loopagent.core.values import value_object
from loopagent.desk_port import DeskStore
from loopagent.dispatch_port import DispatchStore
from loopagent.durability_port import Durability
from loopagent.key_port import KeyStore
from loopagent.library_port import LibraryStore
from loopagent.note_port import NoteStore
from loopagent.notification_port import NotificationStore
from loopagent.retention_port import RetentionStore
from loopagent.trigger_port import TriggerStore


Finish = Literal["stop", "length", "content_filter", "refusal", "unknown"]
DeltaSink = Callable[[str], Awaitable[None] | None]
"""Called with each piece of reply text as it arrives; may be sync or async."""


@value_object(frozen=True, slots=True)
class ChatMessage:
    """One message of the conversation as providers know it."""

    role: Literal["user", "assistant"]
    text: str


@value_object(frozen=True, slots=True)
class Usage:
    """Tokens of one attempt; `cached_tokens` is the part of `input_tokens` served from a prompt cache."""

    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    cost_usd: float | None = None


@value_object(frozen=True, slots=True)
class ModelRequest:
    """One model call.

    `system` is the stable part of the prompt; `messages` is the conversation, oldest first; its last entry may
    be the volatile state message. `schema` is a JSON Schema for constrained decoding, or None.
    `cache_key` is stable over a run, for providers that route by it.
    """

    system: str
    messages: Sequence[ChatMessage]
    schema: dict[str, Any] | None = None
    max_output_tokens: int | None = None
    temperature: float | None = None
    cache_key: str | None = None
    agent: str = ""
    """Name of the agent that asks; scripted models pick entries by it. Never sent to a provider."""


@value_object(frozen=True, slots=True)
class ModelReply:
    """What one successful attempt brought back.

    `refusal` is the provider's refusal text (`finish == "refusal"`). `first_token_ms` is None when not streamed.
    `bound`: the provider held the text to the request's schema.
    """

    text: str
    finish: Finish = "stop"
    refusal: str | None = None
    reasoning: str | None = None
    usage: Usage = field(default_factory=Usage)
    model: str = ""
    request_id: str | None = None
    first_token_ms: float | None = None
    total_ms: float = 0.0
    bound: bool = False


@dataclass(frozen=True, slots=True)
class SchemaSupport:
    """That a model can be held to a JSON Schema.

    `dialect`: whose subset of JSON Schema it takes. `sure`: it is known to; if not, a schema is sent only on request.
    """

    dialect: Dialect
    sure: bool = True


class Model(Protocol):
    """A model that can be asked. One `generate` is one attempt: no hidden retries.

    A model that can be held to a JSON Schema also has an attribute `schema_support`, a `SchemaSupport`.
    """

    name: str
    """`provider:model` as configured."""

    async def generate(
        self, request: ModelRequest, *, on_delta: DeltaSink | None = None
    ) -> ModelReply:
        """Ask once.

        Args:
            request: What to send.
            on_delta: Receives reply text as it arrives; the request is streamed when given.

        Raises:
            ModelError: The attempt failed. Cancellation passes through.
        """
        ...

    async def aclose(self) -> None:
        """Give back connections."""
        ...


@value_object(frozen=True, slots=True)
class Commit:
    """One transaction of one run: the events that came in and everything the transition brought.

    `version` is the version the old state was read at; the commit makes it `version + 1`. `at` is seconds since
    the epoch, the time of every fact in it.
    """

    state: RunState
    version: int
    at: float
    events: tuple[Event, ...] = ()
    facts: tuple[Fact, ...] = ()
    messages: tuple[Message, ...] = ()
    spilled: Outcomes | None = None
    """Results of the open step to store apart; `load` puts all of the step together again."""
    repeatable: bool = False
    """Said to a store with durability `turn`: if it loses this commit in a power cut, and nothing before it, it loses
    no more than outcomes of calls that will be made again and do no harm."""
    same_payload: bool = False
    """The payload is the one that the version before has: a store that keeps it apart need not write it again."""
    artifacts: tuple[StoredArtifact, ...] = ()
    """Texts and files that a new run is created with; only `create` looks at them."""
    history: tuple[LogEntry, ...] = ()
    """Of a forked run: what it takes over of the other one's log, numbered as its own from 1; `version` counts it."""


@value_object(frozen=True, slots=True)
class Snapshot:
    """A run as it was last committed. `seq` is the number of the last public event of the root run."""

    state: RunState
    version: int
    seq: int


@dataclass(frozen=True, slots=True)
class RunRow:
    """What a list of runs shows; never loads a run's body."""

    id: str
    agent: str
    status: str
    state: str
    turn: int
    title: str
    created_at: float
    updated_at: float
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])
    parent_id: str | None = None
    """The run that gave the work; None for one that was started from outside."""
    tenant: str = ""
    """The organisation that it belongs to; empty for a run without any."""


@dataclass(frozen=True, slots=True)
class RequestRow:
    """A request to a person. `body` is the data of its `request.created` event, `resolution` of what closed it."""

    id: str
    run_id: str
    agent: str
    status: Literal["open", "resolved", "cancelled", "expired"]
    created_at: float
    body: dict[str, Any]
    resolved_at: float | None = None
    resolution: dict[str, Any] | None = None
    tenant: str = ""
    """That of its run."""
    holder: str = ""
    """Who takes care of it, or did when it was closed; empty for nobody."""
    held_at: float | None = None


@value_object(frozen=True, slots=True)
class LogEntry:
    """One committed transaction of a run, as the log keeps it: for people, replay and audit."""

    version: int
    first_seq: int
    at: float
    events: tuple[Event, ...]
    facts: tuple[Fact, ...]
    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class StoredArtifact:
    """A text kept in full, addressed by the SHA-256 of its bytes."""

    artifact_id: str
    media_type: str
    size_bytes: int
    content: bytes


@dataclass(frozen=True, slots=True)
class Handed:
    """Texts and files that a new run is given: as they are stored, and as its first event describes them."""

    stored: tuple[StoredArtifact, ...] = ()
    described: tuple[dict[str, Any], ...] = ()


NOTHING = Handed()


@dataclass(frozen=True, slots=True)
class RememberedAnswer:
    """The answer that an idempotency key already got. `fingerprint` is a hash of the request it belongs to."""

    fingerprint: str
    status: int
    body: str
    headers: dict[str, str] = field(default_factory=dict[str, str])


class Store(
    ArtifactStore,
    ConversationStore,
    DeskStore,
    DispatchStore,
    Durability,
    KeyStore,
    LibraryStore,
    NoteStore,
    NotificationStore,
    RetentionStore,
    TriggerStore,
    Protocol,
):
    """Keeps runs. Every method is one transaction; all raise `StoreError` when the store itself fails."""

    async def open(self) -> None:
        """Make ready; creates what is missing and refuses data of a newer version (`CorruptError`)."""
        ...

    async def aclose(self) -> None:
        """Finish what is queued and let go of the files or connections."""
        ...

    async def create(self, commit: Commit, *, metadata: dict[str, Any] | None = None) -> int:
        """Add a run with its first transition and pinned spec; returns the first event's `seq` (1 for a root run).

        One with a history has that as the beginning of its log, its transcript and its events.
        One that continues a conversation creates it where the user has none of this id.

        Raises:
            ConflictError: A run of this id exists.
            RequestError: `conversation_busy` (409), another run of its conversation has not ended and this one
                does not wait for it.
        """
        ...

    async def commit(self, commit: Commit, *later: Commit) -> int:
        """Append a transition, and later ones of the same run, as if one by one; returns the `seq` of the first fact.

        Raises:
            ConflictError: The run is not at `commit.version` any more; nothing was written.
        """
        ...

    async def load(self, run_id: str) -> Snapshot | None:
        """The run as last committed, or None."""
        ...

    async def transcript(
        self, run_id: str, *, first: int = 1, last: int | None = None
    ) -> list[Message]:
        """Messages `first` to `last` (both included, numbers start at 1), oldest first."""
        ...

    async def log(self, run_id: str) -> list[LogEntry]:
        """Everything committed for the run, oldest first."""
        ...

    async def events(
        self, run_id: str, *, after: int = 0, limit: int = 1000
    ) -> list[dict[str, Any]]:
        """Public events with `seq > after`, in order, as envelopes of `public_event`."""
        ...

    async def runs(
        self,
        *,
        agent: str | None = None,
        status: str | None = None,
        roots: bool = False,
        tenant: str | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> tuple[list[RunRow], str | None]:
        """A page of runs, newest first, and the cursor of the next page (None at the end).

        With `roots` only runs that were started from outside, without the work of sub-agents; with `tenant` only
        those of this tenant, where the empty one is that of runs without any.
        """
        ...

    async def tree(self, run_id: str) -> list[RunRow]:
        """A root run and every run below it, in the order they were made; a child alone is one row."""
        ...

    async def requests(
        self,
        *,
        status: str | None = "open",
        run_id: str | None = None,
        tenant: str | None = None,
        newest: bool = False,
        cursor: str | None = None,
        limit: int = 50,
    ) -> tuple[list[RequestRow], str | None]:
        """A page of requests to people, oldest or `newest` first, and the cursor of the next page."""
        ...

    async def decided(
        self, wanted: Wanted, *, cursor: str | None = None, limit: int = 50
    ) -> tuple[list[RequestRow], str | None]:
        """A page of requests that were decided or answered, the latest decision first, and the next page's cursor."""
        ...

    async def request(self, request_id: str) -> RequestRow | None:
        """One request, or None."""
        ...

    async def tenant_of(self, run_id: str) -> str | None:
        """The tenant that a run belongs to, without loading it; None when there is no such run."""
        ...

    async def open_requests(self, tenant: str | None = None) -> int:
        """How many requests wait for people, of all tenants or of one."""
        ...

    async def put_artifact(self, run_id: str, artifact: StoredArtifact) -> None:
        """Keep a text for a run; the same content is stored once."""
        ...

    async def artifact(self, run_id: str, artifact_id: str) -> StoredArtifact | None:
        """A text of this run, or None; another run's text is None too."""
        ...

    async def remember(self, key: str, answer: RememberedAnswer, *, at: float) -> RememberedAnswer:
        """Keep the answer given under an idempotency key; returns the one kept first."""
        ...

    async def recall(self, key: str) -> RememberedAnswer | None:
        """The answer given under an idempotency key, or None."""
        ...

    async def delete(self, run_id: str) -> bool:
        """Remove an ended run with everything that belongs to it; False if there is none."""
        ...
