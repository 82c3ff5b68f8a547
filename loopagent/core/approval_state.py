"""What a run keeps of approvals: which calls need none any more, and what was refused before."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Literal

from loopagent.core.hashing import json_hash
from loopagent.core.values import value_object


@value_object(frozen=True, slots=True)
class Remembered:
    """That a person let calls through from then on: the very same one, or under a plan all of an action that reads.

    It is data, so it goes from run to run as JSON.
    """

    id: str
    """Id of the request that was answered so."""
    agent: str
    """The agent whose calls they are."""
    action: str
    params: dict[str, Any]
    definition: str
    """Digest of the action as it was then."""
    scope: Literal["run", "session"]
    """Whether it holds for the run, or for its conversation as well."""
    by: str
    """Who said so."""
    at: float
    """When, in seconds since the epoch."""
    plan: int | None = None
    """For all calls of the action, whatever their parameters, while this revision of the plan is the approved one."""

    def public(self) -> dict[str, Any]:
        """What people are shown of it, as camelCase JSON."""
        shown = asdict(self)
        del shown["definition"]
        return shown

    def fits(
        self,
        agent: str,
        action: str,
        params: dict[str, Any],
        definition: str,
        plan: int | None = None,
    ) -> bool:
        """Whether a call is the very same one: same agent, same action as it was then, same parameters.

        Args:
            agent: Whose call it is.
            action: What is called.
            params: With what.
            definition: Digest of the action as it is now.
            plan: Revision of the plan that is approved now.
        """
        if (self.agent, self.action, self.definition) != (agent, action, definition):
            return False
        if self.plan is not None:
            return self.plan == plan
        return json_hash(self.params) == json_hash(params)


@value_object(frozen=True, slots=True)
class Refused:
    """What became of the last request about an action that did not let it run."""

    params: dict[str, Any]
    decision: str
    """`reject`, or `expired`."""
    feedback: str = ""
