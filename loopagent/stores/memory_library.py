"""The library of actions, in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopagent.library_port import Built, LibraryChange, Published, Version
from loopagent.stores import records


if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from loopagent.core.agent_spec import AgentSpec

Place = tuple[str, str]
"""A tenant and a name."""


class MemoryLibrary:
    """The part of a store in memory that keeps the library; see `LibraryStore`."""

    _runs: dict[str, Any]

    def __init__(self) -> None:
        super().__init__()
        self._built: dict[Place, Built] = {}
        self._versions: dict[Place, list[Version]] = {}
        self._definitions: dict[Place, tuple[str, float]] = {}
        self._changes: dict[str, LibraryChange] = {}

    async def built(self, tenant: str, name: str) -> Built | None:
        """One action; see `LibraryStore.built`."""
        return self._built.get((tenant, name))

    async def built_actions(self, tenant: str) -> list[Built]:
        """The actions of a tenant; see `LibraryStore.built_actions`."""
        return [one for (whose, _), one in sorted(self._built.items()) if whose == tenant]

    async def save_built(
        self,
        row: Built,
        change: LibraryChange,
        *,
        version: Version | None = None,
        former: str | None = None,
    ) -> None:
        """Keep an action as it is now; see `LibraryStore.save_built`."""
        place, before = (row.tenant, row.name), (row.tenant, former or row.name)
        known = self._built.get(before)
        if (0 if known is None else known.revision) != row.revision - 1:
            raise records.built_moved_on(row.name)
        if before != place and place in self._built:
            raise records.built_moved_on(row.name)
        self._built.pop(before, None)
        self._built[place] = row
        if version is not None:
            self._versions.setdefault(place, []).append(version)
        await self.put_change(change)

    async def delete_built(self, row: Built, change: LibraryChange) -> None:
        """Remove an action and its versions; see `LibraryStore.delete_built`."""
        place = (row.tenant, row.name)
        known = self._built.get(place)
        if known is None:
            return
        if known.revision != row.revision:
            raise records.built_moved_on(row.name)
        del self._built[place]
        self._versions.pop(place, None)
        await self.put_change(change)

    async def versions(self, tenant: str, name: str) -> list[Version]:
        """The versions of an action; see `LibraryStore.versions`."""
        return self._versions.get((tenant, name), [])[::-1]

    async def version(self, tenant: str, name: str, number: int) -> Version | None:
        """One version; see `LibraryStore.version`."""
        found = self._versions.get((tenant, name), [])
        return next((one for one in found if one.number == number), None)

    async def published(self, tenant: str) -> list[Published]:
        """What is live; see `LibraryStore.published`."""
        return [
            Published(one.name, one.published, one.published_hash, one.agents)
            for one in await self.built_actions(tenant)
            if one.published is not None
        ]

    async def put_definition(
        self,
        tenant: str,
        name: str,  # noqa: ARG002 - runs are looked through by their own definitions
        digest: str,
        body: str,
        *,
        at: float,
    ) -> None:
        """Keep what runs are started with; see `LibraryStore.put_definition`."""
        body, before = self._definitions.get((tenant, digest), (body, at))
        self._definitions[tenant, digest] = (body, max(before, at))

    async def prune_definitions(self, *, before: float, limit: int = 100) -> int:
        """Remove definitions that no run has; see `LibraryStore.prune_definitions`."""
        used = {
            (one.state.tenant, digest)
            for one in self._runs.values()
            for digest in _digests(one.state.spec)
        }
        bodies = [(place[0], body) for place, (body, _) in self._definitions.items()]
        unused = [
            place
            for place, (_, at) in self._definitions.items()
            if at < before
            and place not in used
            and not any(whose == place[0] and place[1] in body for whose, body in bodies)
        ]
        for place in unused[:limit]:
            del self._definitions[place]
        return len(unused[:limit])

    async def definition(self, tenant: str, digest: str) -> str | None:
        """What was kept under a hash; see `LibraryStore.definition`."""
        found = self._definitions.get((tenant, digest))
        return None if found is None else found[0]

    async def runs_with(self, tenant: str, name: str, *, limit: int = 5) -> list[str]:
        """Open runs that were given an action; see `LibraryStore.runs_with`."""
        states = [one.state for one in self._runs.values() if one.state.tenant == tenant]
        return [one.id for one in states if not one.ended and _has(one.spec, name)][:limit]

    async def put_change(self, change: LibraryChange) -> None:
        """Write down what was done; see `LibraryStore.put_change`."""
        self._changes.setdefault(change.id, change)

    async def library_changes(
        self, tenant: str, name: str | None = None, *, cursor: str | None = None, limit: int = 50
    ) -> tuple[list[LibraryChange], str | None]:
        """A page of what was done; see `LibraryStore.library_changes`."""
        before, size = records.decode_cursor("library", cursor), records.page_size(limit)
        fitting = [
            (key, one)
            for key, one in reversed(list(enumerate(self._changes.values(), 1)))
            if one.tenant == tenant and name in (None, one.name) and (not before or key < before)
        ]
        return [one for _, one in fitting[:size]], records.next_cursor("library", fitting, size)


def _digests(spec: AgentSpec) -> Iterator[str]:
    """Hashes of what an agent, and those below it, were given by the library."""
    yield from (one.definition for one in spec.actions if one.definition)
    for one in spec.agents:
        yield from _digests(one.spec)


def _has(spec: AgentSpec, name: str) -> bool:
    """Whether an agent, or one below it, was given an action of this name by the library."""
    own = any(one.name == name and one.definition for one in spec.actions)
    return own or any(_has(one.spec, name) for one in spec.agents)
