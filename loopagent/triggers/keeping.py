"""One way to change a trigger: decide on its newest state, store that, then make the runs that follow.

A run that is made for an event has an id that follows from the event, and a store holds no two runs of one id. So
whoever takes up what a killed process left behind may simply make the run again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from loopagent.core.origin import Origin
from loopagent.errors import ConflictError, RequestError, StoreError
from loopagent.logs import log
from loopagent.trigger_port import OPEN, Delivery, DeliveryStatus, TriggerRow
from loopagent.triggers import judging
from loopagent.triggers.judging import Changes, TriggerState


if TYPE_CHECKING:
    from loopagent.ports import Store
    from loopagent.triggers.spec import TriggerSpec

MAX_CONFLICTS: Final = 50
"""How often a change is decided anew because another process was faster."""
Starter = Callable[..., Awaitable[Any]]
"""Makes a run, as `App.start` does; `ConflictError` when the one of this event exists."""
Canceller = Callable[..., Awaitable[Any]]
"""Cancels a run, as `App.cancel` does."""
Decide = Callable[[TriggerState], Awaitable[Changes]]
"""Looks at the state of a trigger and says what changes; called again when somebody else changed it meanwhile."""


class Keeper:
    """Changes triggers in a store.

    Args:
        store: The store.
        start: Makes runs.
        cancel: Cancels them.
        clock: Seconds since the epoch.
        mask: Takes secrets out of texts.
        changed: Called when a trigger has changed.
        heard: Told the trigger and the status of each delivery that changes.
    """

    def __init__(
        self,
        store: Store,
        *,
        start: Starter,
        cancel: Canceller,
        clock: Callable[[], float],
        mask: Callable[[str], str],
        changed: Callable[[], None],
        heard: Callable[[str, str], None] | None = None,
    ) -> None:
        self._store = store
        self._start = start
        self._cancel = cancel
        self._clock = clock
        self._mask = mask
        self._changed = changed
        self._heard = heard
        self._locks: dict[str, asyncio.Lock] = {}

    async def change(self, spec: TriggerSpec, decide: Decide) -> None:
        """Decide, store, and make the runs that follow.

        Raises:
            ConflictError: Others change the trigger all the time.
        """
        async with self._lock(spec.name):
            changes = await self._decided(spec, decide)
        for run_id in changes.cancel:
            await self._end(run_id, f"Trigger {spec.name} starts another run in its place.")
        for delivery_id in changes.start:
            await self._make(spec, delivery_id)

    async def _end(self, run_id: str, reason: str) -> None:
        try:
            await self._cancel(run_id, reason=reason, by="trigger")
        except RequestError as error:
            if error.code != "unknown_run":
                raise

    def _lock(self, name: str) -> asyncio.Lock:
        return self._locks.setdefault(name, asyncio.Lock())

    async def _decided(self, spec: TriggerSpec, decide: Decide) -> Changes:
        for _ in range(MAX_CONFLICTS):
            row = await self._store.trigger(spec.name)
            known = judging.state_of(row.body if row else None)
            changes = await decide(await self._without_ended(spec, known))
            now = self._clock()
            rests = row is not None and (row.due is None or row.due > now)
            if rests and changes == Changes(known):
                return changes
            due = changes.state.due(now)
            body = judging.body_of(changes.state)
            made = TriggerRow(spec.name, row.version if row else 0, due, body)
            deliveries = await self._rows(changes)
            try:
                await self._store.save_trigger(made, deliveries)
            except ConflictError:
                continue
            for one in deliveries:
                self._tell(one)
            self._changed()
            return changes
        raise ConflictError(f"Trigger {spec.name!r} is changed by others all the time; try again.")

    async def _rows(self, changes: Changes) -> list[Delivery]:
        """The deliveries that change, as they are now."""
        found = {one.id: one for one in changes.put}
        for key, (status, reason) in changes.mark.items():
            one = found.get(key) or await self._store.delivery(key)
            if one is not None:
                found[key] = self._marked(one, status, reason)
        return list(found.values())

    def _marked(self, one: Delivery, status: DeliveryStatus, reason: str) -> Delivery:
        task = one.task if status in OPEN else None
        at, why = self._clock(), self._mask(reason)
        return replace(one, status=status, reason=why, task=task, updated_at=at)

    async def _without_ended(self, spec: TriggerSpec, state: TriggerState) -> TriggerState:
        if not state.active or spec.max_concurrent is None:
            return replace(state, active=()) if state.active else state
        going: list[str] = []
        for run_id in state.active:
            found = await self._store.load(run_id)
            if found is not None and not found.state.ended:
                going.append(run_id)
        return state if len(going) == len(state.active) else replace(state, active=tuple(going))

    async def _make(self, spec: TriggerSpec, delivery_id: str) -> None:
        """Make the run of a delivery; what fails for a reason that may pass is taken up again later."""
        one = await self._store.delivery(delivery_id)
        if one is None or one.task is None or one.status != "starting":
            return
        origin = Origin(spec.name, one.source, one.event_id)
        status, reason, run_id = await self._started(spec, one.task, origin)
        if status == "starting":
            return
        done = replace(self._marked(one, status, reason), run_id=run_id)

        async def decide(state: TriggerState) -> Changes:
            now = judging.started(spec, state, delivery_id, run_id)
            return Changes(now, (done,)) if now != state else Changes(state)

        async with self._lock(spec.name):
            await self._decided(spec, decide)

    async def _started(
        self, spec: TriggerSpec, task: dict[str, Any], origin: Origin
    ) -> tuple[DeliveryStatus, str, str]:
        """How the making of a run ended: status, reason and the run's id; `starting` when it is to be tried again."""
        try:
            asked = {**task, "user": spec.user, "tenant": spec.tenant, "on_busy": spec.on_busy}
            await self._start(spec.agent, by="trigger", origin=origin, **asked)
        except ConflictError:
            return "fired", "", origin.run_id  # whoever was here before has made it
        except RequestError as error:
            busy = error.code == "conversation_busy"
            if error.retryable and not busy:
                log.warning("trigger.not_started", trigger=spec.name, code=error.code)
                return "starting", "", ""
            return "busy" if busy else "failed", f"{error.code}: {error}", ""
        except StoreError as error:
            log.error("trigger.not_started", error, trigger=spec.name)
            return "starting", "", ""
        return "fired", "", origin.run_id

    def _tell(self, one: Delivery) -> None:
        if self._heard is not None:
            self._heard(one.trigger, one.status)
        about = {"trigger": one.trigger, "delivery": one.id, "run_id": one.run_id or None}
        log.info("trigger.delivery", **about, status=one.status, why=one.reason or None)
