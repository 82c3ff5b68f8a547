"""The checks of `store_conformance` that concern conversations."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from loopagent.conversation_port import ConversationRow
from loopagent.core.conversation import QUEUED, Said
from loopagent.core.effects import AwaitConversation, CallModel
from loopagent.core.state import Message
from loopagent.errors import RequestError
from loopagent.ports import Commit, Store
from loopagent.testing.store_samples import CREATED_AT, SampleRun, refused, same


def _run(
    run_id: str, *, user: str = "ann", tenant: str = "", conversation: str = "c1"
) -> SampleRun:
    run = SampleRun(run_id, task=f"Task of {run_id}.")
    run.state = replace(run.state, user=user, tenant=tenant, conversation=conversation)
    return run


def _begin(run: SampleRun) -> Commit:
    return _with_task(run, run.begin())


def _wait(run: SampleRun) -> Commit:
    """The first commit of a run that waits its turn."""
    hold = AwaitConversation(QUEUED, run.task, "client")
    return run.next(pending={QUEUED: hold}, shown="queued")


def _let_in(run: SampleRun) -> Commit:
    pending = {"1:model": CallModel("1:model")}
    return _with_task(run, run.next(texts=(run.task,), pending=pending, shown="running"))


def _with_task(run: SampleRun, commit: Commit) -> Commit:
    return replace(commit, messages=(Message(1, "user", "task", run.task, 0),))


async def _talked(store: Store, run_id: str, **where: str) -> SampleRun:
    """A run in a conversation, from its task to its end."""
    run = _run(run_id, **where)
    await store.create(_begin(run))
    await store.commit(run.end())
    return run


async def _texts(
    store: Store, user: str, conversation: str, *, tenant: str = ""
) -> list[tuple[int, str, str]]:
    said = await store.said(user, conversation, tenant=tenant)
    return [(one.sequence, one.role, one.text) for one in said]


async def check_conversation(store: Store) -> None:
    """What is said in the runs of a conversation is numbered from 1, run after run."""
    same(await store.conversation("ann", "c1", tenant=""), None, "an unknown conversation")
    same(await store.said("ann", "c1", tenant=""), [], "messages of an unknown conversation")
    await _talked(store, "run-1")
    run = _run("run-2")
    await store.create(_begin(run))
    row = ConversationRow(
        "c1", "ann", "", "Task of run-1.", CREATED_AT, CREATED_AT + 1, 3, 3, active=("run-2",)
    )
    found = await store.conversation("ann", "c1", tenant="")
    same(found and replace(found, updated_at=row.updated_at), row, "the conversation")
    wanted = [(1, "User", "Task of run-1."), (2, "AI", "Sorted."), (3, "User", "Task of run-2.")]
    same(await _texts(store, "ann", "c1"), wanted, "what was said")
    second = Said(2, "AI", "Sorted.", "run-1", CREATED_AT + 1)
    same(await store.said("ann", "c1", tenant="", first=2, last=2), [second], "one message")
    await store.commit(run.end())
    found = await store.conversation("ann", "c1", tenant="")
    same(found and found.active, (), "active runs after the end")


async def check_one_active_run(store: Store) -> None:
    """A second active run is refused, also when both come in the same moment."""
    created = await asyncio.gather(
        *(store.create(_begin(_run(f"run-{number}"))) for number in range(5)),
        return_exceptions=True,
    )
    same(sum(isinstance(one, int) for one in created), 1, "runs that were let in")
    errors = {getattr(one, "code", "") for one in created if not isinstance(one, int)}
    same(errors, {"conversation_busy"}, "why the others were not")
    found = await store.conversation("ann", "c1", tenant="")
    same(found and (found.messages, len(found.active)), (1, 1), "messages and active runs")
    same(len((await store.runs())[0]), 1, "stored runs")


async def check_waiting_runs(store: Store) -> None:
    """Runs that wait have work to do as soon as none before them goes on."""
    first, second, third = (_run(f"run-{number}") for number in (1, 2, 3))
    await store.create(_begin(first))
    await store.create(_wait(second))
    await store.create(_wait(third))
    found = await store.conversation("ann", "c1", tenant="")
    same(found and found.active, ("run-1", "run-2", "run-3"), "the line")
    same(await store.unfinished(), ["run-1"], "unfinished while the first goes on")
    await refused(store.create(_begin(_run("late"))), RequestError, "a run past the line")
    await store.commit(first.end())
    same(await store.unfinished(), ["run-2"], "unfinished after the first")
    await store.commit(_let_in(second))
    same(await store.unfinished(), ["run-2"], "unfinished while the second goes on")
    await store.commit(third.next(pending={}, status="cancelled", shown="idle"))
    await store.commit(second.end())
    same(await store.unfinished(), [], "unfinished in the end")
    texts = [text for _, _, text in await _texts(store, "ann", "c1")]
    wanted = ["Task of run-1.", "Sorted.", "Task of run-2.", "Sorted."]
    same(texts, wanted, "what was said; a run that never began said nothing")


async def check_conversations_apart(store: Store) -> None:
    """The same id of two users, or of users of two tenants, is two conversations, and neither sees the other's."""
    people = (("ann", ""), ("bob", ""), ("", ""), ("ann", "acme"), ("", "acme"))
    for user, tenant in people:
        await _talked(store, f"run-{user}-{tenant}", user=user, tenant=tenant)
    for user, tenant in people:
        who = f"{user!r} of {tenant!r}"
        texts = [text for _, _, text in await _texts(store, user, "c1", tenant=tenant)]
        same(texts, [f"Task of run-{user}-{tenant}.", "Sorted."], f"messages of {who}")
        rows, _ = await store.conversations(user=user, tenant=tenant)
        found = [(one.user, one.tenant, one.messages) for one in rows]
        same(found, [(user, tenant, 2)], f"conversations of {who}")
    same(await store.delete_conversation("bob", "c1", tenant=""), True, "deletion of one of them")
    same(await store.delete_conversation("bob", "c1", tenant=""), False, "deletion once more")
    same(await store.load("run-bob-"), None, "a run of the deleted conversation")
    same(await store.delete_conversation("bob", "c1", tenant="acme"), False, "in another tenant")
    same(await store.delete_conversation("ann", "c1", tenant="acme"), True, "deletion in a tenant")
    same(len(await store.said("ann", "c1", tenant="")), 2, "messages of the other user afterwards")


