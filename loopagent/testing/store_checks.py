"""The checks of `store_conformance` that concern one run: committing, reading back, events and their numbers."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from loopagent.core.facts import Fact
from loopagent.core.state import RunState
from loopagent.errors import ConflictError, RequestError, StoreError
from loopagent.ports import Store
from loopagent.testing.store_samples import CREATED_AT, SampleRun, refused, same, stored


async def is_at(store: Store, state: RunState, *, version: int, seq: int) -> None:
    """Complain when the stored run is not exactly this."""
    found = await store.load(state.id)
    if found is None:
        raise AssertionError(f"run {state.id!r}: expected it to be stored, it is unknown")
    same((found.version, found.seq), (version, seq), f"version and seq of {state.id!r}")
    same(found.state, state, f"state of {state.id!r}")


async def _numbers(store: Store, run_id: str, *, after: int = 0, limit: int = 1000) -> list[int]:
    return [one["seq"] for one in await store.events(run_id, after=after, limit=limit)]


# ---------------------------------------------------------------------- create and commit


async def check_create(store: Store) -> None:
    """A new run is at version 1 and its events count from 1."""
    run = SampleRun("run-1")
    same(await store.create(run.begin()), 1, "first seq of a new run")
    await is_at(store, run.state, version=1, seq=2)


async def check_create_twice(store: Store) -> None:
    """A second run of the same id is refused and the first stays as it is."""
    run = await stored(store, "run-1", turns=1)
    other = SampleRun("run-1", agent="impostor").begin()
    await refused(store.create(other), ConflictError, "a second run of the same id")
    await is_at(store, run.state, version=2, seq=3)


async def check_commit(store: Store) -> None:
    """Each commit moves the version by one and numbers its facts on from the last."""
    run = await stored(store, "run-1")
    same(await store.commit(run.turn()), 3, "first seq of the second commit")
    same(await store.commit(run.turn()), 4, "first seq of the third commit")
    await is_at(store, run.state, version=3, seq=4)


async def check_commits_together(store: Store) -> None:
    """Commits stored together leave what they would have left one by one."""
    alone, together = await stored(store, "run-1"), await stored(store, "run-2")
    for run in (alone, together):
        run.turn()
        run.ask("1:chat")
        run.close("1:chat")
        run.loop(20, 16)
        run.turn()
        run.end()
    for one in alone.commits[1:]:
        await store.commit(one)
    first, *later = together.commits[1:]
    same(await store.commit(first, *later), 3, "first seq of commits together")
    await is_at(store, together.state, version=7, seq=7)
    same(await _kept(store, "run-2"), await _kept(store, "run-1"), "what is kept of the run")


async def _kept(store: Store, run_id: str) -> str:
    """Everything that is kept of a run, without its id."""
    kept = (
        await store.log(run_id),
        await store.transcript(run_id),
        await store.events(run_id),
        await store.requests(status=None, run_id=run_id),
    )
    return repr(kept).replace(run_id, "")


async def check_commits_out_of_order(store: Store) -> None:
    """Commits that do not follow one another are refused, all of them."""
    run = await stored(store, "run-1")
    first, second, third = run.turn(), run.turn(), run.turn()
    await refused(store.commit(first, third), ConflictError, "commits with a gap")
    await refused(store.commit(second, third), ConflictError, "commits that begin too late")
    body = {"requestId": "run-1:2:chat", "kind": "question", "text": object()}
    bad = replace(second, facts=(Fact("request.created", "engine", body),))
    await refused(store.commit(first, bad), StoreError, "commits of which one is not JSON")
    same(len(await store.log("run-1")), 1, "log entries after refused commits")
    await store.commit(first, second, third)
    await is_at(store, run.state, version=4, seq=5)


async def check_stale_commit(store: Store) -> None:
    """A commit against an older version changes nothing at all."""
    run = await stored(store, "run-1", turns=2)
    late = SampleRun("run-1")
    late.begin()
    await refused(store.commit(late.ask("1:chat")), ConflictError, "a commit that comes too late")
    await is_at(store, run.state, version=3, seq=4)
    same(len(await store.log("run-1")), 3, "log entries after a refused commit")
    same((await store.requests(status=None))[0], [], "requests of a refused commit")


async def check_commit_unknown(store: Store) -> None:
    """A commit to a run that was never created is refused."""
    run = SampleRun("run-1")
    run.begin()
    await refused(store.commit(run.turn()), ConflictError, "a commit to an unknown run")
    same(await store.load("run-1"), None, "the unknown run")


async def check_orphan(store: Store) -> None:
    """A child of a run that does not exist is refused."""
    parent = SampleRun("nobody")
    child = SampleRun("child", parent=parent)
    await refused(store.create(child.begin()), StoreError, "a child of an unknown run")
    same(await store.load("child"), None, "the refused child")


async def check_not_json(store: Store) -> None:
    """What is not JSON is refused, and nothing of the commit is kept."""
    broken = SampleRun("run-1").begin()
    call = store.create(broken, metadata={"team": object()})
    await refused(call, StoreError, "metadata that is not JSON")
    same(await store.load("run-1"), None, "the refused run")
    run = await stored(store, "run-1")
    before = run.state
    fact = Fact("request.created", "engine", {"requestId": "run-1:1", "subject": object()})
    await refused(store.commit(run.next(facts=(fact,))), StoreError, "a fact that is not JSON")
    await is_at(store, before, version=1, seq=2)


async def check_unknown_request(store: Store) -> None:
    """Closing a request that was never put changes nothing but the run."""
    run = await stored(store, "run-1")
    await store.commit(run.close("1:chat"))
    await is_at(store, run.state, version=2, seq=3)
    same(await store.request(run.request_id("1:chat")), None, "the request")


async def check_race(store: Store) -> None:
    """Of commits against the same version exactly one wins."""
    run = await stored(store, "run-1")
    rivals = [SampleRun("run-1") for _ in range(10)]
    for one in rivals:
        one.begin()
    calls = [store.commit(one.turn(f"I am rival {index}.")) for index, one in enumerate(rivals)]
    ends = await asyncio.gather(*calls, return_exceptions=True)
    lost = [one for one in ends if isinstance(one, ConflictError)]
    same((len(lost), len(ends) - len(lost)), (9, 1), "losers and winners of the race")
    same(len(await store.log(run.id)), 2, "log entries after the race")


async def check_many_runs(store: Store) -> None:
    """Runs that move on side by side do not touch each other."""
    runs = [SampleRun(f"run-{number}") for number in range(30)]

    async def live(run: SampleRun) -> None:
        await store.create(run.begin())
        for _ in range(4):
            await store.commit(run.turn(f"I am {run.id}."))

    await asyncio.gather(*[live(one) for one in runs])
    for run in runs:
        await is_at(store, run.state, version=5, seq=6)
        texts = [one.text for one in await store.transcript(run.id)]
        same(texts, [run.task, *[f"I am {run.id}."] * 4], "transcript beside other runs")


async def check_pinned_spec(store: Store) -> None:
    """Each run keeps the definition it was created with."""
    first = await stored(store, "run-1", agent="clerk")
    second = await stored(store, "run-2", agent="porter")
    for run in (first, second):
        found = await store.load(run.id)
        same(found and found.state.spec, run.state.spec, "the pinned definition")


async def check_values(store: Store) -> None:
    """Text, numbers and nesting come back as they went in."""
    text = 'ü 漢 🙂 \u0000 \u2028 "quoted" \\ \n'
    payload: dict[str, Any] = {
        "text": text,
        "numbers": [0, -1, 2**53, 10**30, 0.1, 1e300, -0.5],
        "": {"nested": [[[[]]], {}, None, True, False]},
    }
    run = await stored(store, "run-1")
    fact = Fact(
        "payload.changed", "model", {"patch": [{"op": "add", "path": "", "value": payload}]}
    )
    await store.commit(run.next(facts=(fact,), texts=(text,), payload=payload))
    await is_at(store, run.state, version=2, seq=3)
    same((await store.events("run-1", after=2))[0]["data"], fact.data, "data of an event")
    same((await store.transcript("run-1"))[1].text, text, "text of a message")


# ---------------------------------------------------------------------- log and events


async def check_log(store: Store) -> None:
    """The log holds every commit as it was given."""
    run = await stored(store, "run-1", turns=3)
    await store.commit(run.quiet())
    entries = await store.log("run-1")
    same([one.version for one in entries], [1, 2, 3, 4, 5], "versions in the log")
    same([one.first_seq for one in entries], [1, 3, 4, 5, 6], "first seq of each entry")
    for entry, commit in zip(entries, run.commits, strict=True):
        got = (entry.at, entry.events, entry.facts, entry.messages)
        wanted = (commit.at, commit.events, commit.facts, commit.messages)
        same(got, wanted, "a log entry")


async def check_transcript(store: Store) -> None:
    """Messages are found by their numbers."""
    run = await stored(store, "run-1", turns=4)
    await store.commit(run.quiet())
    await store.commit(run.next(texts=("five", "six", "seven")))
    every = [one for commit in run.commits for one in commit.messages]
    same(await store.transcript("run-1"), every, "the whole transcript")
    for first, last in ((1, 1), (3, 3), (2, 6), (7, 7), (8, None), (9, None), (4, 3), (0, 2)):
        wanted = every[max(first, 1) - 1 : last]
        got = await store.transcript("run-1", first=first, last=last)
        same(got, wanted, f"messages {first} to {last}")
    same(await store.transcript("run-1", first=10**30), [], "messages after the last")


async def check_events(store: Store) -> None:
    """Events are numbered without gaps and found by their numbers."""
    run = await stored(store, "run-1", turns=2)
    await store.commit(run.quiet())
    await store.commit(run.turn())
    every = await store.events("run-1")
    same([one["seq"] for one in every], [1, 2, 3, 4, 5], "numbers of the events")
    first = {
        "seq": 1,
        "id": "run-1.1",
        "runId": "run-1",
        "rootRunId": "run-1",
        "ts": CREATED_AT,
        "type": "run.created",
        "decidedBy": "client",
        "data": {"agent": "clerk", "message": run.task},
    }
    same(every[0], first, "the first event")
    for after in range(7):
        same(await store.events("run-1", after=after), every[after:], f"events after {after}")
    same(await store.events("run-1", after=1, limit=2), every[1:3], "two events after 1")
    same(await store.events("run-1", after=10**30), [], "events after the last")


async def check_tree(store: Store) -> None:
    """Children take their numbers from the root, whose events hold the whole tree."""
    root = await stored(store, "root")
    child = SampleRun("child", parent=root)
    same(await store.create(child.begin()), 3, "first seq of a child")
    await store.commit(root.turn())
    grandchild = SampleRun("grandchild", parent=child)
    same(await store.create(grandchild.begin()), 6, "first seq of a grandchild")
    same(await store.commit(child.turn()), 8, "next seq of a child")
    same(await _numbers(store, "root"), [1, 2, 3, 4, 5, 6, 7, 8], "the tree's numbers")
    same(await _numbers(store, "root", after=4, limit=3), [5, 6, 7], "part of the tree's numbers")
    same(await _numbers(store, "child"), [3, 4, 8], "the child's numbers")
    event = (await store.events("grandchild"))[0]
    place = (event["runId"], event["rootRunId"], event["parentRunId"], event["id"])
    same(place, ("grandchild", "root", "child", "root.6"), "where a grandchild's event belongs")
    await is_at(store, child.state, version=2, seq=8)
    await _lists_tree(store)


async def _lists_tree(store: Store) -> None:
    """The tree of `check_tree` as rows, and lists with and without children."""
    rows = [(one.id, one.parent_id) for one in await store.tree("root")]
    wanted = [("root", None), ("child", "root"), ("grandchild", "child")]
    same(rows, wanted, "the tree's runs and their parents")
    same([one.id for one in await store.tree("grandchild")], ["grandchild"], "a leaf's own tree")
    same(await store.tree("nobody"), [], "the tree of no run")
    everything, _ = await store.runs()
    same([one.id for one in everything], ["grandchild", "child", "root"], "all runs")
    roots, _ = await store.runs(roots=True)
    same([one.id for one in roots], ["root"], "runs without children")


async def check_spilled(store: Store) -> None:
    """Results that are stored apart come back in their order, and only those of the open step."""
    run = await stored(store, "loop", turns=1)
    for count, spilled in ((5, 4), (2, 4), (6, 13)):
        await store.commit(run.loop(count, spilled))
        await is_at(store, run.state, version=run.version, seq=3)
    await store.commit(run.next(step=None, payload={"spilled": 1}))
    await is_at(store, run.state, version=run.version, seq=3)
    await store.commit(run.loop(3, 2))
    await is_at(store, run.state, version=run.version, seq=3)


async def check_unknown_run(store: Store) -> None:
    """Nothing is known of a run that does not exist."""
    await stored(store, "run-1")
    same(await store.load("nobody"), None, "state")
    same(await store.transcript("nobody"), [], "transcript")
    same(await store.log("nobody"), [], "log")
    same(await store.events("nobody"), [], "events")
    same(await store.owner("nobody"), None, "owner")
    same(await store.claim("nobody", "a", now=0.0, lease_seconds=9.0), False, "lease")
    same(await store.artifact("nobody", "x"), None, "artifact")
    same(await store.request("nobody:1"), None, "request")
    same(await store.recall("nobody"), None, "answer")
    same(await store.delete("nobody"), False, "deletion")
    await store.release("nobody", "a")


async def check_retention(store: Store) -> None:
    """Ended runs are found by age; without its log a run still says what it came to, and its tree goes with it."""
    old, new, open_ = [await stored(store, one, turns=3) for one in ("old", "new", "open")]
    child = SampleRun("child", parent=old)
    await store.create(child.begin())
    await store.commit(replace(old.end(), at=CREATED_AT + 100))
    late = CREATED_AT + 10_000
    same(await store.ended(before=late), [], "ended runs while a child goes on")
    await store.commit(replace(child.end(), at=CREATED_AT + 101))
    await store.commit(replace(new.end(), at=CREATED_AT + 200))
    same(await store.ended(before=late), ["old", "new"], "ended runs, the oldest first")
    same(await store.ended(before=late, limit=1), ["old"], "the oldest ended run")
    same(await store.ended(before=CREATED_AT + 200), ["old"], "runs that ended before a time")
    for run_id in (open_.id, child.id):
        await refused(store.forget_log(run_id), RequestError, f"forgetting the log of {run_id}")
    before = await store.load("old")
    assert before is not None
    same(await store.oldest_event("old"), 1, "the first event of a whole log")
    same(await store.forget_log("old"), True, "forgetting a log")
    same(await store.forget_log("old"), False, "forgetting it again")
    same(await store.forget_log("nobody"), False, "forgetting nothing")
    same(await store.load("old"), before, "what the run came to")
    for run_id in ("old", "child"):
        same(await store.events(run_id), [], "events of a forgotten log")
        same(await store.transcript(run_id), [], "messages of a forgotten log")
        same(await store.log(run_id), [], "a forgotten log")
        same(await store.oldest_event(run_id), before.seq + 1, "the first event that is left")
    same(await store.ended(before=late, logged=True), ["new"], "ended runs with a log")
    same(await store.ended(before=late), ["old", "new"], "ended runs with or without")
    same(len(await store.log("new")), 5, "log entries of the other run")
    same(await store.delete("old"), True, "deleting it all")
    same(await store.ended(before=late), ["new"], "ended runs that are left")
