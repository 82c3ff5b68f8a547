"""The payload of a run is what was committed last, however it is kept; part of the conformance suite."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from loopagent.testing.store_samples import same, stored


if TYPE_CHECKING:
    from loopagent.ports import Commit, Store

SMALL: dict[str, Any] = {"rows": [1, 2]}
LARGE: dict[str, Any] = {"rows": [{"name": "ä" * 40, "number": one} for one in range(200)]}
LARGER: dict[str, Any] = {"rows": [*LARGE["rows"], "one more"]}


async def check_payloads_of_any_size(store: Store) -> None:
    """One that grows, shrinks, and stays is read as it is."""
    run = await stored(store, "run-1")
    for payload in (LARGE, SMALL, LARGE, LARGER, {}, SMALL):
        await store.commit(run.next(payload=payload))
        await _is(store, "run-1", payload, "one that was changed")
        await store.commit(_kept(run.turn()))
        await _is(store, "run-1", payload, "one that stayed")


async def check_held_payloads(store: Store) -> None:
    """Of commits that are stored together the last payload counts, also when the last one left it as it was."""
    run = await stored(store, "run-1")
    await store.commit(run.next(payload=LARGE), _kept(run.turn()))
    await _is(store, "run-1", LARGE, "the one of the first")
    await store.commit(_kept(run.turn()), run.next(payload=LARGER), _kept(run.turn()))
    await _is(store, "run-1", LARGER, "the one in the middle")
    await store.commit(_kept(run.turn()), _kept(run.turn()))
    await _is(store, "run-1", LARGER, "the one from before")


async def check_payloads_from_the_start(store: Store) -> None:
    """Runs are created with payloads of their own, and removing one leaves the others' alone."""
    runs = [await stored(store, f"run-{number}", payload=LARGE) for number in range(2)]
    await store.commit(runs[1].next(payload=LARGER))
    await store.commit(_kept(runs[0].end()))
    same(await store.delete("run-0"), True, "deleting a run")
    await _is(store, "run-1", LARGER, "the one of the other run")
    again = await stored(store, "run-0", payload=SMALL)
    await store.commit(_kept(again.turn()))
    await _is(store, "run-0", SMALL, "the one of a new run with that name")


def _kept(commit: Commit) -> Commit:
    return replace(commit, same_payload=True)


async def _is(store: Store, run_id: str, payload: dict[str, Any], what: str) -> None:
    found = await store.load(run_id)
    assert found is not None
    same(found.state.payload, payload, f"the payload of {run_id}: {what}")
