"""What every store must do with notifications; part of the conformance suite."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from loopagent.errors import RequestError
from loopagent.notification_port import Attempt, FailingReceiver
from loopagent.testing.store_samples import CREATED_AT, SampleRun, refused, same


if TYPE_CHECKING:
    from loopagent.notification_port import Notice
    from loopagent.ports import Commit, Store

LATER = CREATED_AT + 1_000.0
LEASE_SECONDS = 60.0


async def _told(store: Store, name: str, *hearers: str, parent: SampleRun | None = None) -> Commit:
    """A run with somebody to tell, that has ended."""
    run = SampleRun(name, parent=parent)
    first = run.begin()
    await store.create(first)
    end = run.end()
    end = replace(end, state=replace(end.state, notify=hearers))
    await store.commit(end)
    return end


async def _all(store: Store) -> list[Notice]:
    return (await store.notices())[0]


async def check_no_notices(store: Store) -> None:
    """A store without notifications finds none, and nobody is told of a run that names nobody."""
    await _told(store, "quiet")
    same(await _all(store), [], "notifications")
    same(await store.notice("n"), None, "a notification")
    same(await store.notice_due(), None, "the next one's time")
    same(await store.claim_notices(now=LATER, lease_seconds=1.0, limit=9), [], "claimed ones")
    same(await store.forget_notices(LATER), 0, "forgotten ones")


async def check_notices_of_an_end(store: Store) -> None:
    """The commit that ends a run tells everybody who is named, in one transaction."""
    end = await _told(store, "r", "ops", "mail")
    found = sorted(await _all(store), key=lambda one: one.target)
    same([one.target for one in found], ["mail", "ops"], "who is told")
    kinds = {one.type for one in end.facts if one.type.startswith("run.")}
    for one in found:
        same((one.run_id, one.status, one.due, one.tries), ("r", "waiting", end.at, 0), "the row")
        same(one.kind in kinds, True, f"{one.kind} among what happened")
        same(await store.notice(one.id), one, "the notification by its id")
    same(await store.notice_due(), end.at, "the next one's time")


async def check_notices_of_a_tenant(store: Store) -> None:
    """Each belongs to the tenant of its run, and is listed by it."""
    await _told(store, "none", "ops")
    run = SampleRun("theirs")
    first, end = run.begin(), run.end()
    await store.create(replace(first, state=replace(first.state, tenant="acme")))
    await store.commit(replace(end, state=replace(end.state, notify=("ops",), tenant="acme")))
    for tenant, wanted in ((None, ["theirs", "none"]), ("acme", ["theirs"]), ("", ["none"])):
        found, _ = await store.notices(tenant=tenant)
        same([one.run_id for one in found], wanted, f"the notifications of tenant {tenant!r}")
    same((await store.notices(tenant="acme", run_id="none"))[0], [], "of another's run")
    [taken, _] = await store.claim_notices(now=LATER, lease_seconds=1.0, limit=9)
    same(taken.tenant, "", "the tenant of a claimed one")


async def check_failing_receivers(store: Store) -> None:
    """Failures in a row are counted, and disable a receiver; then only somebody enables it."""
    same(await store.receivers(), [], "failing receivers of a new store")
    same(await store.receiver("ops"), None, "one of them")
    same(await store.forget_receiver("ops", disabled=True), False, "enabling what did not fail")
    first = await store.receiver_failed("ops", at=CREATED_AT, error="no", disable_after=2)
    same(first, FailingReceiver("ops", 1, CREATED_AT, "no"), "after one failure")
    same(await store.forget_receiver("ops", disabled=True), False, "enabling what is not disabled")
    same(await store.forget_receiver("ops", disabled=False), True, "a success")
    failed = [
        await store.receiver_failed("ops", at=CREATED_AT + one, error=f"no {one}", disable_after=2)
        for one in range(3)
    ][-1]
    wanted = FailingReceiver("ops", 3, CREATED_AT + 2, "no 2", CREATED_AT + 1)
    same(failed, wanted, "after three failures")
    same(await store.receiver("ops"), failed, "by its name")
    same(await store.forget_receiver("ops", disabled=False), False, "a success of a disabled one")
    url = "https://hooks.example/x"
    never = await store.receiver_failed(url, at=CREATED_AT, error="no", disable_after=0)
    same(never.disabled_at, None, "one that is never disabled")
    gone = await store.receiver_failed("gone", at=CREATED_AT, error="no", disable_after=1)
    same(gone.disabled_at, CREATED_AT, "one that is disabled at once")
    same([one.target for one in await store.receivers()], ["gone", url, "ops"], "all of them")
    await store.forget_notices(LATER)
    same([one.target for one in await store.receivers()], ["gone", "ops"], "those with names")
    same(await store.forget_receiver("ops", disabled=True), True, "enabling")
    same(await store.receiver("ops"), None, "an enabled one")


async def check_notices_claimed_once(store: Store) -> None:
    """Each goes to one claimer, and to another when the claim has run out."""
    await _told(store, "r", "a", "b", "c")
    early = await store.claim_notices(now=CREATED_AT - 1, lease_seconds=LEASE_SECONDS, limit=9)
    same(early, [], "claims before their time")
    claims = [
        store.claim_notices(now=LATER, lease_seconds=LEASE_SECONDS, limit=2) for _ in range(4)
    ]
    parts = await asyncio.gather(*claims)
    taken = [one for part in parts for one in part]
    same(sorted(one.target for one in taken), ["a", "b", "c"], "claimed notifications")
    same({one.status for one in taken}, {"sending"}, "their status")
    same(await store.notice_due(), LATER + LEASE_SECONDS, "when others may take them")
    again = await store.claim_notices(now=LATER + LEASE_SECONDS, lease_seconds=1.0, limit=9)
    same(sorted(one.id for one in again), sorted(one.id for one in taken), "claimed again")
    same(await store.save_notice(replace(taken[0], status="sent", due=None)), False, "a late end")


async def check_notice_saved(store: Store) -> None:
    """What became of it is kept, once."""
    await _told(store, "r", "ops")
    (one,) = await store.claim_notices(now=LATER, lease_seconds=LEASE_SECONDS, limit=1)
    attempts = (Attempt(LATER, 0.5, 503, "Ünï 🙂"), Attempt(LATER + 1, 0.25, 204))
    sent = replace(one, status="sent", due=None, tries=2, attempts=attempts)
    same(await store.save_notice(sent), True, "saving")
    same(await store.save_notice(sent), False, "saving once more from the same version")
    same(await store.notice(one.id), replace(sent, version=one.version + 1), "what was kept")
    same(await store.notice_due(), None, "the next one's time")


async def check_notice_pages(store: Store) -> None:
    """Notifications come newest first, page by page, by run and by status."""
    for name in ("r1", "r2", "r3"):
        await _told(store, name, "ops")
    found: list[str] = []
    cursor = None
    while True:
        rows, cursor = await store.notices(cursor=cursor, limit=2)
        found += [one.run_id for one in rows]
        if cursor is None:
            break
    same(found, ["r3", "r2", "r1"], "all")
    same([one.run_id for one in (await store.notices(run_id="r2"))[0]], ["r2"], "of one run")
    same((await store.notices(status="sent"))[0], [], "of one status")
    await refused(store.notices(cursor="nonsense"), RequestError, "a cursor of no list")


async def check_notices_removed(store: Store) -> None:
    """Those of a deleted run go with it, and old ones that are not open any more."""
    for name in ("r1", "r2"):
        await _told(store, name, "ops")
    await store.delete("r1")
    (one,) = await _all(store)
    same(one.run_id, "r2", "the run of the one that is left")
    same(await store.forget_notices(LATER), 0, "open ones are kept")
    same(await store.save_notice(replace(one, status="failed", due=None)), True, "its end")
    same(await store.forget_notices(one.at), 0, "those that are not old are kept")
    same(await store.forget_notices(LATER), 1, "the old one")
    same(await _all(store), [], "what is left")
