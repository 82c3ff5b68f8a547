"""What every store must know of who works on what; part of the conformance suite."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from loopagent.core.effects import AskHuman, SetTimer
from loopagent.testing.store_samples import SampleRun, same, stored


if TYPE_CHECKING:
    from loopagent.ports import Commit, Store

NOW = 2_000_000_000.0
LEASE = 10.0


def _sleep(run: SampleRun, until: float, *, ask: bool = False) -> Commit:
    """Nothing happens for a run until a time, or until somebody answers."""
    question = AskHuman("1:chat", "question", "Which one?", ("answer",))
    timer = SetTimer("1:pause.0", until)
    return run.next(pending={timer.id: timer} | ({question.id: question} if ask else {}))


async def _take(store: Store, owner: str, *, now: float = NOW, limit: int = 50) -> list[str]:
    return await store.take(owner, now=now, lease_seconds=LEASE, limit=limit)


async def check_take(store: Store) -> None:
    """What is due and free is claimed once, the longest due first; what waits for people never is."""
    names = ("busy", "asking", "ended", "later", "soon", "held", "expired")
    busy, asking, ended, later, soon, _, _ = [await stored(store, name) for name in names]
    await store.commit(busy.turn())
    await store.commit(asking.ask("1:chat"))
    await store.commit(ended.end())
    await store.commit(_sleep(later, NOW + 100))
    await store.commit(_sleep(soon, NOW - 1, ask=True))
    await store.claim("held", "other", now=NOW, lease_seconds=LEASE)
    await store.claim("expired", "other", now=NOW - 20, lease_seconds=LEASE)
    same(await _take(store, "a", limit=1), ["busy"], "the first of what is due")
    same(await _take(store, "a"), ["expired", "soon"], "the rest of what is due")
    same(await _take(store, "b"), [], "what is left")
    same(await store.owner("soon"), "a", "who holds what was taken")
    same(
        await _take(store, "b", now=NOW + 100),
        ["busy", "held", "expired", "soon", "later"],
        "later",
    )


async def check_take_from_the_dead(store: Store) -> None:
    """A lease of an owner that is known to be dead counts as expired."""
    await stored(store, "run-1")
    await _take(store, "dead")
    same(await store.owners(), ["dead"], "owners")
    same(await store.take("b", now=NOW, lease_seconds=LEASE, limit=9, gone=["x"]), [], "not dead")
    found = await store.take("b", now=NOW, lease_seconds=LEASE, limit=9, gone=["dead", "x"])
    same((found, await store.owners()), (["run-1"], ["b"]), "what the dead had")


async def check_work(store: Store) -> None:
    """What there is to do for runs says when, and who holds the lease, whether that is over or not."""
    names = ("busy", "asking", "ended", "later", "held")
    _, asking, ended, later, _ = [await stored(store, name) for name in names]
    await store.commit(asking.ask("1:chat"))
    await store.commit(ended.end())
    await store.commit(_sleep(later, NOW + 100))
    await store.claim("held", "other", now=NOW - 2 * LEASE, lease_seconds=LEASE)
    found = {one.run_id: one for one in await store.work([*names, "nobody", "busy"])}
    same(sorted(found), ["busy", "held", "later"], "the runs with work")
    same((found["busy"].due, found["busy"].owner), (0.0, None), "work that nobody does")
    same(found["later"].due, NOW + 100, "work for later")
    held = found["held"]
    same((held.owner, held.leased_until), ("other", NOW - LEASE), "work that somebody does")
    moved = {one.id: one.updated_at for one in (await store.runs())[0]}
    same(held.moved_at, moved["held"], "when something happened last")
    same(await store.work([]), [], "the work of no run")


async def check_take_all_at_once(store: Store) -> None:
    """Many workers that look at the same moment share what is due, and nothing is given twice."""
    names = [f"run-{number:02}" for number in range(20)]
    for name in names:
        await stored(store, name)
    found = await asyncio.gather(*(_take(store, f"w{one}", limit=4) for one in range(8)))
    found += [await _take(store, "last")]
    same(sorted(name for part in found for name in part), names, "what all of them got")


async def check_renew(store: Store) -> None:
    """Leases are renewed together; what was lost or has ended is not among them."""
    runs = [await stored(store, f"run-{number}") for number in range(3)]
    await _take(store, "a")
    await store.commit(runs[1].turn())
    await store.claim("run-2", "b", now=NOW + 11, lease_seconds=LEASE)
    held = await store.renew(
        ["run-0", "run-1", "run-2", "x"], "a", now=NOW + 11, lease_seconds=LEASE
    )
    same(held, {"run-0": 1, "run-1": 2}, "renewed leases, with versions")
    same(await _take(store, "c", now=NOW + 20), [], "what is free while they hold")
    same(await _take(store, "c", now=NOW + 22), ["run-0", "run-1", "run-2"], "and afterwards")
    same(await store.renew([], "a", now=NOW, lease_seconds=LEASE), {}, "nothing to renew")


async def check_next_due(store: Store) -> None:
    """The store knows when to look again, and who gives back a run hears that it has work."""
    same(await store.next_due(), None, "an empty store")
    first, second = await stored(store, "run-1"), await stored(store, "run-2")
    same(await store.next_due(), 0.0, "work at once")
    await store.commit(_sleep(first, NOW + 7.5))
    await store.commit(second.ask("1:chat"))
    same(await store.next_due(), NOW + 7.5, "a timer")
    await _take(store, "a", now=NOW + 8)
    same(await store.next_due(), None, "what somebody works on")
    same(await store.release("run-1", "b"), False, "somebody else's lease")
    same(await store.release("run-1", "a"), True, "a lease of a run with work")
    same(await store.unfinished(), ["run-1"], "what has work, now or later")
    await store.claim("run-2", "a", now=NOW, lease_seconds=LEASE)
    same(await store.release("run-2", "a"), False, "a lease of a run without")


async def check_watch(store: Store) -> None:
    """Nobody hears of themselves."""
    heard: list[object] = []
    store.watch(heard.append)
    run = await stored(store, "run-1", turns=2)
    store.offer([run.id])
    await asyncio.sleep(0)
    same(heard, [], "news of what this process did")
