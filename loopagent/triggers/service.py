"""Triggers at work: events come in by calls, by hand and by the clock."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final

from loopagent.core.names import closest
from loopagent.errors import ConfigError, RequestError, StoreError
from loopagent.logs import log
from loopagent.trigger_port import Delivery
from loopagent.triggers import incoming, judging, scheduling
from loopagent.triggers.access import check_call
from loopagent.triggers.checking import problems
from loopagent.triggers.incoming import Call, Event
from loopagent.triggers.judging import Arrival, Changes, TriggerState
from loopagent.triggers.keeping import Canceller, Keeper, Starter
from loopagent.triggers.moments import iso


if TYPE_CHECKING:
    from loopagent.ports import Store
    from loopagent.triggers.spec import TriggerSpec

POLL_SECONDS: Final = 5.0
"""How often at least it is looked what is due; other processes may have put something there."""
LEAST_SECONDS: Final = 0.01
FORGET_SECONDS: Final = 3_600.0
"""How often old deliveries are forgotten."""
DAY_SECONDS: Final = 86_400.0


@dataclass(frozen=True, slots=True)
class TriggerView:
    """A trigger and how it stands. Times are in seconds since the epoch."""

    spec: TriggerSpec
    next_at: float | None
    fired_at: float | None
    held: int
    waiting: int
    running: int

    def public(self) -> dict[str, Any]:
        """As JSON, for people and clients."""
        spec = self.spec
        return {
            "name": spec.name,
            "kind": spec.kind,
            "description": spec.description,
            "enabled": spec.enabled,
            "agent": spec.agent,
            "nextAt": self.next_at,
            "firedAt": self.fired_at,
            "held": self.held,
            "waiting": self.waiting,
            "running": self.running,
        }


class Triggers:
    """The triggers of an app.

    Args:
        specs: Their definitions.
        store: Where their state is kept.
        start: Makes runs.
        cancel: Cancels them.
        clock: Seconds since the epoch.
        env: Where secrets come from.
        mask: Takes secrets out of texts.
        heard: Told the trigger and the status of each delivery that changes.

    Raises:
        ConfigError: Two have one name.
    """

    def __init__(
        self,
        specs: Iterable[TriggerSpec],
        *,
        store: Store,
        start: Starter,
        cancel: Canceller,
        clock: Callable[[], float],
        env: Mapping[str, str],
        mask: Callable[[str], str],
        heard: Callable[[str, str], None] | None = None,
    ) -> None:
        self.specs: dict[str, TriggerSpec] = {}
        for spec in specs:
            if self.specs.setdefault(spec.name, spec) is not spec:
                raise ConfigError(f"Two triggers are named {spec.name!r}; rename one.")
        self._store = store
        self._clock = clock
        self._env = env
        self._woken = asyncio.Event()
        changed = self._woken.set
        self._keeper = Keeper(
            store,
            start=start,
            cancel=cancel,
            clock=clock,
            mask=mask,
            changed=changed,
            heard=heard,
        )
        self._forgot: dict[str, float] = {}

    def check(self, agents: Iterable[str]) -> None:
        """Refuse definitions that cannot work.

        Raises:
            ConfigError: What is wrong with which.
        """
        names = set(agents)
        wrong = [
            f"trigger {spec.name}: {'.'.join(map(str, loc))}: {what}"
            for spec in self.specs.values()
            for loc, what in problems(spec, names)
        ]
        if wrong:
            raise ConfigError(f"{len(wrong)} problem(s) with triggers: {'; '.join(wrong)}", wrong)

    def spec(self, name: str) -> TriggerSpec:
        """The definition of a trigger.

        Raises:
            RequestError: `unknown_trigger` (404).
        """
        found = self.specs.get(name)
        if found is None:
            near = closest(name, sorted(self.specs))
            hint = f"; did you mean {near[0]}?" if near else "."
            raise RequestError("unknown_trigger", f"There is no trigger {name!r}{hint}", status=404)
        return found

    # ------------------------------------------------------------------ look

    async def views(self) -> list[TriggerView]:
        """All triggers, by name."""
        return [await self.get(name) for name in sorted(self.specs)]

    async def get(self, name: str) -> TriggerView:
        """One trigger.

        Raises:
            RequestError: `unknown_trigger` (404).
        """
        spec, row = self.spec(name), await self._store.trigger(name)
        state = judging.state_of(row.body if row else None)
        running = len({*state.active, *state.starting})
        held, line = len(state.held), len(state.line)
        return TriggerView(spec, state.next_at, state.fired_at, held, line, running)

    async def deliveries(
        self,
        name: str | None = None,
        *,
        status: str | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> tuple[list[Delivery], str | None]:
        """What was delivered, newest first, and the cursor of the next page.

        Raises:
            RequestError: `unknown_trigger` (404), `bad_cursor` (400).
        """
        if name is not None:
            self.spec(name)
        return await self._store.deliveries(name, status=status, cursor=cursor, limit=limit)

    # ------------------------------------------------------------------ events

    async def deliver(self, name: str, call: Call) -> Delivery:
        """Take a call of a webhook; who may make it is checked, except where the server's token decides.

        Raises:
            RequestError: `unknown_trigger` or `not_a_webhook` (404), `unauthorized` (401), `no_secret` (503),
                `bad_body` (400), `no_event_id` (422), `too_large` (413).
        """
        spec = self.spec(name)
        check_call(spec, call, self._env, self._clock())
        event = incoming.called(spec, call, at=self._clock(), token=f"call_{token_hex(8)}")
        return await self._take(spec, event)

    async def fire(
        self,
        name: str,
        body: Any = None,
        *,
        event_id: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Delivery:
        """Fire by hand: filters, event ids and the dedupe window count, debounce, cooldown and `enabled` do not.

        Args:
            name: The trigger.
            body: What a webhook would have been sent.
            event_id: Id of the event; None makes a new one.
            headers: What a webhook would have been sent with, names in lower case.

        Raises:
            RequestError: `unknown_trigger` (404).
        """
        spec, token = self.spec(name), event_id or f"manual_{token_hex(8)}"
        event = incoming.by_hand(
            spec, body, at=self._clock(), event_id=token, headers=headers or {}
        )
        return await self._take(spec, event)

    async def _take(self, spec: TriggerSpec, event: Event) -> Delivery:
        delivery_id = f"dlv_{token_hex(8)}"

        async def decide(state: TriggerState) -> Changes:
            changes = await self._received(spec, state, event, delivery_id)
            judging.look(spec, changes, event.at)
            return changes

        await self._keeper.change(spec, decide)
        found = await self._store.delivery(delivery_id)
        assert found is not None  # open or new, it is not forgotten
        return found

    async def _received(
        self, spec: TriggerSpec, state: TriggerState, event: Event, delivery_id: str
    ) -> Changes:
        task = judging.task_of(spec, event)
        same = await self._store.delivered(spec.name, event_id=event.id)
        since = event.at - spec.dedupe_window_seconds
        like = (
            await self._store.delivered(spec.name, dedupe=task.dedupe, since=since)
            if task.dedupe
            else None
        )
        return judging.receive(spec, state, Arrival(event, task, delivery_id, same, like))

    # ------------------------------------------------------------------ time

    async def watch(self) -> None:
        """Do what is due, for ever; run it as a task."""
        await self._try(self.adopt)
        while True:
            wait = await self._try(self.sweep)
            self._woken.clear()
            try:
                await asyncio.wait_for(self._woken.wait(), POLL_SECONDS if wait is None else wait)
            except TimeoutError:
                continue

    async def _try(self, work: Callable[[], Awaitable[float | None]]) -> float | None:
        try:
            return await work()
        except StoreError as error:
            log.error("triggers.not_swept", error)
            return None

    async def adopt(self) -> None:
        """Put this app's definitions in charge of their schedules."""
        for spec in self.specs.values():

            async def decide(state: TriggerState, spec: TriggerSpec = spec) -> Changes:
                return Changes(scheduling.adopt(spec, state, self._clock()))

            await self._keeper.change(spec, decide)

    async def sweep(self) -> float:
        """Do what is due now; returns for how many seconds there is nothing more to do."""
        looked: set[str] = set()
        for name, due in await self._store.due_triggers():
            if due <= self._clock() and name in self.specs:
                looked.add(name)
                await self._look(self.specs[name])
        await self._forget()
        now = self._clock()
        # One that is due after it was looked at is in the hands of a process with another definition.
        left = [
            due
            for name, due in await self._store.due_triggers()
            if name in self.specs and (due > now or name not in looked)
        ]
        return min(POLL_SECONDS, max(LEAST_SECONDS, min(left, default=now + POLL_SECONDS) - now))

    async def _look(self, spec: TriggerSpec) -> None:
        token = f"dlv_{token_hex(8)}"

        async def decide(state: TriggerState) -> Changes:
            now = self._clock()
            state, due = scheduling.due_moment(spec, state, now)
            changes = Changes(state)
            if due is not None:
                event = incoming.came_due(spec, due.moment, due.missed, at=now)
                changes = await self._received(spec, state, event, token)
                if due.late and spec.schedule is not None and spec.schedule.missed == "skip":
                    what = f"nothing ran at {iso(due.moment)}, nor at {due.missed} moments before"
                    changes = Changes(state, changes.put, {token: ("missed", what)})
            judging.look(spec, changes, now)
            return changes

        await self._keeper.change(spec, decide)

    async def _forget(self) -> None:
        now = self._clock()
        for name, spec in self.specs.items():
            if now - self._forgot.get(name, 0.0) >= FORGET_SECONDS:
                self._forgot[name] = now
                await self._store.forget_deliveries(name, now - spec.keep_days * DAY_SECONDS)
