"""Removing ended runs, or only their logs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from loopagent.stores import records
from loopagent.stores.postgres import conversations


if TYPE_CHECKING:
    from collections.abc import Sequence

Db: TypeAlias = Any


async def delete(db: Db, run_id: str) -> bool:
    """Remove an ended run with its children."""
    async with db.transaction():
        tree = await _ended_tree(db, run_id)
        await _delete(db, tree)
        return bool(tree)


async def forget_log(db: Db, run_id: str) -> bool:
    """Remove the log of an ended run and its children."""
    async with db.transaction():
        tree = await _ended_tree(db, run_id)
        for table in ("outcome", "log"):
            await db.execute(f"DELETE FROM {table} WHERE run = ANY ($1)", tree)
        marked = (
            "UPDATE run SET log_gone = true WHERE key = ANY ($1) AND NOT log_gone RETURNING key"
        )
        return bool(await db.fetch(marked, tree))


async def _ended_tree(db: Db, run_id: str) -> list[int]:
    """Keys of an ended root run and those below it, locked until the transaction ends; none if there is no run."""
    found = await db.fetchrow("SELECT key, root FROM run WHERE id = $1 FOR UPDATE", run_id)
    if found is None:
        return []
    if found["root"] is not None:
        raise records.not_deletable(run_id, "child_run")
    tree = await db.fetch(
        "SELECT key, status FROM run WHERE key = $1 OR root = $1 ORDER BY key FOR UPDATE",
        found["key"],
    )
    if any(one["status"] == "running" for one in tree):
        raise records.not_deletable(run_id, "run_active")
    return [one["key"] for one in tree]


async def delete_conversation(db: Db, whose: conversations.Place) -> bool:
    """Remove a conversation with its runs, all of them ended."""
    async with db.transaction():
        talk = await conversations.locked(db, whose)
        if talk is None:
            return False
        await _delete(db, await conversations.runs_of(db, talk))
        await conversations.forget(db, talk)
        return True


async def _delete(db: Db, keys: Sequence[int]) -> None:
    gone = await db.fetch("DELETE FROM artifact WHERE run = ANY ($1) RETURNING hash", keys)
    await db.execute(
        """
        DELETE FROM content WHERE hash = ANY ($1)
        AND NOT EXISTS (SELECT 1 FROM artifact WHERE artifact.hash = content.hash)
        """,
        [one["hash"] for one in gone],
    )
    for table in ("request", "outcome", "payload", "said", "log", "artifact_entry"):
        await db.execute(f"DELETE FROM {table} WHERE run = ANY ($1)", keys)
    ids = "SELECT id FROM run WHERE key = ANY ($1)"
    await db.execute(f"DELETE FROM notice WHERE run IN ({ids})", keys)
    await db.execute("DELETE FROM run WHERE key = ANY ($1)", keys)
