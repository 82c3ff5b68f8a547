"""Sub-Agent: give work to other agents."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, StrictBool

from loopagent.core.flavours import ACCEPTED, GENERATED, Mark
from loopagent.core.problems import Fault
from loopagent.core.protocol.base import NonBlank, Params, Wire
from loopagent.core.steps import NextStep


class SubAgentCall(Wire):
    """One piece of work for one agent."""

    name: NonBlank
    """Name of the sub-agent."""
    message: NonBlank
    """What to do; not the payload."""
    terminate_after: StrictBool = False
    """End this run when the sub-agent has succeeded."""
    template_parameters: Params | None = None
    """Only parameters that the sub-agent declares."""
    resume_run_id: str | None = None
    """Go on with a run of that agent which asked something."""


def _any_work(schema: dict[str, Any]) -> None:
    schema[ACCEPTED] = {
        "anyOf": [
            {
                "required": ["subAgents"],
                "properties": {"subAgents": {"type": "array", "minItems": 1}},
            },
            {"required": ["subAgent"], "properties": {"subAgent": {"type": "object"}}},
        ]
    }
    schema[GENERATED] = {"required": ["type", "subAgents"]}


class SubAgent(NextStep):
    """Give work to other agents; several run side by side."""

    model_config = ConfigDict(json_schema_extra=_any_work)

    type: Literal["Sub-Agent"]
    sub_agents: Annotated[list[SubAgentCall], Mark(generated={"minItems": 1})] = []
    """Pieces of work."""
    sub_agent: Annotated[SubAgentCall | None, Mark(generated=False)] = None
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

    @classmethod
    def tidy(cls, fields: dict[str, Any]) -> dict[str, Any]:
        """Let a filled list win over the single entry; no work at all is a problem."""
        several = fields.get("subAgents", fields.get("sub_agents"))
        if several:
            single = ("subAgent", "sub_agent")
            return {key: one for key, one in fields.items() if key not in single}
        if "subAgent" in fields or "sub_agent" in fields:
            return fields
        got = "nothing" if several is None else "an empty list"
        return {**fields, "subAgents": Fault(f"expected at least one sub-agent, got {got}", got)}

    @property
    def calls(self) -> list[SubAgentCall]:
        """The work to give, in request order."""
        return self.sub_agents or ([self.sub_agent] if self.sub_agent else [])
