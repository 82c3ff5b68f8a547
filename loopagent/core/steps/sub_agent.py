"""Sub-Agent: give work to other agents."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field, StrictBool, field_validator, model_validator

from loopagent.core.protocol.base import Wire
from loopagent.core.steps import NextStep


class SubAgentCall(Wire):
    """One piece of work for one agent."""

    name: str = Field(min_length=1)
    message: str
    """What to do; not the payload."""
    terminate_after: StrictBool = False
    """End this run when the sub-agent has succeeded."""
    template_parameters: dict[str, Any] | None = None
    resume_run_id: str | None = None
    """Go on with a run of that agent which asked something."""

    @field_validator("message")
    @classmethod
    def _not_blank(cls, message: str) -> str:
        if not message.strip():
            problem = "must not be blank"
            raise ValueError(problem)
        return message


class SubAgent(NextStep):
    """Give work to other agents; several run side by side."""

    type: Literal["Sub-Agent"]
    sub_agents: list[SubAgentCall] = []
    sub_agent: SubAgentCall | None = None
    """One piece of work; ignored when `subAgents` has any."""
    body: ClassVar = ("subAgents", "subAgent")
    runs: ClassVar = False
    example: ClassVar[dict[str, Any]] = {
        "taskComplete": False,
        "nextStep": {
            "type": "Sub-Agent",
            "subAgents": [
                {"name": "researcher", "message": "Find three sources.", "terminateAfter": False}
            ],
        },
    }

    @model_validator(mode="after")
    def _any_work(self) -> SubAgent:
        if not self.sub_agents and self.sub_agent is None:
            message = "needs subAgents or subAgent"
            raise ValueError(message)
        return self
