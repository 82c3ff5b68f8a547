"""The checks of `store_conformance` that concern runs which begin with the history of another one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from loopagent.ports import LogEntry
from loopagent.testing.store_samples import SampleRun, same, stored


if TYPE_CHECKING:
    from loopagent.ports import Store


async def _forked(store: Store, run_id: str) -> tuple[SampleRun, int, int]:
    """A run with the history of `run-1`; its number of entries and of events in them."""
    original = await stored(store, "run-1", turns=2)
    entries = await store.log(original.id)
    history: list[LogEntry] = []
    seq = 1
    for at, one in enumerate(entries, 1):
        facts = tuple(replace(fact, copy_of=f"run-1.{one.first_seq}") for fact in one.facts)
        history.append(replace(one, version=at, first_seq=seq, facts=facts))
        seq += len(facts)
    copy = SampleRun(run_id)
    copy.state = replace(original.state, id=run_id, root_id=run_id)
    copy.version = len(history)
    commit = replace(copy.turn("I go my own way."), history=tuple(history))
    same(await store.create(commit), seq, "number of the first event behind the history")
    return copy, len(history), seq - 1


async def check_history(store: Store) -> None:
    """A run that begins with a history has it in its log, its transcript and its events, and goes on behind it."""
    copy, entries, events = await _forked(store, "copy-1")
    await store.commit(copy.turn("And on."))
    snapshot = await store.load(copy.id)
    same(
        snapshot and (snapshot.version, snapshot.seq), (entries + 2, events + 2), "where it stands"
    )
    log = await store.log(copy.id)
    same([one.version for one in log], list(range(1, entries + 3)), "versions in its log")
    original = await store.log("run-1")
    same([one.events for one in log[:entries]], [one.events for one in original], "its history")
    same([one.at for one in log[:entries]], [one.at for one in original], "times in its history")
    said = [one.text for one in await store.transcript(copy.id)]
    before = [one.text for one in await store.transcript("run-1")]
    same(said, [*before, "I go my own way.", "And on."], "its transcript")
    same([one.text for one in await store.transcript(copy.id, first=2, last=2)], before[1:2], "one")
    found = await store.events(copy.id)
    same([one["seq"] for one in found], list(range(1, events + 3)), "numbers of its events")
    same({one["runId"] for one in found}, {copy.id}, "whose events they are")
    same(
        [one.get("forkedFrom") is not None for one in found], [True] * events + [False] * 2, "marks"
    )
    same(len(await store.events(copy.id, after=events)), 2, "events behind the history")


async def check_history_is_apart(store: Store) -> None:
    """A run and the one that it takes its history from know nothing of each other."""
    copy, _, _ = await _forked(store, "copy-1")
    rows = {one.id: one for one in (await store.runs())[0]}
    same(rows[copy.id].title, rows["run-1"].title, "title of the copy")
    same(len(await store.log("run-1")), 3, "transactions of the original")
    same((await store.requests(status=None))[0], [], "requests")
    await store.commit(copy.end())
    same(await store.delete(copy.id), wanted=True, what="removal of the copy")
    same(len(await store.transcript("run-1")), 3, "messages of the original")
