"""What the world is told about pipelines."""

from __future__ import annotations

from loopagent.core.facts import FactData


class PipelineStarted(FactData):
    """A pipeline was begun; the events of its calls follow."""

    fact = "pipeline.started"
    label: str
    """Its stages in short."""
    stages: int
    """How many stages it has."""


class PipelineStep(FactData):
    """How a stage of a pipeline ended; told when the whole pipeline has ended."""

    fact = "pipeline.step"
    index: int
    """Place of the stage, from 0."""
    stage: str
    """Name of the action, or the verb."""
    ok: bool
    before: str = ""
    """What the stage got, and how much of it."""
    after: str = ""
    """What it gave, and how much of it."""
    preview: str = ""
    """The beginning of what it gave."""
    missed: int = 0
    """Entries that failed and became null."""
    error: str | None = None
    """Why it failed."""


class PipelineCompleted(FactData):
    """A pipeline ended, well or badly."""

    fact = "pipeline.completed"
    ok: bool
    calls: int
    """Calls of actions that it made."""
    preview: str = ""
    """The beginning of its last value."""
    error: str | None = None
    """Where and why it failed."""
