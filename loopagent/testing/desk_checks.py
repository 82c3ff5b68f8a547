"""What every store must do with holders of requests and with people's desks; part of the conformance suite."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from loopagent.core.facts import Fact
from loopagent.desk_port import DeskRow
from loopagent.testing.store_samples import CREATED_AT, SampleRun, same, stored


if TYPE_CHECKING:
    from loopagent.ports import Store


VIEW = DeskRow("ann", "view", "mine", body="holder=mine")
SNOOZE = DeskRow("ann", "snooze", "run-1:1:chat", until=CREATED_AT + 60)


async def check_holders(store: Store) -> None:
    """Who takes care of a request stands with it from the commit that says so, and stays when it is closed."""
    run = await stored(store, "run-1")
    await store.commit(run.ask("1:chat"))
    await _same_holder(store, run, ("", None))
    await store.commit(run.next(facts=(_held(run, "claimed", holder="ann"),)))
    await _same_holder(store, run, ("ann", CREATED_AT + 2))
    await store.commit(run.next(facts=(_held(run, "claimed", holder="bob"),)))
    await _same_holder(store, run, ("bob", CREATED_AT + 3))
    await store.commit(run.next(facts=(_held(run, "released"),)))
    await _same_holder(store, run, ("", None))
    closing = run.close("1:chat")
    facts = (_held(run, "claimed", holder="eve"), *closing.facts)
    await store.commit(replace(closing, facts=facts))
    await _same_holder(store, run, ("eve", CREATED_AT + 5))
    await store.commit(run.ask("1:chat"))
    await _same_holder(store, run, ("", None))


def _held(run: SampleRun, how: str, **data: str) -> Fact:
    about = {"requestId": run.request_id("1:chat"), "by": "boss"}
    return Fact(f"request.{how}", "human", {**about, **data})


async def _same_holder(store: Store, run: SampleRun, wanted: tuple[str, float | None]) -> None:
    found = await store.request(run.request_id("1:chat"))
    same(found and (found.holder, found.held_at), wanted, "who takes care of a request")
    rows, _ = await store.requests(status=None)
    same([(one.holder, one.held_at) for one in rows], [wanted], "the same in the list")


async def check_open_requests(store: Store) -> None:
    """How many wait, of all tenants and of each."""
    runs = [SampleRun(name) for name in ("run-1", "run-2", "run-3")]
    for run, tenant in zip(runs, ("acme", "acme", ""), strict=True):
        run.state = replace(run.state, tenant=tenant)
        await store.create(run.begin())
        await store.commit(run.ask("1:chat"))
    await store.commit(runs[-1].close("1:chat"))
    counts = [await store.open_requests(one) for one in (None, "acme", "", "nobody")]
    same(counts, [2, 2, 0, 0], "open requests of all tenants, and of each")


async def check_desks(store: Store) -> None:
    """Each person has things of their own, one of a name; what is over goes when something is put beside it."""
    same(await store.desk("ann", "view"), [], "an empty desk")
    same(await store.delete_desk("ann", "view", "mine"), False, "taking away what is not there")
    others = replace(VIEW, owner="bob", body="holder=free")
    for one in (VIEW, SNOOZE, replace(VIEW, name="a"), others):
        await store.put_desk(one, at=CREATED_AT)
    same(await store.desk("ann", "view"), [replace(VIEW, name="a"), VIEW], "views, by name")
    same(await store.desk("bob", "view"), [others], "the views of somebody else")
    same(await store.desk("ann", "snooze"), [SNOOZE], "what is put off")
    changed = replace(VIEW, body="risk=high")
    await store.put_desk(changed, at=CREATED_AT + 59)
    same(await store.desk("ann", "view"), [replace(VIEW, name="a"), changed], "a view kept anew")
    same(await store.desk("ann", "snooze"), [SNOOZE], "what is put off for a second more")
    later = replace(SNOOZE, owner="bob", until=CREATED_AT + 600)
    await store.put_desk(later, at=CREATED_AT + 60)
    same(await store.desk("ann", "snooze"), [SNOOZE], "what is over, beside what others put")
    await store.put_desk(changed, at=CREATED_AT + 60)
    same(await store.desk("ann", "snooze"), [], "what is over, once something was put beside it")
    same(await store.delete_desk("ann", "view", "mine"), True, "taking a view away")
    same(await store.desk("ann", "view"), [replace(VIEW, name="a")], "the views that are left")
