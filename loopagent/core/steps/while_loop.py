"""While: the same as long as a condition holds."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from loopagent.core.protocol.loops import WhileOperation
from loopagent.core.steps import NextStep


class While(NextStep):
    """Do the same as long as a condition holds without being asked again."""

    type: Literal["While"]
    while_: WhileOperation
    """How long, and what to do in each pass."""
    body: ClassVar = ("while",)
    runs: ClassVar = False
    example: ClassVar[dict[str, Any]] = {
        "taskComplete": False,
        "nextStep": {
            "type": "While",
            "while": {
                "condition": "payload.status != 'done'",
                "action": {"name": "poll", "params": {}},
            },
        },
    }
