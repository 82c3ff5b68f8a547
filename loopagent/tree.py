"""A run together with the runs below it, as callers see them: what the whole tree is doing and asking."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from loopagent.core.lineage import children_of
from loopagent.core.loop_state import parts_of
from loopagent.core.loop_view import UNATTENDED, combine, open_asks
from loopagent.errors import RequestError
from loopagent.runview import RunView


if TYPE_CHECKING:
    from loopagent.core.state import RunState
    from loopagent.ports import RunRow, Snapshot, Store
    from loopagent.runtime.engine import Engine

Load = Callable[[str], Awaitable["Snapshot | None"]]


async def view(run_id: str, store: Store, engine: Engine) -> RunView:
    """A run as it is now, with what the runs below it are doing.

    Raises:
        RequestError: `unknown_run` (404).
    """
    snapshot = await store.load(run_id)
    if snapshot is None:
        raise _unknown(run_id)
    states = await under_way(snapshot.state, store.load)
    parts = parts_of(states)
    for part in parts.values():
        part.streaming = engine.runs.streams(part.run_id)
    going = [one.id for one in states if parts[one.id].word == "running" and one.due is not None]
    for left in await engine.unattended(going):
        parts[left].word, parts[left].reason = "resumable", UNATTENDED
    asks = [one.model_dump() for one in open_asks(run_id, parts)]
    return RunView(snapshot.state, snapshot.seq, combine(run_id, parts), asks)


async def tree(run_id: str, store: Store, engine: Engine) -> list[RunRow]:
    """A root run and every run below it, in the order they were made.

    Raises:
        RequestError: `unknown_run` (404).
    """
    rows = await store.tree(run_id)
    if not rows:
        raise _unknown(run_id)
    return await attended(rows, engine)


async def attended(rows: list[RunRow], engine: Engine) -> list[RunRow]:
    """Rows of runs, where those that nobody works on say so."""
    left = await engine.unattended(one.id for one in rows if one.state == "running")
    return [replace(one, state="resumable") if one.id in left else one for one in rows]


def _unknown(run_id: str) -> RequestError:
    return RequestError("unknown_run", f"There is no run {run_id!r}.", status=404)


async def under_way(state: RunState, load: Load) -> list[RunState]:
    """A run and, depth first, the child runs it waits for, in the order they were asked for."""
    found = [state]
    for run_id in children_of(state):
        child = await load(run_id)
        if child is not None:
            found += await under_way(child.state, load)
    return found


def nested(rows: list[RunRow]) -> list[dict[str, Any]]:
    """Rows of runs as camelCase JSON, each with its children in it."""
    made = {one.id: _node(one) for one in rows}
    roots: list[dict[str, Any]] = []
    for one in rows:
        above = made.get(one.parent_id or "")
        (roots if above is None else above["children"]).append(made[one.id])
    return roots


def _node(row: RunRow) -> dict[str, Any]:
    return {
        "id": row.id,
        "agent": row.agent,
        "status": row.status,
        "state": row.state,
        "turn": row.turn,
        "title": row.title,
        "createdAt": row.created_at,
        "updatedAt": row.updated_at,
        "children": list[Any](),
    }
