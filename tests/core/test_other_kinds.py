"""A name of another kind of thing is told from one that nobody knows, so that the model can use it as it should."""

from __future__ import annotations

from typing import Any

import pytest

from loopagent.core.agent_spec import AgentSpec, SubAgentSpec
from loopagent.core.client_tool_spec import ClientToolSpec
from tests.core.play import WORK, Play, agent


STEPS: dict[str, dict[str, Any]] = {
    "kid as an action": {"type": "Actions", "actions": [{"name": "Kid"}]},
    "pick as an action": {"type": "Actions", "actions": [{"name": "pick"}]},
    "kid as the action of a loop": {
        "type": "ForEach",
        "forEach": {"collectionPath": "static:[1]", "action": {"name": "kid"}},
    },
    "kid as the tool of a pipeline": {"type": "Pipeline", "pipeline": {"steps": [{"tool": "kid"}]}},
    "work as a sub-agent": {"type": "Sub-Agent", "subAgents": [{"name": "work", "message": "Go."}]},
    "work as a client tool": {"type": "ClientTools", "clientTools": [{"name": "work"}]},
}
MEANT = {"kid": "subAgent", "pick": "ClientTools", "work": "Actions"}


@pytest.mark.parametrize("case", STEPS)
def test_what_it_is_is_said(case: str) -> None:
    spec = agent(
        actions=(WORK,),
        agents=(SubAgentSpec(spec=AgentSpec(name="kid")),),
        client_tools=(ClientToolSpec(name="pick"),),
    )
    play = Play(spec).reply({"taskComplete": False, "nextStep": STEPS[case]})
    problem = play.last("reply.rejected")["problems"][0]["message"]
    name = case.partition(" ")[0]
    assert problem.startswith(f"{name} is no ")
    assert MEANT[name] in problem


def test_a_name_that_nobody_knows_is_told_with_those_that_there_are() -> None:
    play = Play().reply(
        {"taskComplete": False, "nextStep": {"type": "Actions", "actions": [{"name": "sing"}]}}
    )
    assert "available: work, mail" in play.last("reply.rejected")["problems"][0]["message"]
