"""What every store must do with API keys, sessions and tenants; part of the conformance suite."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from loopagent.errors import ConflictError
from loopagent.key_port import KeyRow, Person, SessionRow
from loopagent.testing.store_samples import CREATED_AT, SampleRun, refused, same


if TYPE_CHECKING:
    from loopagent.ports import Store


ONE = KeyRow("k1", "h1", "nightly", "acme", "ann", ("runs", "requests.answer"), CREATED_AT)
ALL = KeyRow("k2", "h2", "operator", None, "", ("admin",), CREATED_AT + 1)
NONE = KeyRow("k3", "h3", "plain", "", "", ("runs",), CREATED_AT + 2)


async def check_keys(store: Store) -> None:
    """Keys are found by their ids, and listed for all tenants or for one."""
    same(await store.has_keys(), False, "keys in an empty store")
    same(await store.key("k1"), None, "a key that nobody made")
    same(await store.keys(), [], "the list without keys")
    for one in (ONE, ALL, NONE):
        await store.put_key(one)
    same(await store.has_keys(), True, "keys in a store with three")
    same(await store.key("k1"), ONE, "a key")
    same(await store.keys(), [ONE, ALL, NONE], "all keys")
    same(await store.keys("acme"), [ONE], "the keys of a tenant")
    same(await store.keys(""), [NONE], "the keys of the tenant without a name")
    await refused(store.put_key(replace(NONE, id="k1")), ConflictError, "a second key of one id")
    same(await store.key("k1"), ONE, "a key whose id was given again")


async def check_key_use(store: Store) -> None:
    """A key remembers its last use, and stays as the trace of what it was when it is revoked."""
    await store.touch_key("k1", CREATED_AT)
    await store.put_key(ONE)
    await store.touch_key("k1", CREATED_AT + 5)
    used = replace(ONE, last_used_at=CREATED_AT + 5)
    same(await store.key("k1"), used, "a key that was used")
    same(await store.revoke_key("k1", CREATED_AT + 9), True, "revoking")
    same(await store.revoke_key("k1", CREATED_AT + 10), False, "revoking again")
    same(await store.revoke_key("k7", CREATED_AT + 10), False, "revoking no key")
    same(await store.key("k1"), replace(used, revoked_at=CREATED_AT + 9), "a revoked key")
    same(await store.has_keys(), True, "keys when all are revoked")


async def check_sessions(store: Store) -> None:
    """Sessions end by sign-out, with their key, and are forgotten after their time."""
    await store.delete_session("s1")
    same(await store.session("s1"), None, "a session that nobody began")
    await store.put_key(ONE)
    first = SessionRow("s1", "k1", CREATED_AT, CREATED_AT + 10)
    second = SessionRow("s2", "k1", CREATED_AT + 20, CREATED_AT + 30)
    ann = Person("work", "https://login.example", "248", "Ann", "work/248", ("runs", "admin"))
    third = SessionRow("s3", "oidc", CREATED_AT + 21, CREATED_AT + 31, "acme", ann)
    same(await store.put_session(first), True, "a new session")
    same(await store.put_session(replace(first, key_id="k9")), False, "another one of its hash")
    same(await store.session("s1"), first, "a session")
    await store.put_session(second)
    same(await store.session("s1"), None, "an expired session, after another one began")
    await store.put_session(third)
    await store.delete_session("s3")
    same(await store.session("s3"), None, "a session that was ended")
    await store.put_session(third)
    await store.revoke_key("k1", CREATED_AT + 25)
    same(await store.session("s2"), None, "a session whose key was revoked")
    same(await store.session("s3"), third, "the session of a person")
    fourth = SessionRow("s4", "k3", CREATED_AT + 22, CREATED_AT + 32)
    await store.put_session(fourth)
    same(await store.sessions(), [third, fourth], "all sessions")
    same(await store.sessions("acme"), [third], "the sessions of a tenant")
    same(await store.sessions("other"), [], "the sessions of a tenant without any")


async def check_tenants(store: Store) -> None:
    """Runs and requests are listed by tenant; the one without a name is one like the others."""
    await store.create(SampleRun("run-1").begin())
    other = SampleRun("run-2")
    begun = other.begin()
    await store.create(replace(begun, state=replace(begun.state, tenant="acme")))
    asked = other.ask("2:chat")
    await store.commit(replace(asked, state=replace(asked.state, tenant="acme")))
    for tenant, wanted in ((None, ["run-2", "run-1"]), ("acme", ["run-2"]), ("", ["run-1"])):
        rows, _ = await store.runs(tenant=tenant)
        same([one.id for one in rows], wanted, f"the runs of tenant {tenant!r}")
    for tenant, wanted in ((None, ["run-2"]), ("acme", ["run-2"]), ("", [])):
        found, _ = await store.requests(tenant=tenant)
        same([one.run_id for one in found], wanted, f"the requests of tenant {tenant!r}")
    same([one.tenant for one in (await store.requests())[0]], ["acme"], "the tenant of a request")
    same(await store.tenant_of("run-1"), "", "whose a run without a tenant is")
    same(await store.tenant_of("run-2"), "acme", "whose a run is")
    same(await store.tenant_of("run-3"), None, "whose no run is")
