"""The library: actions that people build while the server runs, per tenant, with versions, grants and an audit trail.

Nothing that is typed is lost: a draft may be faulty. What is published was read without a complaint, and is what was
shown to whoever published it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from loopagent.core.text import clean_text
from loopagent.errors import ConflictError, RequestError
from loopagent.library.faults import StaleError, stale, wrong
from loopagent.library.looking import Looking
from loopagent.library.naming import checked_files, checked_name, renamed, size_of
from loopagent.library_port import Built, ChangeKind, Version, text_hash


_How: TypeAlias = tuple[str, tuple[str, ...], ChangeKind]
"""A note, the agents that get it, and what is written down."""
__all__ = ["Library", "StaleError"]


class Library(Looking):
    """The actions of all tenants that were built in the page.

    Args:
        store: Where they are kept.
        around: What they are checked against and carried out with.
    """

    async def save(
        self,
        tenant: str,
        name: str,
        text: str,
        *,
        expected_hash: str | None,
        by: str,
        files: Mapping[str, str] | None = None,
    ) -> Built:
        """Keep a draft, whether or not it can be read.

        Args:
            tenant: Whose it is.
            name: Its name; a new one makes a new action.
            text: The text, as typed.
            expected_hash: `draft_hash` of the draft that was changed; None or empty for a new action.
            by: Who saves it.
            files: Its OpenAPI documents by name; None leaves them as they are.

        Raises:
            StaleError: Somebody else saved meanwhile; it has what they saved.
            RequestError: `invalid_name`, `invalid_files`, `too_large` (413), `too_many` (409).
        """
        row = await self._store.built(tenant, name)
        if (row.draft_hash if row is not None else "") != (expected_hash or ""):
            raise stale(name, row)
        text = clean_text(text)
        kept = checked_files(files) if files is not None else row.files if row is not None else {}
        self._check_size(text, kept)
        digest = text_hash(text, kept)
        if row is None:
            await self._check_new(tenant, name)
            row = Built(tenant, name, "", "", revision=0)
        elif row.draft_hash == digest:
            return row
        after = replace(row, draft=text, draft_hash=digest, files=kept)
        return await self._keep(after, "saved", by, {"hash": digest})

    async def publish(
        self,
        tenant: str,
        name: str,
        *,
        draft_hash: str,
        by: str,
        agents: Iterable[str] | None = None,
        note: str = "",
    ) -> Built:
        """Make the draft what new runs are given.

        Args:
            tenant: Whose it is.
            name: Which.
            draft_hash: Hash of the draft that was shown.
            by: Who publishes.
            agents: Agents that get it from now on; None leaves them as they are.
            note: What is new.

        Raises:
            StaleError: The draft is another one by now.
            RequestError: `unknown_action` (404), `invalid_action`, `unknown_agent`, `refuses_actions`.
        """
        row = await self.get(tenant, name)
        if row.draft_hash != draft_hash:
            raise stale(name, row)
        given = row.agents if agents is None else self._checked_agents(agents)
        if row.published_hash == draft_hash:
            return await self._grant(row, given, by)
        await self._refuse_wrong(tenant, name, row.draft, row.files)
        how: _How = (note, given, "published")
        return await self._go_live(row, (row.draft, row.files), by, how)

    async def rollback(self, tenant: str, name: str, number: int, *, by: str) -> Built:
        """Make an older version live again, as a new version; a draft that says something else stays.

        Raises:
            StaleError: Somebody else changed the action meanwhile.
            RequestError: `unknown_action`, `unknown_version` (404), `invalid_action`: it cannot be used any more.
        """
        row, old = await self.get(tenant, name), await self.version(tenant, name, number)
        if row.published_hash == old.hash:
            return row
        await self._refuse_wrong(tenant, name, old.text, old.files)
        newest = await self._store.version(tenant, name, row.latest)
        if newest is not None and row.draft_hash in (newest.hash, row.published_hash):
            row = replace(row, draft=old.text, draft_hash=old.hash, files=old.files)
        how: _How = (f"Version {number} again.", row.agents, "rolled_back")
        return await self._go_live(row, (old.text, old.files), by, how)

    async def _go_live(
        self,
        row: Built,
        what_is_live: tuple[str, Mapping[str, str]],
        by: str,
        how: _How,
    ) -> Built:
        (text, files), (note, agents, what) = what_is_live, how
        digest, number = text_hash(text, files), row.latest + 1
        at = self.around.clock()
        version = Version(number, text, digest, by, at, clean_text(note).strip(), dict(files))
        after = replace(row, published=number, published_hash=digest, latest=number, agents=agents)
        detail = {"version": number, "hash": digest, "agents": agents, "note": version.note}
        return await self._keep(after, what, by, detail, version)

    async def grant(self, tenant: str, name: str, agents: Iterable[str], *, by: str) -> Built:
        """Say which agents get the action; runs that go on keep what they were given.

        Raises:
            StaleError: Somebody else changed the action meanwhile.
            RequestError: `unknown_action` (404), `unknown_agent`, `refuses_actions`.
        """
        return await self._grant(await self.get(tenant, name), self._checked_agents(agents), by)

    async def _grant(self, row: Built, agents: tuple[str, ...], by: str) -> Built:
        if agents == row.agents:
            return row
        return await self._keep(replace(row, agents=agents), "granted", by, {"agents": agents})

    async def retire(self, tenant: str, name: str, *, by: str) -> Built:
        """Publish nothing of it any more; versions and draft stay.

        Raises:
            StaleError: Somebody else changed the action meanwhile.
            RequestError: `unknown_action` (404).
        """
        row = await self.get(tenant, name)
        if row.published is None:
            return row
        after = replace(row, published=None, published_hash="")
        return await self._keep(after, "retired", by, {"version": row.published})

    async def rename(self, tenant: str, name: str, new_name: str, *, by: str) -> Built:
        """Give a draft that was never published another name, in its text too.

        Raises:
            StaleError: Somebody else changed the action meanwhile.
            RequestError: `unknown_action` (404), `invalid_name`, `published` or `taken` (409).
        """
        row = await self.get(tenant, name)
        if row.latest:
            text = (
                f"{name!r} was published, and runs know it by its name; save a new action instead."
            )
            raise RequestError("published", text, status=409)
        if new_name == name:
            return row
        checked_name(new_name)
        if await self._store.built(tenant, new_name) is not None:
            raise RequestError("taken", f"There is an action {new_name!r} already.", status=409)
        text = renamed(row.draft, name, new_name)
        after = replace(row, name=new_name, draft=text, draft_hash=text_hash(text, row.files))
        return await self._keep(after, "renamed", by, {"former": name}, former=name)

    async def delete(self, tenant: str, name: str, *, by: str) -> None:
        """Remove an action with its versions; what runs were started with stays with them.

        Raises:
            StaleError: Somebody else changed the action meanwhile.
            RequestError: `unknown_action` (404), `published` or `in_use` (409).
        """
        row = await self.get(tenant, name)
        if row.published is not None:
            raise RequestError("published", f"{name!r} is published; retire it first.", status=409)
        runs = await self._store.runs_with(tenant, name)
        if runs:
            text = f"Runs that have not ended may still call {name!r}: {', '.join(runs)}."
            raise RequestError("in_use", text, status=409)
        try:
            await self._store.delete_built(row, self._change("deleted", tenant, name, by, {}))
        except ConflictError as error:
            raise stale(name, await self._store.built(tenant, name)) from error

    async def _keep(
        self,
        row: Built,
        what: ChangeKind,
        by: str,
        detail: Mapping[str, Any],
        version: Version | None = None,
        *,
        former: str | None = None,
    ) -> Built:
        change = self._change(what, row.tenant, row.name, by, detail)
        after = replace(row, revision=row.revision + 1, updated_at=change.at, updated_by=by)
        try:
            await self._store.save_built(after, change, version=version, former=former)
        except ConflictError as error:
            place = former or row.name
            raise stale(place, await self._store.built(row.tenant, place)) from error
        return after

    # ------------------------------------------------------------------ what is refused

    async def _refuse_wrong(
        self, tenant: str, name: str, text: str, files: Mapping[str, str]
    ) -> None:
        checked = await self.check(tenant, text, name=name, files=files)
        if checked.wrong:
            raise wrong(checked.wrong)

    def _check_size(self, text: str, files: Mapping[str, str]) -> None:
        for what, found, most in (
            ("text", size_of(text), self.settings.max_text_bytes),
            ("documents", sum(map(size_of, files.values())), self.settings.max_files_bytes),
        ):
            if found > most:
                said = f"The {what} of an action may have {most} bytes; these are {found}."
                raise RequestError("too_large", said, status=413)

    async def _check_new(self, tenant: str, name: str) -> None:
        checked_name(name)
        if len(await self._store.built_actions(tenant)) >= self.settings.max_actions:
            most = self.settings.max_actions
            text = f"There are {most} actions, which is the most; delete one first."
            raise RequestError("too_many", text, status=409)

    def _checked_agents(self, names: Iterable[str]) -> tuple[str, ...]:
        known, given = self.around.agents(), sorted(set(names))
        for name in given:
            if name not in known:
                text = f"There is no agent {name!r}; known: {', '.join(sorted(known)) or 'none'}."
                raise RequestError("unknown_agent", text)
            if not known[name].accepts_actions:
                text = f"The agent {name} takes no actions of the library: its file says acceptsActions: false."
                raise RequestError("refuses_actions", text)
        return tuple(given)
