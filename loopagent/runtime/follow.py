"""Following a run: what is stored, then what happens, with nothing lost or doubled in between."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from typing import TYPE_CHECKING, Any


if TYPE_CHECKING:
    from loopagent.ports import Store
    from loopagent.runtime.bus import Bus, Subscription


Event = dict[str, Any]
TERMINAL = frozenset({"run.completed", "run.failed", "run.cancelled"})
SETTLED = frozenset({"reply.received", "reply.rejected", "reply.truncated", "turn.ended"})
"""Events after which nothing of the reply of their turn arrives any more."""
PIECES = frozenset({"reply.delta", "reply.snapshot"})
PAGE = 1000
POLL_SECONDS = 1.0
"""How often the store is looked at for a run that another process works on."""


async def follow(
    store: Store, bus: Bus, run_id: str, *, after: int, live: bool, closing: Callable[[], bool]
) -> AsyncGenerator[Event, None]:
    """The public events of a run behind `after`, until its terminal one.

    Args:
        store: Where they are kept.
        bus: Where new ones are announced; listened to before the store is read, so none falls between.
        run_id: The run.
        after: Number of the last event that is known.
        live: Go on with events as they happen, instead of ending with the stored ones.
        closing: Whether to stop waiting.
    """
    subscription = bus.subscribe(run_id)
    known: dict[str, int] = {}
    try:
        async for event in _stored(store, run_id, after):
            after = event["seq"]
            _overtaken(event, known)
            yield event
            if _ends(event, run_id):
                return
        while live and not closing():
            arrived = await subscription.get(POLL_SECONDS)
            subscription = _renewed(bus, subscription)
            for event in await _complete(store, run_id, after, arrived):
                if event.get("seq", after + 1) <= after or _overtaken(event, known):
                    continue
                after = event.get("seq", after)
                yield event
                if _ends(event, run_id):
                    return
    finally:
        bus.unsubscribe(subscription)


async def _stored(store: Store, run_id: str, after: int) -> AsyncGenerator[Event, None]:
    while page := await store.events(run_id, after=after, limit=PAGE):
        for event in page:
            yield event
        after = page[-1]["seq"]
        if len(page) < PAGE:
            return


async def _complete(store: Store, run_id: str, after: int, arrived: list[Event]) -> list[Event]:
    """What arrived, with the stored events in front that it lacks."""
    numbers = [one["seq"] for one in arrived if one.get("seq", 0) > after]
    if numbers and numbers == list(range(after + 1, after + 1 + len(numbers))):
        return arrived
    missed = [one async for one in _stored(store, run_id, after)]
    return [*missed, *(one for one in arrived if "seq" not in one)]


def _renewed(bus: Bus, subscription: Subscription) -> Subscription:
    """A subscription that overflowed is replaced; the store has what it lost."""
    if not subscription.lost:
        return subscription
    bus.unsubscribe(subscription)
    return bus.subscribe(subscription.run_id)


def _overtaken(event: Event, known: dict[str, int]) -> bool:
    """Whether a piece of a reply comes after the whole reply, which was stored meanwhile.

    Args:
        event: Any event.
        known: Run → its latest turn whose reply is known; kept up to date here.
    """
    kind, run_id, turn = event["type"], event["runId"], event.get("turn", 0)
    if kind in SETTLED:
        known[run_id] = turn
    return kind in PIECES and turn <= known.get(run_id, 0)


def _ends(event: Event, run_id: str) -> bool:
    return event["type"] in TERMINAL and event["runId"] == run_id
