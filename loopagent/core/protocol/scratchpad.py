"""Changes to the model's private notes."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import ConfigDict

from loopagent.core.flavours import GENERATED, NULL_MATTERS
from loopagent.core.protocol.base import NonBlank, Wire


class AgentTask(Wire):
    """One task on the scratchpad; putting it in again replaces it whole."""

    id: NonBlank
    """Stable within the run."""
    title: NonBlank
    """What is to be done."""
    status: Literal["pending", "in_progress", "completed", "blocked"]
    """How far it is."""
    notes: str | None = None
    """Anything worth keeping with it."""


class TaskListChange(Wire):
    """Tasks to take off, then tasks to add or replace."""

    upsert: list[AgentTask] = []
    """Tasks to add, or to replace by id."""
    remove: list[str] = []
    """Ids of tasks to take off."""


def _null_notes_clear(schema: dict[str, Any]) -> None:
    schema[GENERATED] = {NULL_MATTERS: "notes"}


class AgentScratchpad(Wire):
    """Private working memory of this run."""

    model_config = ConfigDict(json_schema_extra=_null_notes_clear)
    null_means_null: ClassVar[frozenset[str]] = frozenset({"notes"})
    notes: str | None = None
    """Replaces all notes; empty or null clears."""
    task_list: TaskListChange | None = None
    """Changes to the tasks."""
