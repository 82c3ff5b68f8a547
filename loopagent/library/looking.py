"""The library as it is looked at: lists, versions, complaints, previews, test calls."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from secrets import token_hex
from typing import TYPE_CHECKING, Any, TypeAlias

from loopagent.errors import RequestError
from loopagent.library import trying
from loopagent.library.definitions import Definitions
from loopagent.library.faults import unknown, wrong
from loopagent.library.naming import named
from loopagent.library.texts import Checked, check_text
from loopagent.library_port import Built, ChangeKind, LibraryChange, Version, text_hash


if TYPE_CHECKING:
    from loopagent.actions.build import FileAction
    from loopagent.actions.complaints import Complaint
    from loopagent.library.surroundings import Surroundings
    from loopagent.library.trying import Tried
    from loopagent.library_port import LibraryStore
    from loopagent.trials.action_tests import ActionTestResult

Names: TypeAlias = list[str]


class Looking:
    """What can be done with the library without changing it; the arguments are those of `Library`."""

    def __init__(self, store: LibraryStore, around: Surroundings) -> None:
        self._store = store
        self.around = around
        self.settings = around.settings
        self.definitions = Definitions(store, around)

    # ------------------------------------------------------------------ looking

    async def list(self, tenant: str) -> Sequence[Built]:
        """The actions of a tenant, sorted by name."""
        return await self._store.built_actions(tenant)

    async def get(self, tenant: str, name: str) -> Built:
        """One action.

        Raises:
            RequestError: `unknown_action` (404).
        """
        found = await self._store.built(tenant, name)
        if found is None:
            raise unknown(name)
        return found

    async def versions(self, tenant: str, name: str) -> Sequence[Version]:
        """The versions of an action, newest first.

        Raises:
            RequestError: `unknown_action` (404).
        """
        await self.get(tenant, name)
        return await self._store.versions(tenant, name)

    async def version(self, tenant: str, name: str, number: int) -> Version:
        """One version.

        Raises:
            RequestError: `unknown_action` or `unknown_version` (404).
        """
        await self.get(tenant, name)
        found = await self._store.version(tenant, name, number)
        if found is None:
            text = f"The action {name!r} has no version {number}."
            raise RequestError("unknown_version", text, status=404)
        return found

    async def changes(
        self, tenant: str, name: str | None = None, *, cursor: str | None = None, limit: int = 50
    ) -> tuple[Sequence[LibraryChange], str | None]:
        """Who did what, newest first, and the cursor of the next page; also of actions that were deleted.

        Args:
            tenant: The tenant.
            name: Only of this action.
            cursor: Where the page begins, as an earlier page gave it.
            limit: Changes on the page.
        """
        return await self._store.library_changes(tenant, name, cursor=cursor, limit=limit)

    def is_shadowed(self, name: str) -> bool:
        """Whether an action of the project's files has the name by now, and is used instead."""
        return name in self.around.code()

    def secrets(self) -> dict[str, dict[str, Any]]:
        """The secrets that texts may name: whether each is set, and for which hosts; never a value."""
        known, store = self.around.secrets or {}, self.around.means.secrets
        return {
            name: {"set": store is not None and store.get(name) is not None, "hosts": one.hosts}
            for name, one in sorted(known.items())
        }

    def servers(self) -> Names:
        """Names of the MCP servers that the operator configured."""
        return sorted(self.around.means.mcp)

    def models(self) -> Names:
        """Models that actions of kind `prompt` may name."""
        return sorted(self.around.models())

    def agents(self) -> Names:
        """Names of the agents that take actions of the library."""
        return sorted(name for name, one in self.around.agents().items() if one.accepts_actions)

    # ------------------------------------------------------------------ checking and trying

    async def check(
        self,
        tenant: str,
        text: str,
        *,
        name: str | None = None,
        files: Mapping[str, str] | None = None,
    ) -> Checked:
        """Read a text and check it against all that is around it.

        Args:
            tenant: Whose it is.
            text: The text.
            name: The name that it has to say; None for any.
            files: Its OpenAPI documents by name; None for those of the draft of this name.
        """
        if files is None:
            row = await self._store.built(tenant, name) if name is not None else None
            files = {} if row is None else row.files
        built = await self.definitions.all(tenant)
        return await asyncio.to_thread(  # a text can be made to take long
            check_text, text, files, self.around, tenant=tenant, name=name, built=built
        )

    async def lint(
        self,
        tenant: str,
        text: str,
        name: str | None = None,
        *,
        files: Mapping[str, str] | None = None,
    ) -> Sequence[Complaint]:
        """What is wrong or odd with a text, in its order; the arguments are those of `check`."""
        return (await self.check(tenant, text, name=name, files=files)).complaints

    async def preview(
        self,
        tenant: str,
        text: str,
        params: Mapping[str, Any],
        *,
        files: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """What a call would send, with names in place of secrets; nothing is sent. See `trying.shown`.

        Raises:
            RequestError: `invalid_action`, `invalid_params`, `no_request`.
        """
        action, _ = await self._usable(tenant, text, files)
        return trying.shown(action, params)

    async def try_out(
        self,
        tenant: str,
        text: str,
        params: Mapping[str, Any],
        *,
        by: str,
        files: Mapping[str, str] | None = None,
    ) -> Tried:
        """Call an action once as it is typed, for real; who did so is written down.

        Raises:
            RequestError: `invalid_action`, `invalid_params`.
        """
        action, given = await self._usable(tenant, text, files)
        means = self.around.means_for(tenant, await self.definitions.all(tenant))
        tried = await trying.call(action, params, self.around, means, given)
        detail = {"hash": text_hash(text, given), "ok": tried.outcome.ok}
        await self._store.put_change(self._change("tested", tenant, action.file.name, by, detail))
        return tried

    async def run_tests(
        self, tenant: str, text: str, *, files: Mapping[str, str] | None = None
    ) -> Sequence[ActionTestResult]:
        """Run the tests inside of a text against a stand-in, as `loopagent test` does.

        Raises:
            RequestError: `invalid_action`.
        """
        action, given = await self._usable(tenant, text, files)
        means = self.around.means_for(tenant, await self.definitions.all(tenant))
        return await trying.tests(action.file, means, given)

    async def _usable(
        self, tenant: str, text: str, files: Mapping[str, str] | None
    ) -> tuple[FileAction, Mapping[str, str]]:
        """What a text says, and its documents: those of the draft of the same name when none are given."""
        if files is None:
            row = await self._store.built(tenant, named(text))
            files = {} if row is None else row.files
        checked = await self.check(tenant, text, files=files)
        if checked.action is None:
            raise wrong(checked.wrong)
        return checked.action, files

    def _change(
        self, what: ChangeKind, tenant: str, name: str, by: str, detail: Mapping[str, Any]
    ) -> LibraryChange:
        at = self.around.clock()
        return LibraryChange(f"chg_{token_hex(8)}", tenant, name, what, by, at, dict(detail))
