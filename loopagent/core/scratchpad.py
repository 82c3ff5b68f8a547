"""The model's private notes and tasks, for one run."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from loopagent.core.json_values import Json
from loopagent.core.problems import Problem, problems_of


WHERE = "scratchpad"


class Task(BaseModel):
    """One task."""

    model_config = ConfigDict(frozen=True, extra="ignore")
    id: Annotated[str, Field(min_length=1)]
    title: Annotated[str, Field(min_length=1)]
    status: Literal["pending", "in_progress", "completed", "blocked"]
    notes: str | None = None


class Scratchpad(BaseModel):
    """Notes and tasks as they are now."""

    model_config = ConfigDict(frozen=True)
    notes: str = ""
    tasks: tuple[Task, ...] = ()


class _TaskChange(BaseModel):
    upsert: list[Task] | None = None
    remove: list[str] | None = None


class _Change(BaseModel):
    notes: str | None = None
    tasks: Annotated[_TaskChange | None, Field(alias="taskList")] = None


def apply(
    pad: Scratchpad,
    change: Json,
    *,
    max_tasks: int = 50,
    max_notes_chars: int = 20_000,
    max_task_chars: int = 2_000,
) -> tuple[Scratchpad, list[str], list[Problem]]:
    """Apply an `AgentScratchpad`: notes are replaced whole, tasks taken off first, then put in by id.

    Args:
        pad: The scratchpad as it is.
        change: The wire object as JSON; `notes` that is null or empty clears, an absent one changes nothing.
        max_tasks: Most tasks afterwards; a list that is longer already may stay so.
        max_notes_chars: Longest notes.
        max_task_chars: Longest task: id, title and notes together.

    Returns:
        The scratchpad, warnings, and problems; with a problem the scratchpad is the old one.
    """
    try:
        asked = _Change.model_validate(change)
    except ValidationError as error:
        return pad, [], [_inside(one) for one in problems_of(error, change)]
    notes = (asked.notes or "") if "notes" in asked.model_fields_set else pad.notes
    tasks, warnings = _tasks(pad, asked.tasks or _TaskChange())
    problems = _oversized(asked, max_notes_chars, max_task_chars)
    if len(tasks) > max(max_tasks, len(pad.tasks)):
        text = f"there would be {len(tasks)} tasks, {max_tasks} are allowed; remove completed ones first"
        problems.append(Problem(f"{WHERE}.taskList.upsert", text, str(len(tasks))))
    if problems:
        return pad, [], problems
    return Scratchpad(notes=notes, tasks=tuple(tasks.values())), warnings, []


def _tasks(pad: Scratchpad, change: _TaskChange) -> tuple[dict[str, Task], list[str]]:
    tasks = {one.id: one for one in pad.tasks}
    warnings = [
        f"{WHERE}: there is no task {gone[:80]!r} to remove"
        for gone in dict.fromkeys(change.remove or ())
        if tasks.pop(gone, None) is None
    ]
    seen: set[str] = set()
    for one in change.upsert or ():
        if one.id in seen and tasks[one.id] != one:
            warnings.append(
                f"{WHERE}: task {one.id[:80]!r} stands twice in upsert; the last one counts"
            )
        seen.add(one.id)
        tasks[one.id] = one
    return tasks, warnings


def _oversized(asked: _Change, max_notes_chars: int, max_task_chars: int) -> list[Problem]:
    problems: list[Problem] = []
    if len(asked.notes or "") > max_notes_chars:
        problems.append(_too_long("notes", len(asked.notes or ""), max_notes_chars))
    for index, one in enumerate((asked.tasks or _TaskChange()).upsert or ()):
        size = len(one.id) + len(one.title) + len(one.notes or "")
        if size > max_task_chars:
            problems.append(_too_long(f"taskList.upsert[{index}]", size, max_task_chars))
    return problems


def _too_long(path: str, size: int, most: int) -> Problem:
    return Problem(
        f"{WHERE}.{path}", f"{size} characters, {most} are allowed; shorten it", str(size)
    )


def _inside(problem: Problem) -> Problem:
    return replace(problem, path=f"{WHERE}.{problem.path}" if problem.path else WHERE)
