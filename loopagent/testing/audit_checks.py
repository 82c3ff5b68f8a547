"""What every store must find of who decided what; part of the conformance suite."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from loopagent.audit_port import Wanted
from loopagent.core.facts import Fact
from loopagent.errors import RequestError
from loopagent.testing.store_samples import CREATED_AT, SampleRun, refused, same


if TYPE_CHECKING:
    from loopagent.ports import RequestRow, Store


async def _decided(
    store: Store, run_id: str, at: float, by: str, *, kind: str = "question", tenant: str = ""
) -> None:
    """A run whose request somebody answered at a time."""
    run = SampleRun(run_id)
    begun, asked, closed = run.begin(), run.ask("2:chat"), run.close("2:chat")
    for number, commit in enumerate((begun, asked, closed)):
        state = replace(commit.state, tenant=tenant)
        facts = tuple(_told(one, by, kind) for one in commit.facts)
        made = replace(commit, state=state, facts=facts, at=at if commit is closed else commit.at)
        await (store.commit(made) if number else store.create(made))


def _told(fact: Any, by: str, kind: str) -> Any:
    if fact.type == "request.created":
        return Fact(fact.type, "engine", {**fact.data, "kind": kind})
    if fact.type == "request.resolved":
        return Fact(fact.type, "human", {**fact.data, "by": by})
    return fact


def _runs(rows: list[RequestRow]) -> list[str]:
    return [one.run_id for one in rows]


async def check_decisions(store: Store) -> None:
    """Decisions are listed by their time, the latest first, and found by who, what, where and whose."""
    same(await store.decided(Wanted()), ([], None), "the decisions of a new store")
    late, early = CREATED_AT + 1_000.25, CREATED_AT + 500.125
    await _decided(store, "r1", late, "human:ann")
    await _decided(store, "r2", early, "human:oidc:work/7 Bö", kind="plan", tenant="acme")
    await _decided(store, "r3", late, "policy", kind="plan")
    waiting = SampleRun("r4")
    await store.create(waiting.begin())
    await store.commit(waiting.ask("2:chat"))
    looked_for: tuple[tuple[Wanted, list[str]], ...] = (
        (Wanted(), ["r3", "r1", "r2"]),
        (Wanted(by="human:"), ["r1", "r2"]),
        (Wanted(by="Bö"), ["r2"]),
        (Wanted(by="%"), []),
        (Wanted(by="Ann"), []),
        (Wanted(kind="plan"), ["r3", "r2"]),
        (Wanted(decision="answer"), ["r3", "r1", "r2"]),
        (Wanted(decision="approve"), []),
        (Wanted(agent="nobody"), []),
        (Wanted(run_id="r1"), ["r1"]),
        (Wanted(tenant="acme"), ["r2"]),
        (Wanted(tenant="", kind="plan"), ["r3"]),
    )
    for wanted, runs in looked_for:
        same(_runs((await store.decided(wanted))[0]), runs, str(wanted))
    [row] = (await store.decided(Wanted(tenant="acme")))[0]
    same((row.resolved_at, row.status), (early, "resolved"), "a decision")
    same((row.resolution or {}).get("by"), "human:oidc:work/7 Bö", "who decided it")


async def check_pages_of_decisions(store: Store) -> None:
    """Every decision stands on one page, also those of the same moment."""
    times = (3.5, 1.1, 3.5, 2.0, 3.5)
    for number, at in enumerate(times):
        await _decided(store, f"r{number}", CREATED_AT + 100 + at, "human")
    seen: list[str] = []
    cursor: str | None = None
    for _ in times:
        rows, cursor = await store.decided(Wanted(by="human"), cursor=cursor, limit=2)
        seen += _runs(rows)
        if cursor is None:
            break
    same(seen, ["r4", "r2", "r0", "r3", "r1"], "all pages")
    for wrong in ("x", "cmVxdWVzdHM6MQ"):
        await refused(store.decided(Wanted(), cursor=wrong), RequestError, f"the cursor {wrong}")
