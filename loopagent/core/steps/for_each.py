"""ForEach: the same for every item of an array."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from loopagent.core.protocol.loops import ForEachOperation
from loopagent.core.steps import NextStep


class ForEach(NextStep):
    """Do the same for every item of an array without being asked again."""

    type: Literal["ForEach"]
    for_each: ForEachOperation
    """Over what, and what to do with each item."""
    body: ClassVar = ("forEach",)
    runs: ClassVar = False
    example: ClassVar[dict[str, Any]] = {
        "taskComplete": False,
        "nextStep": {
            "type": "ForEach",
            "forEach": {
                "collectionPath": "orders",
                "itemVariable": "order",
                "action": {"name": "check", "params": {"id": "{{ order.id }}"}},
            },
        },
    }
