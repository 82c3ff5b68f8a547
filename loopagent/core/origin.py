"""What started a run by itself: a trigger, and the event that reached it."""

from __future__ import annotations

from loopagent.core.hashing import json_hash
from loopagent.core.values import value_object


@value_object(frozen=True, slots=True)
class Origin:
    """The event of a trigger that a run answers. The same event of the same trigger is always the same run.

    Args:
        trigger: Name of the trigger.
        kind: `schedule`, `webhook` or `manual`.
        event_id: Id of the event.
    """

    trigger: str
    kind: str
    event_id: str

    @property
    def run_id(self) -> str:
        """Id of the run; a store holds no two of one id, so an event that is taken up twice starts one run."""
        return f"run_{json_hash(['trigger', self.trigger, self.event_id])[:16]}"

    def body(self) -> dict[str, str]:
        """As the run's first event tells it."""
        return {"name": self.trigger, "kind": self.kind, "eventId": self.event_id}
