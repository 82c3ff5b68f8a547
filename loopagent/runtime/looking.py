"""Looking into artifacts beside the loop: in a thread, for a bounded time."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

from loopagent.artifacts import look
from loopagent.artifacts.source import Source
from loopagent.core.outcome import Outcome
from loopagent.core.payload_view import HANDLE as PAYLOAD
from loopagent.core.payload_view import seen_json
from loopagent.runtime.threads import BusyError, Threads


if TYPE_CHECKING:
    from collections.abc import Callable

    from loopagent.core.agent_spec import Limits
    from loopagent.core.effects import ReadArtifact
    from loopagent.core.state import RunState
    from loopagent.ports import Store


MAX_THREADS = 4
"""Looks that go on side by side in one process."""
MAX_STUCK = 16
"""Looks that took too long and still go on before no further one is begun."""
GRACE_SECONDS = 1.0
"""How long a look that was told to stop may still take."""


@dataclass(frozen=True, slots=True)
class Known:
    """An artifact as far as looking into it needs to know it."""

    artifact_id: str
    kind: str
    name: str


class Looker:
    """Performs `ReadArtifact` for all runs of a process, and looks for people."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._threads: Threads | None = None

    async def read(self, run: RunState, effect: ReadArtifact) -> Outcome:
        """Fetch the artifact, which must be the run's own, or its payload, and use the tool on it."""
        known, limits = (
            Known(effect.artifact_id, effect.artifact_kind, effect.name),
            run.spec.limits,
        )
        if known.artifact_id == PAYLOAD:
            payload = seen_json(run).encode("utf-8", "replace")
            source: Source | None = _source(payload, known, limits)
        else:
            source = await self.source(run.id, known, limits)
        if source is None:
            return Outcome.failed("no_artifact", f"{effect.handle} is not kept any more.")
        call = partial(look, source, effect.tool, effect.params)
        return await self.bounded(call, limits.max_artifact_seconds)

    async def source(self, run_id: str, known: Known, limits: Limits) -> Source | None:
        """What tools read; the time for it begins now. None when it is not kept any more."""
        stored = await self._store.artifact(run_id, known.artifact_id)
        return None if stored is None else _source(stored.content, known, limits)

    async def bounded(self, call: Callable[[], Outcome], seconds: float) -> Outcome:
        """Look in a thread, for no longer than this."""
        if self._threads is None:
            self._threads = Threads(MAX_THREADS, MAX_STUCK)
        loop_ends_at = asyncio.get_running_loop().time() + seconds + GRACE_SECONDS
        try:
            work = await self._threads.start(call, ends_at=loop_ends_at)
        except BusyError as error:
            return Outcome.failed("busy", f"Artifacts cannot be read now: {error}.")
        try:
            await asyncio.wait((work.result,), timeout=seconds + GRACE_SECONDS)
        finally:
            if not work.result.done():
                await work.give_up()
        if work.result.done() and (outcome := work.result.result()) is not None:
            return outcome
        return Outcome.failed("timeout", f"It took more than {seconds:g} s; ask for less of it.")


def _source(content: bytes, known: Known, limits: Limits) -> Source:
    return Source(
        content,
        kind=known.kind,
        name=known.name,
        max_chars=limits.max_artifact_result_chars,
        max_bytes=limits.max_artifact_unpacked_bytes,
        ends_at=monotonic() + limits.max_artifact_seconds,
    )
