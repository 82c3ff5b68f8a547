"""Changes to the model's private notes."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from loopagent.core.protocol.base import Wire


class AgentTask(Wire):
    """One task on the scratchpad."""

    id: str = Field(min_length=1)
    title: str = Field(min_length=1)
    status: Literal["pending", "in_progress", "completed", "blocked"]
    notes: str | None = None


class TaskListChange(Wire):
    """Tasks to take off, then tasks to add or replace."""

    upsert: list[AgentTask] = []
    remove: list[str] = []


class AgentScratchpad(Wire):
    """Private working memory of this run."""

    null_means_null: ClassVar[frozenset[str]] = frozenset({"notes"})
    notes: str | None = None
    """Replaces all notes; empty clears."""
    task_list: TaskListChange | None = None
