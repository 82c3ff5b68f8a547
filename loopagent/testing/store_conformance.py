"""What every store must do, as checks that any implementation can be put through.

Each check wants an open, empty store and raises `AssertionError` with what was expected:

    @pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
    async def test_my_store(check):
        store = MyStore(...)
        await store.open()
        try:
            await check(store)
        finally:
            await store.aclose()
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from hashlib import sha256
from typing import Any, TypeAlias

from loopagent.core.effects import AskHuman
from loopagent.errors import RequestError, StoreError
from loopagent.ports import RememberedAnswer, RequestRow, RunRow, Store, StoredArtifact
from loopagent.testing import (
    artifact_checks,
    audit_checks,
    conversation_checks,
    desk_checks,
    dispatch_checks,
    fork_checks,
    key_checks,
    library_checks,
    note_checks,
    notice_checks,
    payload_checks,
    store_checks,
    text_checks,
    trigger_checks,
)
from loopagent.testing.store_checks import is_at
from loopagent.testing.store_samples import CREATED_AT, SampleRun, refused, same, stored


Check: TypeAlias = Callable[[Store], Awaitable[None]]


# ---------------------------------------------------------------------- lists


async def check_run_rows(store: Store) -> None:
    """A row says what a list needs."""
    run = SampleRun("run-1", task="x" * 300)
    await store.create(run.begin(), metadata={"team": "post", "tags": ["a"]})
    await store.commit(run.turn())
    wanted = RunRow(
        id="run-1",
        agent="clerk",
        status="running",
        state="running",
        turn=1,
        title="x" * 200,
        created_at=CREATED_AT,
        updated_at=CREATED_AT + 1,
        metadata={"team": "post", "tags": ["a"]},
    )
    same(await store.runs(), ([wanted], None), "the list of one run")
    await store.commit(run.ask("2:chat"))
    await _listed(store, [("run-1", "running", "followup")])
    await store.commit(run.end())
    await _listed(store, [("run-1", "completed", "idle")])


async def check_run_pages(store: Store) -> None:
    """Runs come newest first, page by page, each once."""
    for number in range(7):
        run = await stored(store, f"run-{number}", agent="even" if number % 2 == 0 else "odd")
        if number < 3:  # noqa: PLR2004 - some of them
            await store.commit(run.end())
    newest_first = [f"run-{number}" for number in (6, 5, 4, 3, 2, 1, 0)]
    same(await _all_runs(store, 3), newest_first, "all runs")
    same(await _all_runs(store, 7), newest_first, "all runs on one page")
    same(await _all_runs(store, 2, agent="even"), ["run-6", "run-4", "run-2", "run-0"], "one agent")
    same(await _all_runs(store, 2, status="completed"), ["run-2", "run-1", "run-0"], "one status")
    same(await _all_runs(store, 2, agent="even", status="running"), ["run-6", "run-4"], "both")
    same((await store.runs(agent="nobody"))[0], [], "an unknown agent")


async def check_open_requests_are_counted(store: Store) -> None:
    """Those that wait for people count, those that were answered do not."""
    same(await store.open_requests(), 0, "open requests of an empty store")
    runs = [await stored(store, f"run-{number}") for number in range(3)]
    for run in runs:
        await store.commit(run.ask("1:chat"))
    same(await store.open_requests(), 3, "open requests")
    await store.commit(runs[0].end())
    same(
        await store.open_requests(), len((await store.requests())[0]), "open requests after an end"
    )


async def check_bad_cursor(store: Store) -> None:
    """A cursor that the list did not give out is refused."""
    for number in range(2):
        run = await stored(store, f"run-{number}")
        await store.commit(run.ask("1:chat"))
    _, of_runs = await store.runs(limit=1)
    _, of_requests = await store.requests(limit=1)
    for cursor in ("", "x", "🙂", "MQ", "run-1", "../x", "A" * 5000, of_requests):
        error = await refused(store.runs(cursor=cursor), RequestError, f"cursor {cursor!r:.20}")
        same(getattr(error, "code", ""), "bad_cursor", "code of the refusal")
    error = await refused(store.requests(cursor=of_runs), RequestError, "a cursor of another list")
    same(getattr(error, "status", 0), 400, "status of the refusal")


async def check_unfinished(store: Store) -> None:
    """Only runs with work to do are unfinished."""
    names = ("busy", "waiting", "ended", "both")
    busy, waiting, ended, both = [await stored(store, name) for name in names]
    await store.commit(waiting.ask("1:chat"))
    await store.commit(ended.end())
    ask = AskHuman("1:chat", "question", "Which one?", ("answer",))
    await store.commit(both.next(pending={**busy.state.pending, ask.id: ask}))
    same(await store.unfinished(), ["busy", "both"], "unfinished runs")
    await store.commit(waiting.close("1:chat"))
    same(await store.unfinished(), ["busy", "waiting", "both"], "unfinished runs after an answer")


# ---------------------------------------------------------------------- requests


async def check_requests(store: Store) -> None:
    """Requests open and close with the facts that say so."""
    run = await stored(store, "run-1")
    await store.commit(run.ask("1:chat"))
    name, body = run.request_id("1:chat"), run.commits[-1].facts[0].data
    asked = RequestRow(name, "run-1", "clerk", "open", CREATED_AT + 1, body)
    same(await store.request(name), asked, "an open request")
    same(await store.requests(), ([asked], None), "open requests")
    await store.commit(run.close("1:chat"))
    said = run.commits[-1].facts[0].data
    closed = replace(asked, status="resolved", resolved_at=CREATED_AT + 2, resolution=said)
    same(await store.request(name), closed, "an answered request")
    same((await store.requests())[0], [], "open requests after the answer")
    same(await store.requests(status="resolved"), ([closed], None), "answered requests")
    for how in ("cancelled", "expired"):
        await store.commit(run.ask(how))
        await store.commit(run.close(how, how))
        found = await store.request(run.request_id(how))
        same(found and found.status, how, "status of a closed request")


async def check_request_pages(store: Store) -> None:
    """Requests come oldest first, page by page, each once."""
    first, second = await stored(store, "run-1"), await stored(store, "run-2")
    for number in range(3):
        await store.commit(first.ask(f"{number}:chat"))
        await store.commit(second.ask(f"{number}:chat"))
    await store.commit(first.close("1:chat"))
    every = [f"run-{run}:{number}:chat" for number in range(3) for run in (1, 2)]
    still_open = [one for one in every if one != "run-1:1:chat"]
    for size in (1, 2, 5, 100):
        same(await _all_requests(store, size, status=None), every, "all requests")
        same(await _all_requests(store, size), still_open, "open requests")
        back = await _all_requests(store, size, status=None, newest=True)
        same(back, every[::-1], "all requests, newest first")
    same(await _all_requests(store, 1, run_id="run-1", status=None), every[::2], "one run's")
    same(await _all_requests(store, 1, run_id="nobody"), [], "an unknown run's")


async def check_request_again(store: Store) -> None:
    """A request that is put again is open again."""
    run = await stored(store, "run-1")
    for commit in (run.ask("1:chat"), run.close("1:chat"), run.ask("1:chat")):
        await store.commit(commit)
    found = await store.request(run.request_id("1:chat"))
    got = found and (found.status, found.created_at, found.resolved_at, found.resolution)
    same(got, ("open", CREATED_AT + 3, None, None), "a request put again")


# ---------------------------------------------------------------------- leases


async def check_leases(store: Store) -> None:
    """One owner at a time; a lease can be renewed, given back and, once it has expired, taken over."""
    await stored(store, "run-1")

    async def claim(owner: str, now: float) -> bool:
        return await store.claim("run-1", owner, now=now, lease_seconds=10.0)

    same(await store.owner("run-1"), None, "owner before any lease")
    same(await claim("a", 100.0), True, "the first claim")
    same(await claim("b", 109.0), False, "a claim while another's lease is valid")
    same(await claim("a", 109.0), True, "a renewal")
    same(await claim("b", 118.0), False, "a claim while a renewed lease is valid")
    await store.release("run-1", "b")
    same(await store.owner("run-1"), "a", "owner after somebody else gave it back")
    same(await claim("b", 119.0), True, "a claim of an expired lease")
    same(await store.owner("run-1"), "b", "owner after the takeover")
    await store.release("run-1", "b")
    same(await store.owner("run-1"), None, "owner after giving back")
    same(await claim("c", 0.0), True, "a claim of a lease given back")


async def check_lease_race(store: Store) -> None:
    """Of many claims at once exactly one is granted, and a lease does not change a run."""
    run = await stored(store, "run-1")
    claims = [
        store.claim("run-1", f"owner-{one}", now=0.0, lease_seconds=10.0) for one in range(20)
    ]
    same(sorted(await asyncio.gather(*claims)), [False] * 19 + [True], "granted claims")
    await is_at(store, run.state, version=1, seq=2)
    same(await store.commit(run.turn()), 3, "seq after a lease")


# ---------------------------------------------------------------------- artifacts and answers


def _text(content: bytes, media_type: str = "text/plain") -> StoredArtifact:
    return StoredArtifact(sha256(content).hexdigest(), media_type, len(content), content)


async def check_artifacts(store: Store) -> None:
    """A text is found under its hash, by the run it was kept for and by no other."""
    await stored(store, "run-1")
    await stored(store, "run-2")
    text, empty = _text("ü 🙂\u0000".encode() * 1000), _text(b"")
    for one in (text, text, empty):
        await store.put_artifact("run-1", one)
    same(await store.artifact("run-1", text.artifact_id), text, "a text")
    same(await store.artifact("run-1", empty.artifact_id), empty, "an empty text")
    same(await store.artifact("run-2", text.artifact_id), None, "another run's text")
    await store.put_artifact("run-2", _text(text.content, "application/json"))
    same(await store.artifact("run-1", text.artifact_id), text, "a text that both runs keep")
    other = await store.artifact("run-2", text.artifact_id)
    same(other and other.media_type, "application/json", "media type of the other run's text")
    await refused(store.put_artifact("nobody", text), StoreError, "a text of an unknown run")


async def check_artifact_ids(store: Store) -> None:
    """An id is the hash of the content and nothing else, least of all a path."""
    await stored(store, "run-1")
    for name in ("../x", "/etc/passwd", "..%2fx", "CON", "a" * 5000, "", "x\u0000y", "0" * 64):
        same(await store.artifact("run-1", name), None, f"artifact {name!r:.20}")
        wrong = StoredArtifact(name, "text/plain", 1, b"x")
        await refused(store.put_artifact("run-1", wrong), StoreError, f"id {name!r:.20}")


async def check_answers(store: Store) -> None:
    """The first answer under a key is the one that is kept."""
    first = RememberedAnswer("abc", 201, '{"id": "ü"}', {"location": "/runs/1"})
    second = RememberedAnswer("xyz", 500, "", {})
    same(await store.recall("key"), None, "an unused key")
    same(await store.remember("key", first, at=1000.0), first, "the first answer")
    same(await store.remember("key", second, at=1001.0), first, "the second answer")
    same(await store.recall("key"), first, "the kept answer")
    same(await store.remember("other", second, at=1001.0), second, "an answer of another key")
    for number in range(30):
        await store.remember(f"key-{number}", first, at=2000.0 + number)
    much_later = 1000.0 + 366 * 86_400
    same(await store.remember("key-29", second, at=much_later), second, "an answer a year later")
    same(await store.recall("key"), None, "an answer that was kept for a year")


# ---------------------------------------------------------------------- deletion


async def check_delete(store: Store) -> None:
    """An ended run goes with everything that belongs to it; others keep what is theirs."""
    text, own = _text(b"shared"), _text(b"own")
    kept, gone = await stored(store, "kept", turns=2), await stored(store, "gone", turns=2)
    for run in (kept, gone):
        await store.commit(run.ask("1:chat"))
        await store.put_artifact(run.id, text)
    await store.put_artifact(gone.id, own)
    child = SampleRun("child", parent=gone)
    await store.create(child.begin())
    await store.commit(child.end())
    await store.commit(gone.end())
    same(await store.delete("gone"), True, "the first deletion")
    same(await store.delete("gone"), False, "the second deletion")
    for run_id in ("gone", "child"):
        same(await store.load(run_id), None, "state of a deleted run")
        same(await store.log(run_id), [], "log of a deleted run")
    same(await store.request("gone:1:chat"), None, "a deleted run's request")
    await _listed(store, [("kept", "running", "followup")])
    same(await store.artifact("kept", text.artifact_id), text, "a shared text")
    await is_at(store, kept.state, version=4, seq=5)
    again = await stored(store, "gone")
    same(await store.artifact("gone", own.artifact_id), None, "a deleted run's text")
    await is_at(store, again.state, version=1, seq=2)


async def check_delete_refused(store: Store) -> None:
    """A run that goes on stays, and so does one that belongs to another."""
    root = await stored(store, "root")
    child = SampleRun("child", parent=root)
    await store.create(child.begin())
    await refused(store.delete("root"), RequestError, "deletion of a running run")
    await store.commit(root.end())
    await refused(store.delete("root"), RequestError, "deletion with a running child")
    await store.commit(child.end())
    await refused(store.delete("child"), RequestError, "deletion of a child")
    same(await store.delete("root"), True, "deletion of an ended tree")


# ---------------------------------------------------------------------- helpers


async def _listed(store: Store, wanted: list[tuple[str, str, str]]) -> None:
    rows, _ = await store.runs()
    same([(one.id, one.status, one.state) for one in rows], wanted, "the list of runs")


async def _all_runs(store: Store, size: int, **filters: Any) -> list[str]:
    found: list[str] = []
    cursor = None
    while True:
        rows, cursor = await store.runs(cursor=cursor, limit=size, **filters)
        found += [one.id for one in rows]
        if cursor is None:
            return found
        same(len(rows), size, "length of a page with another behind it")


async def _all_requests(store: Store, size: int, **filters: Any) -> list[str]:
    found: list[str] = []
    cursor = None
    while True:
        rows, cursor = await store.requests(cursor=cursor, limit=size, **filters)
        found += [one.id for one in rows]
        if cursor is None:
            return found
        same(len(rows), size, "length of a page with another behind it")


CHECKS: list[Check] = [
    check
    for module in (
        vars(store_checks),
        vars(conversation_checks),
        globals(),
        vars(payload_checks),
        vars(dispatch_checks),
        vars(desk_checks),
        vars(key_checks),
        vars(library_checks),
        vars(note_checks),
        vars(trigger_checks),
        vars(notice_checks),
        vars(fork_checks),
        vars(artifact_checks),
        vars(audit_checks),
        vars(text_checks),
    )
    for name, check in module.items()
    if name.startswith("check_")
]
"""Every check, in the order of reading."""
