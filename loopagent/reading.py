"""The reading half of an app: runs, their trees, events and open requests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from loopagent.core.loop_view import UNATTENDED
from loopagent.errors import RequestError
from loopagent.runtime.follow import follow
from loopagent.tree import attended, tree, view


if TYPE_CHECKING:
    from loopagent.artifact_port import ArtifactFilter, ArtifactRow
    from loopagent.ports import RequestRow, RunRow, Store
    from loopagent.runtime.bus import Bus
    from loopagent.runtime.engine import Engine
    from loopagent.runview import RunView


class Reading:
    """What `App` can be asked; nothing here changes anything."""

    store: Store
    bus: Bus
    engine: Engine
    closing: bool
    _clock: Callable[[], float]

    async def get(self, run_id: str) -> RunView:
        """The run as it is now.

        Raises:
            RequestError: `unknown_run` (404).
        """
        return await view(run_id, self.store, self.engine)

    async def tree(self, run_id: str) -> list[RunRow]:
        """A root run and every run below it, in the order they were made; see `loopagent.tree.tree`."""
        return await tree(run_id, self.store, self.engine)

    async def wait(self, run_id: str, *, timeout_seconds: float | None = None) -> RunView:
        """Wait until the run ends or waits for people, or the time is over."""
        deadline = None if timeout_seconds is None else self._clock() + timeout_seconds
        while True:
            left = None if deadline is None else max(0.0, deadline - self._clock())
            await self.engine.runs.idle(run_id, left)
            view = await self.get(run_id)
            resting = view.state.ended or view.waiting
            if (
                not resting
                and not self.engine.elsewhere.goes_on
                and not self.engine.runs.works_on(run_id)
            ):
                # Nobody works on it: it waits to be resumed.
                free = await self.store.owner(run_id) is None
                resting = free or view.loop.reason == UNATTENDED
            if resting or self.closing or (deadline is not None and self._clock() >= deadline):
                return view
            await asyncio.sleep(0.05 if left is None else min(0.05, left))

    async def events(
        self, run_id: str, *, after: int = 0, live: bool = True
    ) -> AsyncGenerator[dict[str, Any], None]:
        """Public events of a run: those stored after `after`, then as they happen, until it ends.

        Ephemeral ones (`reply.delta`, `action.progress`, `run.idle`) have no `seq` and come only live. A reader
        whose position is not kept (any more) first gets `stream.reset`: `{after, run}`, the position that its
        events go on from and the run as it is now.

        Raises:
            RequestError: `unknown_run` (404).
        """
        run = await self.get(run_id)
        oldest = await self.store.oldest_event(run_id)
        if after > run.seq or after + 1 < oldest:
            after = oldest - 1
            yield {"type": "stream.reset", "runId": run_id, "after": after, "run": run.public()}
            if run.state.ended and after >= run.seq:
                return
        following = follow(
            self.store, self.bus, run_id, after=after, live=live, closing=lambda: self.closing
        )
        async with aclosing(following):
            async for event in following:
                yield event

    async def told_all(self, run_id: str, after: int) -> bool:
        """Whether a run and all below it have ended, and a reader at this position has heard everything they told.

        Raises:
            RequestError: `unknown_run` (404).
        """
        run = await self.get(run_id)
        known = await self.store.oldest_event(run_id) - 1 <= after <= run.seq
        if not (run.state.ended and known) or await self.store.events(run_id, after=after, limit=1):
            return False
        return all(one.status != "running" for one in await self.store.tree(run_id))

    async def need_log(self, run_id: str) -> None:
        """Refuse what needs the whole log of a run if it is not kept any more.

        Raises:
            RequestError: `log_gone` (410).
        """
        if await self.store.oldest_event(run_id) > 1:
            message = f"The log of run {run_id!r} was removed after its time; what the run came to is kept."
            raise RequestError("log_gone", message, status=410)

    async def runs(
        self,
        *,
        agent: str | None = None,
        status: str | None = None,
        children: bool = False,
        tenant: str | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> tuple[list[RunRow], str | None]:
        """A page of runs, newest first, and the next cursor; with `children` also those of sub-agents."""
        rows, further = await self.store.runs(
            agent=agent,
            status=status,
            roots=not children,
            tenant=tenant,
            cursor=cursor,
            limit=limit,
        )
        return await attended(rows, self.engine), further

    async def artifacts(
        self, wanted: ArtifactFilter, *, cursor: str | None = None, limit: int = 50
    ) -> tuple[list[ArtifactRow], str | None]:
        """A page of what runs know of stored texts and files, newest first, and the next cursor."""
        return await self.store.artifacts(wanted, cursor=cursor, limit=limit)

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
        """A page of requests to people, oldest or `newest` first, and the next cursor."""
        return await self.store.requests(
            status=status,
            run_id=run_id,
            tenant=tenant,
            newest=newest,
            cursor=cursor,
            limit=limit,
        )
