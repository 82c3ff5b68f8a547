"""The model's private notes and tasks, for one run."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from loopagent.core.problems import Problem


class Task(BaseModel):
    """One task."""

    model_config = ConfigDict(frozen=True)
    id: str
    title: str
    status: Literal["pending", "in_progress", "completed", "blocked"]
    notes: str | None = None


class Scratchpad(BaseModel):
    """Notes and tasks as they are now."""

    model_config = ConfigDict(frozen=True)
    notes: str = ""
    tasks: tuple[Task, ...] = ()


def apply(
    pad: Scratchpad, change: dict[str, Any], *, max_tasks: int, max_notes_chars: int
) -> tuple[Scratchpad, list[str], list[Problem]]:
    """Apply a validated `AgentScratchpad`: notes are replaced whole, tasks removed first, then put in by id.

    Returns:
        The scratchpad, warnings, and problems; with a problem nothing of it may be used.
    """
    problems: list[Problem] = []
    notes = pad.notes if "notes" not in change else str(change["notes"] or "")
    if len(notes) > max_notes_chars:
        problems.append(
            Problem("scratchpad.notes", f"at most {max_notes_chars} characters", str(len(notes)))
        )
    tasks = {one.id: one for one in pad.tasks}
    listed = change.get("taskList") or {}
    unknown = [one for one in listed.get("remove") or () if tasks.pop(one, None) is None]
    warnings = [f"scratchpad: there is no task {one!r} to remove" for one in unknown]
    for raw in listed.get("upsert") or ():
        tasks[raw["id"]] = Task.model_validate(raw)
    if len(tasks) > max_tasks:
        message = f"at most {max_tasks} tasks; remove completed ones first"
        problems.append(Problem("scratchpad.taskList.upsert", message, str(len(tasks))))
    return Scratchpad(notes=notes, tasks=tuple(tasks.values())), warnings, problems
