"""What the page of a run draws beside the run itself: its turns, the tree with how far it is, the history of notes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from loopagent.core.context import size_of
from loopagent.runtime.course import Course, Turn


if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from loopagent.app import App
    from loopagent.core.state import Message, RunState

Json = Mapping[str, Any]
NOTES: Final = frozenset(
    {"reply.rejected", "reply.truncated", "model.retry", "guard.nudged", "guard.mistake"}
    | {"guard.repeated", "guard.limit", "context.compacted", "skill.activated", "payload.changed"}
    | {"memory.written", "artifact.created", "artifact.read", "conversation.read", "command.issued"}
    | {"request.created", "request.resolved", "plan.approved", "plan.rejected", "plan.edited"}
    | {"run.mode_changed", "scratchpad.changed", "hook.decided"}
    | {"request.expired", "approval.waived", "approval.remembered", "approval.forgotten"}
)
"""Events of a turn that a reader should see by name, beside the work itself."""
MAX_FOLLOWED: Final = 20
"""Running runs of a tree whose loops are looked at."""
_PASS: Final = re.compile(r"each\.(\d+)")


def notes_of(turn: Turn) -> list[tuple[str, str]]:
    """Type and author of what happened in a turn beside its work, each once."""
    found = ((str(one["type"]), _author(one)) for one in turn.events)
    return list(dict.fromkeys(one for one in found if one[0] in NOTES))


def _author(event: Json) -> str:
    """Who an event is of: of a person the name, where it is known."""
    kind = str(event.get("decidedBy", ""))
    return str(event["data"].get("by") or kind) if kind == "human" else kind


def kinds_of(turn: Turn) -> set[str]:
    """What a turn can be found by: its step, its work, what happened in it."""
    words = {turn.type or turn.reply, *(one.kind for one in turn.work)}
    words |= {"failed"} if any(one.ok is False for one in turn.work) else set()
    return {one for one in words | {kind for kind, _ in notes_of(turn)} if one}


def filtered(course: Course, kind: str) -> tuple[Course, list[str]]:
    """The turns that have to do with something, all if it is empty; and what else may be asked for."""
    known = [(one, kinds_of(one)) for one in course.turns]
    every = sorted(set().union(*(kinds for _, kinds in known)))
    turns = [one for one, kinds in known if not kind or kind in kinds]
    return Course(turns), every


# ---------------------------------------------------------------------- the tree


@dataclass(slots=True)
class Progress:
    """How far something is. `total` is None where nobody knows."""

    label: str
    done: int
    failed: int
    total: int | None
    side_by_side: int = 1


def loop_of(state: RunState, started: Json | None) -> Progress | None:
    """How far the open loop of a run is.

    Args:
        state: The run.
        started: The data of the loop's beginning, if that is known.
    """
    step = state.step
    if step is None or step.request.get("type") not in {"ForEach", "While"}:
        return None
    ended: dict[str, bool] = {}
    for key, outcome in step.results.items():
        found = _PASS.match(key)
        if found:
            ended[found[1]] = ended.get(found[1], True) and outcome.ok
    failed = sum(not ok for ok in ended.values())
    about = started or {}
    label = str(about.get("what") or step.request["type"])
    side_by_side = int(about.get("sideBySide") or 1)
    return Progress(label, len(ended) - failed, failed, about.get("passes"), side_by_side)


def started_loops(events: Iterable[Json]) -> dict[str, Json]:
    """The last loop that each run began, by the id of the run."""
    return {str(one["runId"]): one["data"] for one in events if one["type"] == "loop.started"}


def children_of(node: Json) -> Progress | None:
    """How far the runs right below one are."""
    below = node["children"]
    if not below:
        return None
    ends = [one["status"] for one in below]
    failed = sum(one in {"failed", "cancelled"} for one in ends)
    return Progress("sub-agents", ends.count("completed"), failed, len(below))


async def progress_of(
    app: App, state: RunState, nodes: Sequence[Json], events: Iterable[Json]
) -> dict[str, list[Progress]]:
    """How far each run of a tree is with its loops and its sub-agents, by the id of the run.

    Args:
        app: The app.
        state: The run that is looked at.
        nodes: The tree, as `tree.nested` makes it.
        events: Its events, as far as they are at hand.
    """
    loops = started_loops(events)
    found: dict[str, list[Progress]] = {}
    looked = 0
    for node in _walked(nodes):
        parts = [below] if (below := children_of(node)) else []
        if node["status"] == "running" and looked < MAX_FOLLOWED:
            looked += 1
            snapshot = None if node["id"] == state.id else await app.store.load(node["id"])
            of = state if node["id"] == state.id else snapshot and snapshot.state
            loop = loop_of(of, loops.get(node["id"])) if of else None
            parts += [loop] if loop else []
        found[node["id"]] = parts
    return found


def _walked(nodes: Sequence[Json]) -> Iterator[Json]:
    for node in nodes:
        yield node
        yield from _walked(node["children"])


# ---------------------------------------------------------------------- messages


def fate(message: Message, state: RunState) -> str:
    """What the model sees of a message now: `left out`, `shortened`, or everything."""
    if not state.view.shows(message):
        return "left out"
    long = size_of(message.text) >= state.spec.context.stub_bytes
    return "shortened" if long and state.view.outdates(message) else ""


# ---------------------------------------------------------------------- notes and tasks


@dataclass(slots=True)
class PadChange:
    """What a turn made of the scratchpad."""

    turn: int
    at: float
    tasks: list[str] = field(default_factory=list[str])
    """In words, one a task."""
    notes: str | None = None
    """The notes, where they were written anew."""


def pad_history(events: Iterable[Json]) -> list[PadChange]:
    """How the scratchpad became what it is, from its `scratchpad.changed` events, oldest first."""
    tasks: dict[str, Json] = {}
    notes = ""
    found: list[PadChange] = []
    for event in events:
        data = event["data"]
        now = {str(one["id"]): one for one in data.get("tasks") or ()}
        change = PadChange(int(event.get("turn") or 0), float(event["ts"]))
        change.tasks = list(_task_changes(tasks, now))
        change.notes = data.get("notes") if data.get("notes") != notes else None
        tasks, notes = now, data.get("notes") or ""
        found.append(change)
    return found


def _task_changes(before: Mapping[str, Json], now: Mapping[str, Json]) -> Iterator[str]:
    for key, one in now.items():
        was, status = before.get(key), one["status"].replace("_", " ")
        if was is None:
            yield f"{one['title']}: new, {status}"
        elif was["status"] != one["status"]:
            yield f"{one['title']}: {was['status'].replace('_', ' ')} → {status}"
        elif was != one:
            yield f"{one['title']}: reworded"
    for key, one in before.items():
        if key not in now:
            yield f"{one['title']}: taken off"
