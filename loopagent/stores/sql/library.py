"""The library of actions, in a database."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from loopagent.library_port import Built, LibraryChange, Published, Version
from loopagent.stores import records
from loopagent.stores.sql.tables import Listing, Tables


if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_BUILT: Final = "SELECT tenant, name, revision, published, agents, body FROM built_action"
_FIRST: Final = """
INSERT INTO built_action (tenant, name, revision, published, agents, body) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (tenant, name) DO NOTHING RETURNING revision
"""
_NEXT: Final = """
UPDATE built_action SET name = $2, revision = $3, published = $4, agents = $5, body = $6
WHERE tenant = $1 AND name = $7 AND revision = $8 AND NOT EXISTS
  (SELECT 1 FROM built_action AS other WHERE other.tenant = $1 AND other.name = $2 AND other.name <> $7)
RETURNING revision
"""
_REMOVE: Final = """
DELETE FROM built_action WHERE tenant = $1 AND name = $2 AND revision = $3 RETURNING revision
"""
_REMOVE_VERSIONS: Final = "DELETE FROM built_version WHERE tenant = $1 AND name = $2"
_PUT_VERSION: Final = """
INSERT INTO built_version (tenant, name, number, hash, body) VALUES ($1, $2, $3, $4, $5)
"""
_VERSIONS: Final = """
SELECT number, hash, body FROM built_version WHERE tenant = $1 AND name = $2 ORDER BY number DESC
"""
_VERSION: Final = """
SELECT number, hash, body FROM built_version WHERE tenant = $1 AND name = $2 AND number = $3
"""
_PUBLISHED: Final = """
SELECT live.name, live.published, version.hash, live.agents
FROM built_action AS live JOIN built_version AS version
  ON version.tenant = live.tenant AND version.name = live.name AND version.number = live.published
WHERE live.tenant = $1
"""
_PUT_DEFINITION: Final = """
INSERT INTO definition (tenant, hash, name, body, given_at) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (tenant, hash) DO UPDATE SET given_at =
  CASE WHEN excluded.given_at > definition.given_at THEN excluded.given_at ELSE definition.given_at END
RETURNING hash
"""
_DEFINITION: Final = "SELECT body FROM definition WHERE tenant = $1 AND hash = $2"
_UNUSED: Final = """
WITH kept AS MATERIALIZED (SELECT DISTINCT tenant, spec FROM run)
SELECT tenant, hash FROM definition WHERE given_at < $1
AND NOT EXISTS
  (SELECT 1 FROM kept JOIN spec ON spec.key = kept.spec
   WHERE kept.tenant = definition.tenant AND spec.body LIKE '%' || definition.hash || '%')
AND NOT EXISTS
  (SELECT 1 FROM definition AS above
   WHERE above.tenant = definition.tenant AND above.body LIKE '%' || definition.hash || '%')
LIMIT $2
"""
_PRUNE: Final = """
DELETE FROM definition WHERE tenant = $1 AND hash = $2 AND given_at < $3 RETURNING hash
"""
_RUNS_WITH: Final = """
SELECT run.id FROM run JOIN spec ON spec.key = run.spec
WHERE run.tenant = $1 AND run.status = 'running' AND EXISTS
  (SELECT 1 FROM definition
   WHERE definition.tenant = $1 AND definition.name = $2 AND spec.body LIKE '%' || definition.hash || '%')
