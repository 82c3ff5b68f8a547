"""Retry: see an earlier message in full, or simply be asked again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from loopagent.core.effects import ReadMessage
from loopagent.core.problems import Problem
from loopagent.core.protocol.base import Count
from loopagent.core.results import call_result
from loopagent.core.steps import Done, NextStep, Wait


if TYPE_CHECKING:
    from loopagent.core.outcome import Outcome
    from loopagent.core.state import RunState


class Retry(NextStep):
    """See an earlier message in full by its number, or be asked again when nothing else helps."""

    type: Literal["Retry"]
    message_index: Count | None = None
    """Stable number of the message, as in `#17`."""
    reason: str | None = None
    """Why it is needed."""
    body: ClassVar = ("messageIndex",)
    example: ClassVar[dict[str, Any]] = {
        "taskComplete": False,
        "nextStep": {"type": "Retry", "messageIndex": 4, "reason": "I need the full rows."},
    }

    @classmethod
    def tidy(cls, fields: dict[str, Any]) -> dict[str, Any]:
        """Take the number as it is printed, `#17`."""
        given = fields.get("messageIndex")
        if not isinstance(given, str) or not given.strip().startswith("#"):
            return fields
        return {**fields, "messageIndex": given.strip()[1:]}

    def sameness(self, request: dict[str, Any], reply: Mapping[str, Any]) -> dict[str, Any]:
        """Another reason does not make another step."""
        del reply
        return {key: one for key, one in request.items() if key != "reason"}

    def resolve(self, run: RunState) -> tuple[Self, list[Problem], list[str]]:
        """The number must be one that was given out."""
        wanted = self.message_index
        if wanted is None or 1 <= wanted <= run.messages:
            return self, [], []
        message = f"must be a message number from 1 to {run.messages}"
        return self, [Problem("nextStep.messageIndex", message, str(wanted))], []

    def resume(self, run: RunState, results: Mapping[str, Outcome]) -> Wait | Done:
        """Fetch the message, if one was named; a bare retry brings nothing."""
        if self.message_index is None:
            return Done(progress=False)
        found = results.get("message")
        if found is None:
            return Wait((ReadMessage(f"{run.turn}:message", self.message_index),))
        return Done(
            results=(call_result(1, f"message #{self.message_index}", found),), progress=False
        )
