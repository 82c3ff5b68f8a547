"""Pipeline: dataflow whose last value alone comes back."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from loopagent.core.protocol.pipeline import AgentPipelineRequest
from loopagent.core.steps import NextStep


class Pipeline(NextStep):
    """Pass data through stages; only the last value comes back."""

    type: Literal["Pipeline"]
    pipeline: AgentPipelineRequest
    """The stages."""
    body: ClassVar = ("pipeline",)
    runs: ClassVar = False
    example: ClassVar[dict[str, Any]] = {
        "taskComplete": False,
        "nextStep": {
            "type": "Pipeline",
            "pipeline": {
                "steps": [
                    {"tool": "list-orders", "with": {}},
                    {"where": "total > 100"},
                    {"count": True},
                ]
            },
        },
    }