ORDER BY run.key LIMIT $3
"""
_PUT_CHANGE: Final = """
INSERT INTO library_change (id, tenant, name, body) VALUES ($1, $2, $3, $4)
ON CONFLICT (id) DO UPDATE SET name = excluded.name RETURNING id
"""
_CHANGES: Final = "SELECT key, id, tenant, name, body FROM library_change"
_COLUMNS: Final = frozenset({"tenant", "name", "revision", "published", "agents"})


class LibraryTables(Tables):
    """Keeps the library in the database of a store; see `LibraryStore`."""

    async def built(self, tenant: str, name: str) -> Built | None:
        """One action; see `LibraryStore.built`."""
        found = await self._fetched(f"{_BUILT} WHERE tenant = $1 AND name = $2", tenant, name)
        return _built(found[0]) if found else None

    async def built_actions(self, tenant: str) -> list[Built]:
        """The actions of a tenant; see `LibraryStore.built_actions`."""
        found = await self._fetched(f"{_BUILT} WHERE tenant = $1", tenant)
        return sorted(map(_built, found), key=lambda one: one.name)

    async def save_built(
        self,
        row: Built,
        change: LibraryChange,
        *,
        version: Version | None = None,
        former: str | None = None,
    ) -> None:
        """Keep an action as it is now; see `LibraryStore.save_built`."""
        columns = (row.tenant, row.name, row.revision, row.published, _json(row.agents))
        values = (*columns, _json(_rest(asdict(row), _COLUMNS)))
        before = (former or row.name, row.revision - 1)
        first = (_FIRST, values) if row.revision == 1 else (_NEXT, (*values, *before))
        steps = [] if version is None else [(_PUT_VERSION, _version_values(row, version))]
        done = await self._put(first, *steps, (_PUT_CHANGE, _change_values(change)))
        # An answer may have been lost: then it was this very change that got in the way.
        if not done.rows and await self.built(row.tenant, row.name) != row:
            raise records.built_moved_on(row.name)

    async def delete_built(self, row: Built, change: LibraryChange) -> None:
        """Remove an action and its versions; see `LibraryStore.delete_built`."""
        whose = (row.tenant, row.name)
        steps = ((_REMOVE_VERSIONS, whose), (_PUT_CHANGE, _change_values(change)))
        done = await self._change((_REMOVE, (*whose, row.revision)), *steps)
        if not done.rows and await self.built(*whose) is not None:
            raise records.built_moved_on(row.name)

    async def versions(self, tenant: str, name: str) -> list[Version]:
        """The versions of an action; see `LibraryStore.versions`."""
        return [_version(one) for one in await self._fetched(_VERSIONS, tenant, name)]

    async def version(self, tenant: str, name: str, number: int) -> Version | None:
        """One version; see `LibraryStore.version`."""
        found = await self._fetched(_VERSION, tenant, name, number)
        return _version(found[0]) if found else None

    async def published(self, tenant: str) -> list[Published]:
        """What is live; see `LibraryStore.published`."""
        found = await self._fetched(_PUBLISHED, tenant)
        live = [
            Published(name, number, digest, tuple(json.loads(agents)))
            for name, number, digest, agents in found
        ]
        return sorted(live, key=lambda one: one.name)

    async def put_definition(
        self, tenant: str, name: str, digest: str, body: str, *, at: float
    ) -> None:
        """Keep what runs are started with; see `LibraryStore.put_definition`."""
        await self._put((_PUT_DEFINITION, (tenant, digest, name, body, at)))

    async def prune_definitions(self, *, before: float, limit: int = 100) -> int:
        """Remove definitions that no run has; see `LibraryStore.prune_definitions`."""
        # Looking takes long and holds nobody up; what is given to a run meanwhile is spared for its new time.
        found = await self._fetched(_UNUSED, before, limit)
        gone = [await self._change((_PRUNE, (tenant, digest, before))) for tenant, digest in found]
        return sum(len(one.rows) for one in gone)

    async def definition(self, tenant: str, digest: str) -> str | None:
        """What was kept under a hash; see `LibraryStore.definition`."""
        found = await self._fetched(_DEFINITION, tenant, digest)
        return str(found[0][0]) if found else None

    async def runs_with(self, tenant: str, name: str, *, limit: int = 5) -> list[str]:
        """Open runs that were given an action; see `LibraryStore.runs_with`."""
        return [str(one[0]) for one in await self._fetched(_RUNS_WITH, tenant, name, limit)]

    async def put_change(self, change: LibraryChange) -> None:
        """Write down what was done; see `LibraryStore.put_change`."""
        await self._put((_PUT_CHANGE, _change_values(change)))

    async def library_changes(
        self, tenant: str, name: str | None = None, *, cursor: str | None = None, limit: int = 50
    ) -> tuple[list[LibraryChange], str | None]:
        """A page of what was done; see `LibraryStore.library_changes`."""
        wanted = {"tenant = @": tenant, "name = @": name}
        return await self._page(_LISTED, wanted, cursor=cursor, limit=limit)


def _built(row: Sequence[Any]) -> Built:
    tenant, name, revision, published, agents, body = row
    about = {"revision": revision, "published": published, "agents": tuple(json.loads(agents))}
    return Built(tenant=tenant, name=name, **about, **json.loads(body))


def _version_values(row: Built, version: Version) -> Sequence[Any]:
    body = _json(_rest(asdict(version), frozenset({"number", "hash"})))
    return (row.tenant, row.name, version.number, version.hash, body)


def _version(row: Sequence[Any]) -> Version:
    number, digest, body = row
    return Version(number=number, hash=digest, **json.loads(body))


def _change_values(change: LibraryChange) -> Sequence[Any]:
    body = _json(_rest(asdict(change), frozenset({"id", "tenant", "name"})))
    return (change.id, change.tenant, change.name, body)


def _change(row: Sequence[Any]) -> LibraryChange:
    _, change_id, tenant, name, body = row
    return LibraryChange(id=change_id, tenant=tenant, name=name, **json.loads(body))


def _rest(values: Mapping[str, Any], columns: frozenset[str]) -> dict[str, Any]:
    """What the columns do not say."""
    return {name: one for name, one in values.items() if name not in columns}


def _json(value: Any) -> str:
    return records.json_text("an action of the library", value)


_LISTED: Final = Listing("library", _CHANGES, "key", _change)
