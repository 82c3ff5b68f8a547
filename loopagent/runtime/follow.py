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
    """The public events of a run behind `after`, until its last one.

    That is when the run has ended and so has every run below it: children that are stopped with it tell so after
    its own end. A run that ended and was let go on again is followed further.

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
        while True:
            over, ended = await _standing(store, run_id)
            async for event in _stored(store, run_id, after):
                after = event["seq"]
                ended = _ended(ended, event, run_id)
                _overtaken(event, known)
                yield event
            if over or not live:
                return
            look = False
            while not look:
                if closing():
                    return
                arrived = await subscription.get(POLL_SECONDS)
                subscription = _renewed(bus, subscription)
                for event in await _complete(store, run_id, after, arrived):
                    beyond = event.get("seq", 0 if ended else after + 1) > after
                    if not beyond or _overtaken(event, known):
                        continue
                    after = event.get("seq", after)
                    ended = _ended(ended, event, run_id)
                    look = look or event["type"] in TERMINAL
                    yield event
                look = ended and (look or not arrived)
    finally:
        bus.unsubscribe(subscription)


async def _standing(store: Store, run_id: str) -> tuple[bool, bool]:
    """Whether nothing happens any more in a run and those below it, and whether the run itself has ended."""
    snapshot = await store.load(run_id)
    ended = snapshot is None or snapshot.state.ended
    over = ended and all(one.status != "running" for one in await store.tree(run_id))
    return over, ended


async def _stored(store: Store, run_id: str, after: int) -> AsyncGenerator[Event, None]:
    while page := await store.events(run_id, after=after, limit=PAGE):
        for event in page:
            yield event
        after = page[-1]["seq"]
        if len(page) < PAGE:
            return


async def _complete(store: Store, run_id: str, after: int, arrived: list[Event]) -> list[Event]:
    """What arrived, with the stored events that it lacks, each before the next one that came."""
    numbers = [one["seq"] for one in arrived if one.get("seq", 0) > after]
    if numbers and numbers == list(range(after + 1, after + 1 + len(numbers))):
        return arrived
    stored = [one async for one in _stored(store, run_id, after)]
    whole: list[Event] = []
    told = 0
    for one in arrived:
        if "seq" not in one:
            whole.append(one)
        while told < len(stored) and stored[told]["seq"] <= one.get("seq", 0):
            whole.append(stored[told])
            told += 1
    return [*whole, *stored[told:]]


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


def _ended(before: bool, event: Event, run_id: str) -> bool:
    """Whether the run has ended, by this event, else as `before`."""
    if event["runId"] != run_id or event["type"] not in TERMINAL | {"run.resumed"}:
        return before
    return event["type"] in TERMINAL
