"""What runs are given of the library: pinned when they start, and found again by its hash whenever they call it.

A definition says all that a call depends on: the text, its documents, and for a pipeline the definitions of the
actions of the library that it calls. So a run that waits goes on with what was shown, whatever is published meanwhile.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final, TypeVar

from loopagent.actions.build import FileAction, make_action
from loopagent.actions.format import ActionFile, PipelineRun
from loopagent.core.abilities import possible_actions
from loopagent.core.hashing import canonical_json, json_hash
from loopagent.errors import ConfigError
from loopagent.library.texts import read_text
from loopagent.library_port import RENEWED_SECONDS
from loopagent.logs import log


if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from loopagent.core.action_spec import ActionSpec
    from loopagent.core.agent_spec import AgentSpec, SubAgentSpec
    from loopagent.library.surroundings import Surroundings
    from loopagent.library_port import LibraryStore, Published

KEPT: Final = 500
"""Definitions that are kept ready; others are read again."""
T = TypeVar("T")


class Recent(OrderedDict[Any, T]):
    """The values that were asked for last."""

    def keep(self, key: Any, value: T) -> T:
        """Remember a value, and forget the oldest when there are too many."""
        self[key] = value
        if len(self) > KEPT:
            self.popitem(last=False)
        return value


class Definitions:
    """Pins what runs are given, and makes it callable.

    Args:
        store: Where the library is kept.
        around: What actions are carried out with.
    """

    def __init__(self, store: LibraryStore, around: Surroundings) -> None:
        self._store = store
        self._around = around
        self._made: Recent[FileAction] = Recent()
        self._kept: Recent[float] = Recent()
        self._bodies: Recent[dict[str, Any]] = Recent()

    async def granted(
        self, spec: AgentSpec, tenant: str, live: Sequence[Published] | None = None
    ) -> AgentSpec:
        """The definition of an agent, and of those below it, with the actions that the library of a tenant gives them.

        What an agent has itself, and what files of the project have, comes first. An action that cannot be used in
        this process is left out, with a warning in the log.

        Args:
            spec: The agent.
            tenant: Whose library.
            live: What is live of it; None to look.
        """
        if live is None:
            live = await self._store.published(tenant)
        if not live:
            return spec
        code = self._around.code()
        pinning = _Pinning(self, tenant, {one.name: one for one in live if one.name not in code})
        return await self._with(spec, pinning)

    async def _with(self, spec: AgentSpec, pinning: _Pinning) -> AgentSpec:
        own = {one.name for one in (*possible_actions(spec), *spec.client_tools, *spec.actions)}
        wanted = [one.name for one in pinning.live.values() if spec.name in one.agents]
        free = [name for name in wanted if name not in own] if spec.accepts_actions else []
        found = [await self._given(pinning, name) for name in free]
        actions = (*spec.actions, *(one for one in found if one is not None))
        below = tuple([await self._below(one, pinning) for one in spec.agents])
        return spec.model_copy(update={"actions": actions, "agents": below})

    async def _below(self, sub: SubAgentSpec, pinning: _Pinning) -> SubAgentSpec:
        return sub.model_copy(update={"spec": await self._with(sub.spec, pinning)})

    async def _given(self, pinning: _Pinning, name: str) -> ActionSpec | None:
        try:
            digest = await pinning.digest(name)
            made = await self.action(pinning.tenant, digest)
        except ConfigError as error:
            log.warning("library.unusable", action=name, reason=str(error))
            return None
        return None if made is None else made.spec

    async def all(self, tenant: str) -> dict[str, FileAction]:
        """What is live in a tenant's library and can be used here, by name; nothing is written."""
        live = {one.name: one for one in await self._store.published(tenant)}
        pinning = _Pinning(self, tenant, live, keep=False)
        found: dict[str, FileAction] = {}
        for name in live:
            try:
                made = await self.action(tenant, await pinning.digest(name), pinning.bodies)
            except ConfigError:
                continue
            if made is not None:
                found[name] = made
        return found

    async def action(
        self, tenant: str, digest: str, bodies: Mapping[str, Any] | None = None
    ) -> FileAction | None:
        """The action of a definition; None when there is no such definition.

        Args:
            tenant: Whose it is.
            digest: Its hash.
            bodies: Definitions that are known by their hashes, whether or not they are kept.

        Raises:
            ConfigError: It cannot be carried out here any more.
        """
        known = self._made.get((tenant, digest))
        if known is not None:
            return known
        body = (bodies or {}).get(digest)
        if body is None:
            text = await self._store.definition(tenant, digest)
            if text is None:
                return None
            body = json.loads(text)
        built: dict[str, FileAction] = {}
        for name, used in body["uses"].items():
            step = await self.action(tenant, used, bodies)
            if step is not None:
                built[name] = step
        means = self._around.means_for(tenant, built)
        made = make_action(readable(body["text"]), means, None, body["files"])
        made.spec = made.spec.model_copy(update={"definition": digest})
        return self._made.keep((tenant, digest), made)

    async def version(self, tenant: str, live: Published) -> dict[str, Any]:
        """Text and documents of what is live.

        Raises:
            ConfigError: It was taken away meanwhile.
        """
        key = (tenant, live.name, live.number)
        known = self._bodies.get(key)
        if known is not None:
            return known
        found = await self._store.version(tenant, live.name, live.number)
        if found is None:
            raise ConfigError(f"version {live.number} of {live.name} is gone")
        steps = steps_of(readable(found.text))
        body = {"text": found.text, "files": dict(found.files), "steps": steps}
        return self._bodies.keep(key, body)

    async def put(self, tenant: str, digest: str, body: Mapping[str, Any]) -> None:
        """Keep a definition, unless this process did so lately."""
        key, at = (tenant, digest), self._around.clock()
        kept = self._kept.get(key)
        if kept is None or not 0 <= at - kept < RENEWED_SECONDS:
            whole = canonical_json(body)
            await self._store.put_definition(tenant, body["name"], digest, whole, at=at)
            self._kept.keep(key, at)

    @property
    def code(self) -> Callable[[], Mapping[str, Any]]:
        """The actions that the process has itself."""
        return self._around.code


