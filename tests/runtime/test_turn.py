"""A turn can be looked at afterwards: what the model was shown, to the byte, and what it said."""

from __future__ import annotations

from typing import Any

import pytest

from loopagent import Agent, App
from loopagent.core.agent_spec import ContextSpec
from loopagent.errors import RequestError
from loopagent.runtime.turn import turn_record
from loopagent.stores.memory import MemoryStore
from tests.runtime.test_context import TASK, Stocktaker, agent


pytestmark = pytest.mark.anyio


class Changing(Stocktaker):
    """Asks for shelves, and writes one thing into its payload; one of its replies is refused."""

    def reply(self) -> dict[str, Any]:
        if self.asked == 1:
            return {"taskComplete": False, "nextStep": {"type": "Nonsense"}}
        said = super().reply()
        change = {"updateElements": {"seen": self.asked}}
        return {**said, "payloadChangeRequest": change} if "nextStep" in said else said


async def test_every_prompt_is_rendered_again_to_the_byte() -> None:
    model = Changing(40, window=6_000)
    clerk: Agent[Any] = agent(model, context=ContextSpec(window_tokens=6_000, result_turns=3))
    async with App(agents=[clerk], store=MemoryStore()) as host:
        run = await host.start("clerk", TASK, payload={"seen": 0})
        view = await host.wait(run.id, timeout_seconds=60)
        assert view.state.status == "completed"
        for number in range(1, view.state.turn + 1):
            found = await turn_record(host.store, run.id, number, host.system)
            sent = model.requests[number - 1]
            assert found.exact
            assert found.system == sent.system
            assert found.messages == list(sent.messages)
            assert found.usage["modelCalls"] == 1
            assert found.model or found.raw
    assert model.summaries


async def test_a_turn_tells_what_was_made_of_the_reply() -> None:
    model = Changing(4)
    async with App(agents=[agent(model)], store=MemoryStore()) as host:
        run = await host.start("clerk", TASK, payload={"seen": 0})
        await host.wait(run.id, timeout_seconds=60)
        refused = await turn_record(host.store, run.id, 1, host.system)
        taken = await turn_record(host.store, run.id, 2, host.system)
        with pytest.raises(RequestError, match="has turns 1 to"):
            await turn_record(host.store, run.id, 99, host.system)
        with pytest.raises(RequestError, match="no run"):
            await turn_record(host.store, "run_nobody", 1, host.system)
    assert (refused.reply, refused.outcome) == ("rejected", "refused")
    assert refused.problems[0]["path"].startswith("nextStep")
    assert refused.patch == []
    assert (taken.reply, taken.type, taken.outcome) == ("accepted", "Actions", "step")
    assert taken.patch == [{"op": "replace", "path": "/seen", "value": 2}]
    assert '"Actions"' in taken.raw
    public = taken.public()
    assert public["prompt"]["exact"] is True
    first, *_, last = public["prompt"]["messages"]
    assert first == {"role": "user", "text": TASK, "kind": "task", "number": 1, "turn": 0}
    assert (last["kind"], last["number"]) == ("state", None)
    assert public["changes"] == [{"path": "/seen", "change": "changed", "before": 0, "after": 2}]
    [problem] = refused.public()["problems"][:1]
    assert (problem["pointer"], problem["line"]) == ("/nextStep/type", 1)
