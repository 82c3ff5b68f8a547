"""What a store keeps of actions that are built in the page; a part of `ports.Store`.

Each tenant has its own. A text that a run was started with is kept as a definition, under the hash of what it says,
so that the run goes on with it whatever becomes of the action.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol

from loopagent.core.hashing import json_hash


BuiltState = Literal["draft", "published", "changed", "retired"]
"""`changed`: published, and the draft says something else; `retired`: it was published once."""
ChangeKind = Literal[
    "saved", "published", "rolled_back", "granted", "retired", "renamed", "deleted", "tested"
]

RENEWED_SECONDS: Final = 3_600.0
"""How long a definition that runs are given counts as kept, before it is written down once more."""
SPARED_SECONDS: Final = 86_400.0
"""How long one is spared after it was written down, though no run has it: a run may be about to start with it."""


def text_hash(text: str, files: Mapping[str, str]) -> str:
    """The hash of a draft or version: of its text, and of the documents that belong to it."""
    return json_hash([text, dict(files)])


@dataclass(frozen=True, slots=True)
class Built:
    """An action of the library."""

    tenant: str
    """Whose it is."""
    name: str
    draft: str
    """The text as it was typed last; may be faulty. Once published it says the same until somebody changes it."""
    draft_hash: str
    """Its hash, with that of its documents."""
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    """OpenAPI documents that belong to the draft, by the file name under which it mentions them."""
    published: int | None = None
    """Number of the version that runs are given."""
    published_hash: str = ""
    """Hash of that version; empty without one."""
    latest: int = 0
    """Number of the newest version; 0 when it was never published."""
    agents: tuple[str, ...] = ()
    """Agents that are given it, sorted."""
    updated_at: float = 0.0
    """Seconds since the epoch."""
    updated_by: str = ""
    revision: int = 1
    """Grows by one with each change."""

    @property
    def state(self) -> BuiltState:
        """How it stands."""
        if self.published is None:
            return "retired" if self.latest else "draft"
        return "published" if self.draft_hash == self.published_hash else "changed"


@dataclass(frozen=True, slots=True)
class Version:
    """A text that was published; never changed."""

    number: int
    """From 1; never given again."""
    text: str
    hash: str
    """Hash of the text and its documents."""
    by: str
    """Who published it."""
    at: float
    """Seconds since the epoch."""
    note: str = ""
    """What is new in it."""
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    """Its OpenAPI documents."""


@dataclass(frozen=True, slots=True)
class Published:
    """What of the library runs are given: an action, its version that is live, and the agents that get it."""

    name: str
    number: int
    hash: str
    agents: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LibraryChange:
    """Who did what to an action, for audits; stays when the action is deleted."""

    id: str
    """Its own; one that is known is not written again."""
    tenant: str
    name: str
    what: ChangeKind
    by: str
    at: float
    """Seconds since the epoch."""
    detail: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What else there is to know, as JSON: the version, the agents, the former name."""


class LibraryStore(Protocol):
    """Keeps the library. Every method is one transaction."""

    async def built(self, tenant: str, name: str) -> Built | None:
        """One action, or None."""
        ...

    async def built_actions(self, tenant: str) -> list[Built]:
        """The actions of a tenant, sorted by name."""
        ...

    async def save_built(
        self,
        row: Built,
        change: LibraryChange,
        *,
        version: Version | None = None,
        former: str | None = None,
    ) -> None:
        """Keep an action as it is now, and who changed it.

        Args:
            row: The action; its revision is one more than the one that was read, 1 for a new one.
            change: What was done.
            version: Published with it.
            former: The name it had until now, when it is renamed; it has no versions then.

        Raises:
            ConflictError: It is not at the revision before this one, or another one has its name.
        """
        ...

    async def delete_built(self, row: Built, change: LibraryChange) -> None:
        """Remove an action and its versions, if it is there.

        Raises:
            ConflictError: It is not at this revision any more.
        """
        ...

    async def versions(self, tenant: str, name: str) -> list[Version]:
        """The versions of an action, newest first."""
        ...

    async def version(self, tenant: str, name: str, number: int) -> Version | None:
        """One version, or None."""
        ...

    async def published(self, tenant: str) -> list[Published]:
        """What is live of a tenant's library, sorted by name."""
        ...

    async def put_definition(
        self, tenant: str, name: str, digest: str, body: str, *, at: float
    ) -> None:
        """Keep what runs are started with; of one that is known only the time changes.

        Args:
            tenant: Whose it is.
            name: Name of the action.
            digest: Hash of the body.
            body: All that a call depends on, as JSON; it has the hashes of the definitions that it uses.
            at: When it was given, in seconds since the epoch; an earlier time than the known one changes nothing.
        """
        ...

    async def prune_definitions(self, *, before: float, limit: int = 100) -> int:
        """Remove definitions that no run has and no other definition uses, of all tenants.

        One that was used by others that are removed now goes with the next call.

        Args:
            before: Only those that were given last before this time, in seconds since the epoch.
            limit: No more than these.

        Returns:
            How many were removed.
        """
        ...

    async def definition(self, tenant: str, digest: str) -> str | None:
        """What was kept under a hash, or None."""
        ...

    async def runs_with(self, tenant: str, name: str, *, limit: int = 5) -> Sequence[str]:
        """Ids of runs that have not ended and were given an action of this name from the library."""
        ...

    async def put_change(self, change: LibraryChange) -> None:
        """Write down what was done without changing the action."""
        ...

    async def library_changes(
        self, tenant: str, name: str | None = None, *, cursor: str | None = None, limit: int = 50
    ) -> tuple[list[LibraryChange], str | None]:
        """A page of what was done, newest first, and the cursor of the next page."""
        ...