async def check_conversation_pages(store: Store) -> None:
    """Conversations come newest first, page by page, each once."""
    for number in range(5):
        await _talked(store, f"run-{number}", conversation=f"c{number}")
        await _talked(store, f"other-{number}", conversation=f"c{number}", user="bob")
    found: list[str] = []
    cursor = None
    for size in (2, 2, 1):
        rows, cursor = await store.conversations(user="ann", tenant="", cursor=cursor, limit=2)
        same(len(rows), size, "length of a page")
        found += [one.id for one in rows]
    same((found, cursor), (["c4", "c3", "c2", "c1", "c0"], None), "all conversations")
    _, of_runs = await store.runs(limit=1)
    error = await refused(
        store.conversations(user="ann", tenant="", cursor=of_runs),
        RequestError,
        "a cursor of another list",
    )
    same(getattr(error, "code", ""), "bad_cursor", "code of the refusal")


async def check_conversation_deletion(store: Store) -> None:
    """A deleted run takes its words along and leaves a gap; a conversation goes whole, once nothing goes on in it."""
    await _talked(store, "run-1")
    second = _run("run-2")
    await store.create(_begin(second))
    error = await refused(
        store.delete_conversation("ann", "c1", tenant=""),
        RequestError,
        "deletion of a busy conversation",
    )
    same(getattr(error, "code", ""), "conversation_busy", "code of the refusal")
    await store.commit(second.end())
    await store.delete("run-1")
    numbers = [number for number, _, _ in await _texts(store, "ann", "c1")]
    same(numbers, [3, 4], "numbers after a run was deleted")
    found = await store.conversation("ann", "c1", tenant="")
    same(found and (found.messages, found.last), (2, 4), "messages and the last number")
    same(await store.delete_conversation("ann", "c1", tenant=""), True, "deletion")
    same(await store.conversation("ann", "c1", tenant=""), None, "the deleted conversation")
    await _talked(store, "run-3")
    numbers = [number for number, _, _ in await _texts(store, "ann", "c1")]
    same(numbers, [1, 2], "numbers of a new conversation of this id")