class _Pinning:
    """Definitions of what is live at one moment; they are kept only where a run is given them."""

    def __init__(
        self,
        definitions: Definitions,
        tenant: str,
        live: Mapping[str, Published],
        *,
        keep: bool = True,
    ) -> None:
        self.bodies: dict[str, Any] = {}
        self._keep = keep
        self.tenant = tenant
        self.live = live
        self._definitions = definitions
        self._digests: dict[str, str] = {}

    async def digest(self, name: str, above: tuple[str, ...] = ()) -> str:
        """The hash under which what is live of a name is kept.

        Raises:
            ConfigError: A pipeline names something that is not there, or itself.
        """
        if name in self._digests:
            return self._digests[name]
        if name in above:
            raise ConfigError(f"{name} leads back to itself")
        version = await self._definitions.version(self.tenant, self.live[name])
        uses: dict[str, str] = {}
        for step in version["steps"]:
            if step in self._definitions.code():
                continue
            if step not in self.live:
                raise ConfigError(f"{name} calls {step}, which is not published")
            uses[step] = await self.digest(step, (*above, name))
        body = {"name": name, "text": version["text"], "files": version["files"], "uses": uses}
        digest = self._digests[name] = json_hash(body)
        self.bodies[digest] = body
        if self._keep:
            await self._definitions.put(self.tenant, digest, body)
        return digest


def readable(text: str) -> ActionFile:
    """The action of a text that was published.

    Raises:
        ConfigError: This version of loopagent cannot read it.
    """
    reading = read_text(text)
    if len(reading.actions) != 1:
        raise ConfigError("its text cannot be used any more", reading.problems)
    return reading.actions[0]


def steps_of(file: ActionFile) -> list[str]:
    """Names of the actions that an action calls."""
    run = file.run
    return sorted({one.action for one in run.steps}) if isinstance(run, PipelineRun) else []
